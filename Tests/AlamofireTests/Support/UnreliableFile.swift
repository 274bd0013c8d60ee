import Foundation
import HTTPTestServer
import Randomness
import Synchronization

/// A file on a server with scripted faults. The seed decides their order. Connections are reset or closed at any
/// byte, the file changes its version forwards or backwards, and the server responds with errors, or demands that it
/// is restarted or its client is killed.
final class UnreliableFile: Sendable {
  enum Validator: Sendable { case entityTag, date }

  /// An action of the test when the gate is reached.
  enum Intervention: Sendable {
    case killClient(Gate)
    case restart(Gate)
  }

  enum Trouble: String, CaseIterable, Sendable {
    case reset, close, unavailable, stall, kill, restart
  }

  private struct State {
    var random: SeededGenerator
    var version = 1
    /// The version of the last complete or partial response.
    var sent = 1
    var left: Int
    var troubles: [Trouble: Int] = [:]
    var changes = 0
    var resumptions = 0
  }

  static let size = 300_000
  private static let contents = (1...3).map(content)

  let interventions: AsyncStream<Intervention>
  private let calls: AsyncStream<Intervention>.Continuation
  private let validator: Validator
  private let state: Mutex<State>

  /// Makes the file, whose validator is an entity tag or a date.
  ///
  /// - Parameter troubles: The number of faults. After that all responses are complete.
  init(_ validator: Validator, seed: UInt64, troubles: Int) {
    self.validator = validator
    state = Mutex(State(random: SeededGenerator(seed: seed), left: troubles))
    (interventions, calls) = AsyncStream.makeStream()
  }

  var routes: Routes {
    Routes.none.adding("/file", methods: ["GET"]) { [self] request, _ in reply(to: request) }
  }

  /// The bytes of the version that was sent last.
  var content: Data { Self.contents[state.withLock { $0.sent } - 1] }
  /// The number of remaining faults.
  var troublesLeft: Int { state.withLock { $0.left } }
  /// The number of faults by kind.
  var troubles: [Trouble: Int] { state.withLock { $0.troubles } }
  /// The number of changes of the version.
  var changes: Int { state.withLock { $0.changes } }
  /// The number of partial responses.
  var resumptions: Int { state.withLock { $0.resumptions } }

  /// Returns a number of the random sequence that decides about all faults.
  func random(in range: ClosedRange<Int>) -> Int {
    state.withLock { Int.random(in: range, using: &$0.random) }
  }

  private static func content(_ version: Int) -> Data {
    var random = SeededGenerator(seed: UInt64(version))
    return Data((0..<size).map { _ in UInt8(truncatingIfNeeded: random.next()) })
  }

  private func reply(to request: RecordedRequest) -> Reply {
    state.withLock { state in
      if state.left > 0 { change(for: request, &state) }
      let trouble = self.trouble(request, &state)
      if trouble == .unavailable {
        return Reply.text("come again").with(header: "Retry-After", value: "1").unavailable
      }
      state.sent = state.version
      return sending(request, trouble, &state)
    }
  }

  /// Sometimes changes the version. The new one is sometimes the version of the client's part.
  private func change(for request: RecordedRequest, _ state: inout State) {
    let known = (1...Self.contents.count).first { name(of: $0) == request.header("If-Range") }
    let chance = Int.random(in: 0..<5, using: &state.random)
    let version =
      switch chance {
      case 0: Int.random(in: 1...Self.contents.count, using: &state.random)
      case 1, 2: known ?? state.version
      default: state.version
      }
    if version != state.version { state.changes += 1 }
    state.version = version
  }

  private func name(of version: Int) -> String {
    validator == .entityTag ? "\"v\(version)\"" : "Mon, 0\(version) Jan 2024 00:00:00 GMT"
  }

  private func trouble(_ request: RecordedRequest, _ state: inout State) -> Trouble? {
    guard state.left > 0, Int.random(in: 0..<4, using: &state.random) > 0 else { return nil }
    // Only a cautious client cancels on its own. Any other client would wait for the rest of the body forever.
    let kinds = Trouble.allCases.filter { $0 != .stall || request.header("X-Cautious") == "yes" }
    let trouble = kinds.randomElement(using: &state.random)
    state.left -= 1
    if let trouble { state.troubles[trouble, default: 0] += 1 }
    return trouble
  }

  /// Returns the file, or the rest of it, up to the fault.
  private func sending(_ request: RecordedRequest, _ trouble: Trouble?, _ state: inout State) -> Reply {
    let current = name(of: state.version)
    var reply = Reply(headers: [.init(name: "Date", value: "Mon, 01 Jul 2024 00:00:00 GMT")])
      .with(header: validator == .date ? "Last-Modified" : "ETag", value: current)
    var bytes = Array(Self.contents[state.version - 1])
    if let range = request.header("Range"), request.header("If-Range") == current,
      let start = Int(range.dropFirst(6).dropLast()), start < Self.size
    {
      reply.status = 206
      reply = reply.with(header: "Content-Range", value: "bytes \(start)-\(Self.size - 1)/\(Self.size)")
      bytes.removeFirst(start)
      state.resumptions += 1
    }
    let length = Int.random(in: 1...bytes.count, using: &state.random)
    switch trouble {
    case .reset: reply.effect = .resetAfterBody(bytes: length - 1)
    case .close: reply.effect = .closeAfterBody(bytes: length - 1)
    case .stall, .kill, .restart:
      let gate = Gate()
      reply.body = .parts([.bytes(Array(bytes[..<length])), .gate(gate), .bytes(Array(bytes[length...]))])
      if trouble == .kill { calls.yield(.killClient(gate)) }
      if trouble == .restart { calls.yield(.restart(gate)) }
      return reply.framed(.contentLength)
    case .unavailable, nil: break
    }
    reply.body = .bytes(bytes)
    return reply
  }
}

extension Reply {
  fileprivate var unavailable: Reply {
    var reply = self
    reply.status = 503
    return reply
  }
}
