import Alamofire
import FoundationNetworking
import Testing

/// Connections to servers by other authors. One test at a time, because each server has one thread. Beside large
/// messages it may answer a Close frame later than the client waits for that.
@Suite(
  "WebSocket requests to websockets and wsproto of Python", .needsWebSocketPeer, .serialized,
  .timeLimit(.minutes(5)))
struct WebSocketPeerTests {
  typealias Package = WebSocketPeer.Package
  private typealias Event = WebSocketRequest.Event<URLSessionWebSocketTask.Message, Never>

  /// A request, and the session that it needs.
  private struct Client {
    let session: Session
    let socket: WebSocketRequest
    var task: WebSocketTask { socket.webSocketTask() }
  }

  private func client(
    _ package: WebSocketPeer.Package, _ entrance: WebSocketPeer.Entrance, _ path: String,
    _ configuration: WebSocketRequest.Configuration = .default
  ) async throws -> Client {
    let peer = try await WebSocketPeer.shared(package)
    var options = TransportOptions()
    options.trustStore = .file(peer.authority)
    let session = Session.isolated(options)
    var configuration = configuration
    configuration.compressesMessages = true
    // Newer versions refuse a client that offers none of the server's.
    configuration.protocol = "chat"
    let url = peer.url(entrance, path)
    return Client(session: session, socket: session.webSocketRequest(to: url, configuration: configuration))
  }

  /// Sends messages and expects them to come back.
  private func expectEcho(_ client: Client, _ messages: [URLSessionWebSocketTask.Message]) async throws {
    let task = client.task
    var iterator = task.streamingMessages().makeAsyncIterator()
    for message in messages {
      try await task.send(message)
      let echo = await iterator.next()
      #expect(echo.map(Content.init) == Content(message))
    }
  }

  private enum Content: Equatable {
    case text(String)
    case data(Data)
    case unknown

    init(_ message: URLSessionWebSocketTask.Message) {
      switch message {
      case .string(let text): self = .text(text)
      case .data(let data): self = .data(data)
      @unknown default: self = .unknown
      }
    }
  }

  private static let messages: [URLSessionWebSocketTask.Message] =
    [
      .string("grüße 👋"), .data(Data([0, 1, 255])), .string(""), .data(Data()),
      .string(String(repeating: "the same words again, ", count: 10_000)),
      .data(Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 7) })),
    ] + [125, 126, 65_535, 65_536].map { .data(Data(repeating: 7, count: $0)) }

  @Test("Messages return unchanged", arguments: Package.allCases, WebSocketPeer.Entrance.allCases)
  func echo(package: Package, entrance: WebSocketPeer.Entrance) async throws {
    let client = try await client(package, entrance, "/echo")
    try await expectEcho(client, Self.messages + Self.messages)
    let head = client.socket.response
    let extensions = head?.value(forHTTPHeaderField: "Sec-WebSocket-Extensions") ?? ""
    let parameters = extensions.split(separator: ";").map { $0.drop { $0 == " " } }
    #expect(Set(parameters.map(String.init)) == entrance.parameters(package))
    #expect(head?.value(forHTTPHeaderField: "Sec-WebSocket-Protocol") == "chat")
  }

  @Test("Fragments of one byte are joined", arguments: Package.allCases, WebSocketPeer.Entrance.allCases)
  func fragments(package: Package, entrance: WebSocketPeer.Entrance) async throws {
    let text = String((0..<1000).map { "aöx👋"[$0 % 4] })
    try await expectEcho(
      try await client(package, entrance, "/fragments"),
      [.string(text), .data(Data((0..<5000).map { UInt8(truncatingIfNeeded: $0) })), .string("x")])
  }

  /// 64 MB, of which half can be compressed.
  private static let largeData: Data = {
    var word: UInt64 = 0x9E37_79B9_7F4A_7C15
    var block = Data()
    while block.count < 1_000_000 {
      word = word &* 6_364_136_223_846_793_005 &+ 1
      withUnsafeBytes(of: word) { block.append(contentsOf: $0) }
      block.append(contentsOf: [UInt8](repeating: 1, count: 8))
    }
    var data = Data(capacity: 64 * block.count)
    for index in 0..<64 {
      block[0] = UInt8(index)
      data.append(block)
    }
    return data
  }()

  @Test(
    "64 MB arrive whole in both directions",
    arguments: Package.allCases, [WebSocketPeer.Entrance.plain, .compressed, .compressedAlone])
  func largeMessage(package: Package, entrance: WebSocketPeer.Entrance) async throws {
    let data = Self.largeData
    try await expectEcho(
      try await client(package, entrance, "/echo", .maximumMessageSize(data.count)), [.data(data)])
  }

  @Test(
    "Ten thousand pings are answered by each side", arguments: Package.allCases,
    [WebSocketPeer.Entrance.plain, .secure])
  func pings(package: Package, entrance: WebSocketPeer.Entrance) async throws {
    let count = 10_000
    let client = try await client(package, entrance, "/pings?count=\(count)")
    var events = client.task.streamingMessageEvents().makeAsyncIterator()
    guard case .connected? = await events.next()?.kind else {
      Issue.record("not connected")
      return
    }
    let (pongs, continuation) = AsyncStream.makeStream(of: Bool.self)
    for _ in 0..<count {
      client.socket.sendPing(respondingOn: .global()) { response in
        if case .pong = response { continuation.yield(true) } else { continuation.yield(false) }
      }
    }
    var answered = 0
    for await isPong in pongs {
      guard isPong else { break }
      answered += 1
      if answered == count { break }
    }
    #expect(answered == count)
    #expect(await events.next()?.message.map(Content.init) == .text("all"))
    // The handler of the server returns.
    client.socket.send(.string("done"))
    guard case .disconnected(.normalClosure, nil)? = await events.next()?.kind else {
      Issue.record("not closed")
      return
    }
  }

  // MARK: The end

  private func ends(_ events: some AsyncSequence<Event, Never>) async -> [String] {
    var ends: [String] = []
    for await event in events {
      switch event.kind {
      case .disconnected(let code, let reason):
        ends.append("\(code) \(reason.map { String(decoding: $0, as: UTF8.self) } ?? "-")")
      case .completed(let completion):
        let code = (completion.error?.underlyingError as? URLError)?.code
        ends.append(code.map { "\($0.rawValue)" } ?? "end")
      default: break
      }
    }
    return ends
  }

  private static let places: [(Package, WebSocketPeer.Entrance)] = Package.allCases.flatMap { package in
    [(package, .plain), (package, .secure)]
  }

  private static let codes = [1000, 1001, 1003, 1007, 1011, 3000, 4001, 4999]

  @Test("A closure by the server is delivered with its code and reason", arguments: codes, ["", "adjø"])
  func serverCloses(code: Int, reason: String) async throws {
    let query = try #require(reason.addingPercentEncoding(withAllowedCharacters: .urlQueryAllowed))
    for (package, entrance) in Self.places {
      let client = try await client(package, entrance, "/close?code=\(code)&reason=\(query)")
      let shown = reason.isEmpty ? "-" : reason
      #expect(await ends(client.task.streamingMessageEvents()) == ["\(code) \(shown)", "end"])
      #expect(client.socket.isFinished)
    }
  }

  @Test("A closure by the client arrives with its code and reason", arguments: codes, ["", "adjø"])
  func clientCloses(code: Int, reason: String) async throws {
    for (package, entrance) in Self.places {
      let name = UUID().uuidString
      let client = try await client(package, entrance, "/record?name=\(name)")
      let events = client.task.streamingMessageEvents()
      client.socket.close(sending: WebSocketCloseCode(rawValue: code), reason: Data(reason.utf8))
      #expect(await ends(events) == ["\(code) \(reason.isEmpty ? "-" : reason)", "end"])
      let recall = try await self.client(package, entrance, "/recall?name=\(name)")
      var messages = recall.task.streamingMessages().makeAsyncIterator()
      #expect(await messages.next().map(Content.init) == .text("\(code) \(reason)"))
    }
  }

  @Test(
    "A connection without a closing handshake is lost", arguments: Package.allCases,
    [WebSocketPeer.Entrance.plain, .secure])
  func abort(package: Package, entrance: WebSocketPeer.Entrance) async throws {
    let client = try await client(package, entrance, "/abort")
    let ends = await ends(client.task.streamingMessageEvents())
    #expect(ends == ["\(URLError.Code.networkConnectionLost.rawValue)"])
  }
}

extension String {
  /// The character at a position.
  fileprivate subscript(position: Int) -> Character { self[index(startIndex, offsetBy: position)] }
}
