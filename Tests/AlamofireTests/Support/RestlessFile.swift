import Foundation
import HTTPTestServer
import Synchronization

/// A file on a server where everything goes wrong, as often as it is told to and in an order that its seed
/// decides: connections are reset or closed anywhere, the file becomes another one or what it was before, the
/// server has nothing for a while, or wants to be started again, or its client killed.
final class RestlessFile: Sendable {
  enum Validator: Sendable { case entityTag, date }

  /// An intervention of the test when the gate is reached.
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
    /// The version of the last whole file, or part of one, that was sent.
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

  /// - Parameter troubles: How often something goes wrong; then nothing does any more.
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
  /// The number of faults so far, by kind.
  var troubles: [Trouble: Int] { state.withLock { $0.troubles } }
  /// The number of changes of the file.
  var changes: Int { state.withLock { $0.changes } }
  /// The number of responses with the rest of a file.
  var resumptions: Int { state.withLock { $0.resumptions } }

  /// A number of the same sequence that decides about everything.
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

  /// Another version, sometimes; sometimes the one again that the client has a part of.
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
    // A client that waits for the end of the body would wait forever.
    let kinds = Trouble.allCases.filter { $0 != .stall || request.header("X-Cautious") == "yes" }
    let trouble = kinds.randomElement(using: &state.random)
    state.left -= 1
    if let trouble { state.troubles[trouble, default: 0] += 1 }
    return trouble
  }

  /// The file, or the rest of it, up to where the trouble begins.
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

/// Numbers that look random and are the same with each run (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
