import Alamofire

// Samples of the comments and the page on WebSocket connections; see `SampleTests`.

private struct Price: Decodable, Sendable { let amount: Double }

private func chat(session: Session) {
  let socket = session.webSocketRequest(to: "wss://example.com/chat")
  socket.streamMessageEvents { event in
    switch event.kind {
    case .connected: socket.send(.string("hello"))
    case .receivedMessage(let message): print(message)
    case .disconnected(let code, _): print("closed with \(code)")
    case .completed(let completion): print(completion.error ?? "the end")
    }
  }
}

private func awaitedChat(session: Session) async throws {
  let task = session.webSocketRequest(to: "wss://example.com/chat").webSocketTask()
  let messages = task.streamingMessages()
  try await task.send(.string("hello"))
  for await message in messages { print(message) }
}

private func events(task: WebSocketTask) async {
  for await event in task.streamingMessageEvents() {
    switch event.kind {
    case .receivedMessage(.string(let text)): print(text)
    case .receivedMessage(let message): print("bytes", message)
    case .connected(let subprotocol): print(subprotocol ?? "no subprotocol")
    case .disconnected(let code, let reason): print(code, reason?.count ?? 0)
    case .completed(let completion): print(completion.error?.localizedDescription ?? "the end")
    }
  }
}

private func configured(session: Session, queue: DispatchQueue) {
  let configuration = WebSocketRequest.Configuration(
    protocol: "chat", maximumMessageSize: 65_536, pingInterval: 30, compressesMessages: true)
  let socket = session.webSocketRequest(
    to: "wss://example.com/chat", configuration: configuration, interceptor: .retryPolicy)
  socket.streamMessageEvents(on: queue) { event in
    guard case .connected = event.kind else { return }
    socket.sendPing(respondingOn: queue) { response in
      if case .pong(let pong) = response { print(pong.latency) }
    }
  }
}

private struct UnknownVersion: Error {}

private func validated(session: Session) {
  let socket = session.webSocketRequest(to: "wss://example.com/chat").validate()
  socket.validate { _, response, _ in
    response.value(forHTTPHeaderField: "X-Version") == "3" ? .success(()) : .failure(UnknownVersion())
  }
  socket.streamMessageEvents { event in
    guard case .completed(let completion) = event.kind else { return }
    if completion.error?.responseCode == 503 { print("Too many clients") }
  }
}

private func prices(session: Session) {
  let socket = session.webSocketRequest(to: "wss://example.com/prices", configuration: .pingInterval(30))
  socket.streamDecodable(Price.self) { price in print(price) }
}

struct LineCount: WebSocketMessageSerializer {
  func decode(_ message: URLSessionWebSocketTask.Message) throws -> Int {
    guard case .string(let text) = message else { return 0 }
    return text.split(separator: "\n").count
  }
}

private func codes() {
  let code = WebSocketCloseCode(rawValue: 4001)
  print(code)
}
