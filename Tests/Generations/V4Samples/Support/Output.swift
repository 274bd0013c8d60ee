import Foundation

/// The printed output of the samples, which the tests check.
final class Output: @unchecked Sendable {
  // Unchecked: the variables are protected by the lock.
  static let shared = Output()

  private let lock = NSLock()
  private var lines: [String] = []
  private var waiter: (count: Int, continuation: CheckedContinuation<Void, Never>)?

  func clear() { lock.withLock { lines = [] } }

  func add(_ line: String) {
    let woken = lock.withLock { () -> CheckedContinuation<Void, Never>? in
      lines.append(line)
      guard let waiter, lines.count >= waiter.count else { return nil }
      self.waiter = nil
      return waiter.continuation
    }
    woken?.resume()
  }

  /// Waits until `count` lines have been printed, and removes them.
  func take(_ count: Int) async -> [String] {
    await withCheckedContinuation { continuation in
      let isThere = lock.withLock { () -> Bool in
        if lines.count >= count { return true }
        waiter = (count, continuation)
        return false
      }
      if isThere { continuation.resume() }
    }
    return lock.withLock {
      defer { lines.removeFirst(count) }
      return Array(lines.prefix(count))
    }
  }
}

/// Waits for the next `count` lines that a sample prints.
func printed(_ count: Int = 1) async -> [String] { await Output.shared.take(count) }

// These functions hide the standard library's, and print the value in an optional. The documents are older than the
// compiler's warning about printed optionals.

func print(_ items: Any...) {
  Output.shared.add(items.map { "\($0)" }.joined(separator: " "))
}

func print(_ item: Any?) {
  Output.shared.add(item.map { "\($0)" } ?? "nil")
}

func debugPrint(_ items: Any...) {
  Output.shared.add(items.map { String(reflecting: $0) }.joined(separator: " "))
}

func debugPrint(_ item: Any?) {
  Output.shared.add(item.map { String(reflecting: $0) } ?? "nil")
}
