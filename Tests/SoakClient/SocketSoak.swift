import Alamofire

/// Opens and closes a large number of WebSocket connections, one after the other.
enum SocketSoak {
  /// The number of connections after which memory must stop growing.
  private static let warmUp = 250

  struct Report: Codable {
    var before: ProcessFigures
    var after: ProcessFigures
    var failures = 0
    var firstFailure: String?
  }

  /// The ways in which a connection ends.
  private enum End: CaseIterable {
    case serverCloses, serverAborts, cancel, leftLoop, clientCloses

    /// The path of the server that leads to the end.
    var path: String {
      switch self {
      case .serverCloses: "/close?code=1000&reason=end"
      case .serverAborts: "/abort"
      case .cancel, .leftLoop, .clientCloses: "/echo"
      }
    }
  }

  /// Opens and closes `count` connections, and compares the figures of the process before and after.
  ///
  /// - Parameter url: The server without a path.
  static func run(_ url: String, _ options: TransportOptions, count: Int) async throws -> Report {
    let session = Session(transportOptions: options)
    defer { withExtendedLifetime(session) {} }
    var failures = await connect(warmUp, to: url, session)
    let before = try ProcessFigures()
    failures += await connect(count, to: url, session)
    // The pool keeps threads for some seconds.
    let after = try await ProcessFigures.settled { $0.threads <= before.threads }
    return Report(before: before, after: after, failures: failures.count, firstFailure: failures.first)
  }

  /// Opens connections that end in different ways. The last one is closed by the client, so that all have ended.
  private static func connect(_ count: Int, to url: String, _ session: Session) async -> [String] {
    var failures: [String] = []
    for index in 0..<count {
      let end = index == count - 1 ? .clientCloses : End.allCases[index % End.allCases.count]
      if let failure = await connect(url, session, end) { failures.append(failure) }
    }
    return failures
  }

  /// Returns the failure, if the connection does not end as expected.
  private static func connect(_ url: String, _ session: Session, _ end: End) async -> String? {
    let configuration = WebSocketRequest.Configuration(
      protocol: "chat", pingInterval: 60, compressesMessages: true)
    let socket = session.webSocketRequest(to: url + end.path, configuration: configuration)
    let text = String(repeating: "the same words again, ", count: 500)
    var hasEcho = false
    for await event in socket.webSocketTask().streamingMessageEvents() {
      switch event.kind {
      case .connected where end.path == "/echo": socket.send(.string(text))
      case .receivedMessage(.string(text)):
        hasEcho = true
        switch end {
        case .cancel: socket.cancel()
        case .clientCloses: socket.close(sending: .normalClosure)
        case .leftLoop: return nil
        case .serverCloses, .serverAborts: return "\(end): a message arrived"
        }
      case .completed(let completion):
        let isExpected =
          switch (end, completion.error) {
          case (.serverCloses, nil): true
          case (.serverAborts, .sessionTaskFailed(let error)):
            (error as? URLError)?.code == .networkConnectionLost
          case (.cancel, .explicitlyCancelled): hasEcho
          case (.clientCloses, nil): hasEcho
          default: false
          }
        return isExpected ? nil : "\(end): \(completion.error.map { "\($0)" } ?? "no error")"
      default: break
      }
    }
    return "\(end): no completion"
  }
}
