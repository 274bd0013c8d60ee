import Alamofire
import Foundation
import Scorecard

/// Uses WebSocket connections with the public API of this package.
final class SocketClient: Sendable {
  private typealias Messages = StreamOf<URLSessionWebSocketTask.Message>.Iterator

  private let session = Session()
  private let url: URL
  private let work: SocketRow.Work
  /// The pause before each text, in microseconds.
  private let pause: UInt32

  init(url: URL, work: SocketRow.Work, pause: UInt32) {
    self.url = url
    self.work = work
    self.pause = pause
  }

  func measure(_ row: SocketRow) async throws -> SocketFigures {
    let socket = session.webSocketRequest(to: url, configuration: .maximumMessageSize(work.size))
    var messages = socket.webSocketTask().streamingMessages().makeAsyncIterator()
    try await echo(200, SocketRow.Work(messages: 200, size: 64), Self.text(64), socket, &messages)
    let idle = Memory.megabytes("VmRSS")

    let marks = CountingMarks()
    let processor = Clock.processor()
    let start = Clock.monotonic()
    marks?.reset()
    try await perform(row, socket, &messages)
    let counts = marks?.read()
    let seconds = Double(Clock.monotonic() - start) / 1e9
    let cpuSeconds = Double(Clock.processor() - processor) / 1e9
    let peak = Memory.peakMegabytes()
    socket.cancel()
    return SocketFigures(
      messages: work.messages, seconds: seconds, cpuSeconds: cpuSeconds, idleMegabytes: idle,
      peakMegabytes: peak, counts: counts)
  }

  private func perform(
    _ row: SocketRow, _ socket: WebSocketRequest, _ messages: inout Messages
  ) async throws {
    switch row {
    case .echo, .echoes: try await echo(work.messages, work, Self.text(work.size), socket, &messages)
    case .send, .sendLarge: try await send(socket, &messages)
    case .receive, .receiveLarge: try await receive(socket, &messages)
    case .idle: try await openConnections()
    }
  }

  private static func text(_ size: Int) -> String { String(repeating: "a", count: size) }

  private func echo(
    _ count: Int, _ work: SocketRow.Work, _ text: String, _ socket: WebSocketRequest,
    _ messages: inout Messages
  ) async throws {
    var sent = 0
    while sent < min(work.window, count) {
      socket.send(.string(text))
      sent += 1
    }
    for _ in 0..<count {
      guard case .string(let echo)? = await messages.next(), echo.utf8.count == work.size else {
        throw UnexpectedResponse()
      }
      guard sent < count else { continue }
      if pause > 0 { usleep(pause) }
      socket.send(.string(text))
      sent += 1
    }
  }

  private func send(_ socket: WebSocketRequest, _ messages: inout Messages) async throws {
    let task = socket.webSocketTask()
    for index in 0..<work.messages {
      try await task.send(.data(Data(repeating: UInt8(truncatingIfNeeded: index), count: work.size)))
    }
    // The answer is the number of bytes that have arrived.
    try await task.send(.string("?"))
    guard case .string(let answer)? = await messages.next(), Int(answer) == work.messages * work.size else {
      throw UnexpectedResponse()
    }
  }

  private func receive(_ socket: WebSocketRequest, _ messages: inout Messages) async throws {
    socket.send(.string("#\(work.messages) \(work.size)"))
    for _ in 0..<work.messages {
      guard case .data(let data)? = await messages.next(), data.count == work.size else {
        throw UnexpectedResponse()
      }
    }
  }

  /// Opens the connections and keeps them until the end of the process.
  private func openConnections() async throws {
    var open: [(WebSocketRequest, Messages)] = []
    let text = Self.text(work.size)
    for _ in 0..<work.connections {
      let socket = session.webSocketRequest(to: url)
      var messages = socket.webSocketTask().streamingMessages().makeAsyncIterator()
      try await echo(1, work, text, socket, &messages)
      open.append((socket, messages))
    }
    withExtendedLifetime(open) {}
  }
}
