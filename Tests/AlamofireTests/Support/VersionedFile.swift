import Foundation
import HTTPTestServer
import HTTPWire
import Synchronization

/// A file on a server with ranges, scripted interruptions and changes of its version.
final class VersionedFile: Sendable {
  enum Validator: Sendable { case entityTag, weakTag, date, none }

  private struct State {
    var version = 1
    var breaks: [Int] = []
    var wrongRange = false
  }

  let size: Int
  private let validator: Validator
  private let state = Mutex(State())

  init(size: Int, validator: Validator = .entityTag) {
    self.size = size
    self.validator = validator
  }

  var routes: Routes {
    Routes.none.adding("/file", methods: ["GET"]) { [self] request, _ in reply(to: request) }
  }

  /// The bytes of the current version.
  var bytes: Data { Self.bytes(size, state.withLock { $0.version }) }

  /// Changes the version. The size stays.
  func change() { state.withLock { $0.version += 1 } }

  /// Interrupts the next responses after these numbers of bytes.
  func breakAfter(_ counts: Int...) { state.withLock { $0.breaks += counts } }

  /// Sends other ranges than requested from now on.
  func sendWrongRanges() { state.withLock { $0.wrongRange = true } }

  private static func bytes(_ size: Int, _ version: Int) -> Data {
    var random = UInt64(version) &* 0x9E37_79B9_7F4A_7C15
    return Data(
      (0..<size).map { _ in
        random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return UInt8(truncatingIfNeeded: random >> 33)
      })
  }

  func reply(to request: RecordedRequest) -> Reply {
    let (version, breaking, isWrong) = state.withLock { state in
      (state.version, state.breaks.isEmpty ? nil : state.breaks.removeFirst(), state.wrongRange)
    }
    let whole = Self.bytes(size, version)
    var reply = Reply.data(Array(whole))
    var current: String?
    switch validator {
    case .entityTag: current = "\"v\(version)\""
    case .weakTag: current = "W/\"v\(version)\""
    case .date: current = "Mon, 0\(version) Jan 2024 00:00:00 GMT"
    case .none: break
    }
    // A date is a strong validator only if the response is younger.
    reply = reply.with(header: "Date", value: "Mon, 01 Jul 2024 00:00:00 GMT")
    if let current {
      reply = reply.with(header: validator == .date ? "Last-Modified" : "ETag", value: current)
    }
    if let range = request.header("Range"), request.header("If-Range").map({ $0 == current }) ?? true,
      let start = Int(range.dropFirst(6).dropLast()), start < size
    {
      let first = isWrong ? start + 1 : start
      reply.status = 206
      reply.body = .bytes(Array(whole[first...]))
      reply = reply.with(header: "Content-Range", value: "bytes \(first)-\(size - 1)/\(size)")
    }
    return breaking.map { reply.with(effect: .closeAfterBody(bytes: $0)) } ?? reply
  }
}
