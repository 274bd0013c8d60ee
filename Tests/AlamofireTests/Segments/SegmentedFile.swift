import Foundation
import HTTPTestServer
import Randomness
import Synchronization

/// A file on a server with ranges and scripted responses.
final class SegmentedFile: Sendable {
  /// A request for the file.
  struct Question: Sendable {
    /// The number of the request, from 0.
    let index: Int
    /// The range that was sent; `nil` for the whole file.
    let range: Range<Int>?
    let request: RecordedRequest
  }

  typealias Script = @Sendable (_ question: Question, _ reply: Reply) -> Reply

  private struct State {
    var version = 1
    /// The bytes of the current version. They are created once, because that is slow with a sanitizer.
    var bytes: Data
    var questions: [Question] = []
    var script: Script?
  }

  let size: Int
  private let tag: @Sendable (Int) -> String
  private let hasRanges: Bool
  private let readsConditions: Bool
  private let state: Mutex<State>

  init(
    size: Int, hasRanges: Bool = true, readsConditions: Bool = true,
    tag: @escaping @Sendable (Int) -> String = { "\"v\($0)\"" }
  ) {
    self.size = size
    self.hasRanges = hasRanges
    self.readsConditions = readsConditions
    state = Mutex(State(bytes: Self.bytes(size, 1)))
    self.tag = tag
  }

  var routes: Routes {
    Routes.none.adding("/file", methods: ["GET"]) { [self] request, _ in reply(to: request) }
  }

  func server() throws -> HTTPTestServer { try HTTPTestServer(routes: routes) }

  var questions: [Question] { state.withLock { $0.questions } }
  /// The ranges that were sent, in the order of the requests.
  var ranges: [Range<Int>] { questions.compactMap(\.range) }
  /// Returns the ranges that were sent, beginning with the request of this number.
  func ranges(after count: Int) -> [Range<Int>] { questions.dropFirst(count).compactMap(\.range) }

  /// The bytes of the current version.
  var bytes: Data { state.withLock { $0.bytes } }

  func change() {
    state.withLock { state in
      state.version += 1
      state.bytes = Self.bytes(size, state.version)
    }
  }

  /// Changes the replies from now on.
  func script(_ script: Script?) { state.withLock { $0.script = script } }

  private static func bytes(_ size: Int, _ version: Int) -> Data {
    var random = SeededGenerator(seed: UInt64(version))
    var bytes = Data(capacity: size + 8)
    while bytes.count < size {
      withUnsafeBytes(of: random.next()) { bytes.append(contentsOf: $0) }
    }
    return bytes.prefix(size)
  }

  private func reply(to request: RecordedRequest) -> Reply {
    let (version, whole) = state.withLock { ($0.version, $0.bytes) }
    var range: Range<Int>?
    if hasRanges, let text = request.header("Range"),
      !readsConditions || request.header("If-Range").map({ $0 == tag(version) }) ?? true
    {
      let ends = text.dropFirst(6).split(separator: "-").compactMap { Int($0) }
      if ends.count == 2, ends[0] < size { range = ends[0]..<min(ends[1] + 1, size) }
      if ends.first == size {
        return Reply(status: 416, headers: [.init(name: "Content-Range", value: "bytes */\(size)")])
      }
    }
    var reply = Reply.data(Array(range.map { whole[$0] } ?? whole)).with(header: "ETag", value: tag(version))
    if let range {
      reply.status = 206
      reply = reply.with(
        header: "Content-Range", value: "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(size)")
    }
    let (question, script) = state.withLock { state in
      let question = Question(index: state.questions.count, range: range, request: request)
      state.questions.append(question)
      return (question, state.script)
    }
    return script?(question, reply) ?? reply
  }
}

extension Reply {
  /// Holds the body back after some bytes.
  func held(after count: Int, by gate: Gate) -> Reply {
    guard case .bytes(let bytes) = body else { return self }
    var reply = self
    reply.body = .parts([
      .bytes(Array(bytes.prefix(count))), .gate(gate), .bytes(Array(bytes.dropFirst(count))),
    ])
    return reply.framed(.contentLength)
  }
}
