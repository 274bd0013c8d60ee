import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Scenarios
import Testing

@Suite("WebSocket requests under load and observation", .timeLimit(.minutes(5))) struct WebSocketLoadTests {
  @Test("A message of 64 MiB arrives whole, also in fragments of one byte")
  func largeMessages() async throws {
    let size = 64 << 20
    let server = try HTTPTestServer.webSocket { connection in
      // A text in fragments of one byte.
      try connection.write([0x01, 1, 0x61])
      for _ in 0..<1000 { try connection.write([0x00, 1, 0x62]) }
      try connection.write([0x80, 1, 0x63])
      try connection.echo()
    }
    let socket = Session.forSockets().webSocketRequest(
      to: server.socketURL(), configuration: .maximumMessageSize(size))
    let task = socket.webSocketTask()
    var iterator = task.streamingMessages().makeAsyncIterator()
    guard case .string(let text)? = await iterator.next() else {
      Issue.record("no text")
      return
    }
    #expect(text == "a" + String(repeating: "b", count: 1000) + "c")
    let data = Data(repeating: 7, count: size)
    try await task.send(.data(data))
    guard case .data(let echo)? = await iterator.next() else {
      Issue.record("no bytes")
      return
    }
    #expect(echo == data)
  }

  @Test("Ten thousand messages and pings keep their order")
  func manyMessages() async throws {
    let count = 10_000
    let server = try HTTPTestServer.webSocket()
    let socket = Session.forSockets().webSocketRequest(to: server.socketURL())
    let events = socket.recorded()
    await events.wait(for: 1)
    let pongs = Recorder<Bool>()
    let queue = DispatchQueue(label: "test.pongs")
    for index in 0..<count {
      socket.send(.string(String(index)))
      socket.sendPing(respondingOn: queue) { response in
        if case .pong = response { pongs.add(true) } else { pongs.add(false) }
      }
    }
    await events.wait(for: count + 1)
    #expect(events.values.dropFirst().elementsEqual((0..<count).map { .text(String($0)) }))
    #expect(await pongs.wait(for: count).allSatisfy { $0 })
    socket.cancel()
  }

  @Test("A suspended request receives nothing, and continues when it is resumed")
  func suspension() async throws {
    let gate = Gate()
    let server = try HTTPTestServer.webSocket { connection in
      try connection.pass(gate)
      try connection.send("late")
      try connection.drain()
    }
    let session = Session.forSockets(timeout: 1)
    let socket = session.webSocketRequest(to: server.socketURL())
    let events = socket.recorded()
    await events.wait(for: 1)
    socket.suspend()
    // The loop learns of it before it begins another transfer.
    _ = await session.request(server.url("/bytes/1")).serializingData().response
    gate.open()
    // Time in which the message would arrive.
    _ = await session.request(server.url("/delay/0.3")).serializingData().response
    #expect(events.values == [.connected(nil)])
    socket.resume()
    #expect(await events.wait(for: 2).last == .text("late"))
    socket.close(sending: .normalClosure)
    #expect(await events.wait(for: 4).last == .completed(nil))
  }

  /// A delegate that records the events of connections.
  private final class Listener: SessionDelegate, @unchecked Sendable {
    let events = Recorder<String>()
    let tasks = Recorder<URLSessionTask>()

    override func urlSession(
      _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol name: String?
    ) {
      tasks.add(webSocketTask)
      events.add("open \(name ?? "-") \(webSocketTask.currentRequest?.url?.scheme ?? "-")")
    }

    override func urlSession(
      _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
      didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
    ) {
      tasks.add(webSocketTask)
      events.add("close \(closeCode.rawValue) \(reason.map { String(decoding: $0, as: UTF8.self) } ?? "-")")
    }

    override func urlSession(
      _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
      events.add("complete \(error == nil)")
    }
  }

  @Test("The delegate is notified of the connection")
  func delegate() async throws {
    let server = try HTTPTestServer.webSocket(
      .none,
      WebSocketEndpoint(subprotocols: ["chat"]) { connection in
        try connection.close(1001, reason: "later")
        try connection.drain()
      })
    let listener = Listener()
    let session = Session.forSockets(delegate: listener)
    let socket = session.webSocketRequest(to: server.socketURL(), configuration: .protocol("chat"))
    _ = await socket.events()
    #expect(
      await listener.events.wait(for: 3) == ["open chat ws", "close 1001 later", "complete true"])
    #expect(socket.task is URLSessionWebSocketTask)
  }

  /// The way in which a server ends a connection without a Close frame.
  enum Loss: CaseIterable { case end, endWhileClosing, reset, cutOff }

  @Test(
    "A connection without a Close frame is not closed but lost, for each observer", arguments: Loss.allCases)
  func loss(_ loss: Loss) async throws {
    let server = try HTTPTestServer.webSocket(loss == .cutOff ? .tls(.localhost) : .none) { connection in
      connection.answersControlFrames = false
      if loss == .reset { connection.reset() }
      if loss == .cutOff { connection.cutOff() }
      try connection.send("last")
      // Ends after the message of the client, or after its Close frame.
      _ = try connection.next()
    }
    let listener = Listener()
    let socket = Session.forSockets(delegate: listener).webSocketRequest(to: server.socketURL())
    let errors = Recorder<AFError?>()
    let kinds = Recorder<String>()
    socket.streamMessageEvents(on: .global()) { [weak socket] event in
      switch event.kind {
      case .connected: kinds.add("connected")
      case .receivedMessage:
        kinds.add("message")
        if loss == .endWhileClosing {
          event.close(sending: .normalClosure)
        } else {
          socket?.send(.string("answer"))
        }
      case .disconnected(let code, _): kinds.add("disconnected \(code.rawValue)")
      case .completed(let completion):
        kinds.add("completed")
        errors.add(completion.error)
      }
    }
    let error = try #require(await errors.value(0))
    let scheme = loss == .cutOff ? "wss" : "ws"
    #expect(kinds.values == ["connected", "message", "completed"])
    #expect(error.transferCode == .networkConnectionLost)
    if loss == .end || loss == .endWhileClosing {
      #expect(error.localizedDescription.contains("without a Close frame"))
    }
    #expect(socket.error?.transferCode == .networkConnectionLost)
    #expect(await listener.events.wait(for: 2) == ["open - \(scheme)", "complete false"])
  }

  @Test("After a retry, the delegate gets the task of the connection") func delegateAfterRetry() async throws
  {
    let server = try HTTPTestServer.webSocket(
      .none,
      WebSocketEndpoint { connection in
        try connection.close(1000)
        try connection.drain()
      })
    server.enqueue(.status(503))
    let listener = Listener()
    let session = Session.forSockets(delegate: listener)
    let socket = session.webSocketRequest(
      to: server.socketURL(), interceptor: .retryPolicy(retryLimit: 1, exponentialBackoffScale: 0.001))
    _ = await socket.events()
    _ = await listener.events.wait(for: 4)
    let tasks = socket.tasks
    #expect(tasks.count == 2 && listener.tasks.count == 2)
    #expect(listener.tasks.values.allSatisfy { $0 === tasks.last })
  }

  @Test("A client identity is presented, from the options or by the delegate", arguments: [true, false])
  func identity(isChosen: Bool) async throws {
    let authority = try TestIdentity(.init(commonName: "Clients", isCA: true))
    let client = try TestIdentity(.init(commonName: "ada", issuer: authority))
    let identity = try ClientIdentity(
      pem: Data(client.certificatePEM.utf8), privateKey: Data(client.privateKeyPEM.utf8))
    let server = try HTTPTestServer.webSocket(
      .tls(.localhost, TLSOptions(clientAuthority: authority.certificatePEM)))
    let chooser = IdentityChooser(identity)
    let session = Session.forSockets(
      { if !isChosen { $0.clientIdentity = identity } }, delegate: isChosen ? chooser : SessionDelegate())
    let socket = session.webSocketRequest(to: server.socketURL())
    let events = socket.recorded()
    #expect(await events.wait(for: 1) == [.connected(nil)])
    #expect(try await server.takeRequest().tls?.clientCertificatePEM != nil)
    #expect(chooser.calls.values == (isChosen ? ["localhost request"] : []))
    socket.cancel()
  }

  @Test("Two handlers receive every event, each on its queue in order", .steps)
  func handlers() async throws {
    let server = try HTTPTestServer.webSocket { connection in
      for index in 0..<100 { try connection.send("{\"value\": \(index)}") }
      try connection.send("no document")
      try connection.close()
      try connection.drain()
    }
    struct Item: Decodable, Sendable { let value: Int }
    let values = Recorder<Int>()
    let kinds = Recorder<String>()
    let key = DispatchSpecificKey<Bool>()
    let queue = DispatchQueue(label: "test.events", attributes: .concurrent)
    queue.setSpecific(key: key, value: true)
    let socket = Session.forSockets().webSocketRequest(
      to: server.socketURL(), shouldAutomaticallyResume: false)
    socket.streamDecodable(Item.self, on: .global()) { values.add($0.value) }
    socket.streamDecodableEvents(Item.self, on: queue) { event in
      switch event.kind {
      case .connected: kinds.add("connected")
      case .receivedMessage:
        kinds.add(DispatchQueue.getSpecific(key: key) == true ? "message" : "wrong queue")
      case .serializerFailed: kinds.add("failed")
      case .disconnected: kinds.add("disconnected")
      case .completed: kinds.add("completed")
      }
    }
    step("before the connection")
    #expect(socket.isInitialized)
    socket.resume()
    step("events of a handler")
    await kinds.wait(for: 104)
    #expect(
      kinds.values
        == ["connected"] + [String](repeating: "message", count: 100) + [
          "failed", "disconnected", "completed",
        ])
    step("values of the other handler")
    #expect(await values.wait(for: 100) == Array(0..<100))
  }
}
