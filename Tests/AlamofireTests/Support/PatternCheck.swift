import Foundation
import HTTPTestServer
import Synchronization

/// Compares the chunks of a body with the deterministic content of the test server.
final class PatternCheck: Sendable {
  private struct State {
    var count = 0
    var isRight = true
  }

  private static let whole = Data(Reply.patternBytes(65_521))
  private let state = Mutex(State())

  var count: Int { state.withLock { $0.count } }

  /// Returns whether this is the first chunk.
  func add(_ data: Data) -> Bool {
    state.withLock { state in
      let isFirst = state.count == 0
      var rest = data[...]
      while !rest.isEmpty {
        let place = state.count % Self.whole.count
        let length = min(rest.count, Self.whole.count - place)
        if rest.prefix(length) != Self.whole[place..<place + length] { state.isRight = false }
        rest = rest.dropFirst(length)
        state.count += length
      }
      return isFirst
    }
  }

  /// Returns whether exactly `count` bytes were added, all of them correct.
  func isRight(_ count: Int) -> Bool { state.withLock { $0.isRight && $0.count == count } }
}

extension InputStream {
  /// Returns the next bytes, or `nil` at the end and after a failure.
  func bytes(_ count: Int) -> Data? {
    var buffer = [UInt8](repeating: 0, count: count)
    let length = read(&buffer, maxLength: count)
    return length > 0 ? Data(buffer[..<length]) : nil
  }
}

/// Runs blocking code on a separate thread, because it must not block a thread of the pool.
func onAThread<Value, Result: Sendable>(
  _ value: Value, _ body: @escaping @Sendable (Value) -> Result
) async -> Result {
  nonisolated(unsafe) let value = value
  return await withCheckedContinuation { continuation in
    Thread { continuation.resume(returning: body(value)) }.start()
  }
}
