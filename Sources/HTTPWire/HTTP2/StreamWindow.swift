/// The sizes of all receiving windows of one connection of HTTP/2, which together are the memory that a server can
/// fill.
package struct WindowBudget: Sendable, Equatable {
  private let limit: Int
  /// The sum of the windows.
  package private(set) var total = 0

  /// Makes the budget of a connection; windows begin above it if need be, but do not grow then.
  package init(limit: Int = 64 << 20) { self.limit = limit }

  fileprivate mutating func add(_ size: Int) { total += size }

  fileprivate mutating func grow(by size: Int) -> Bool {
    guard limit - total >= size else { return false }
    total += size
    return true
  }

  fileprivate mutating func remove(_ size: Int) { total -= size }
}

/// The receiving window of a stream of HTTP/2 (RFC 9113 §5.2). It begins small, and doubles each time its reader has
/// read a whole window without falling behind. Otherwise a distant server would wait for updates of the window. Pure.
package struct StreamWindow: Sendable, Equatable {
  /// The first size, which the client announces as SETTINGS_INITIAL_WINDOW_SIZE.
  package static let initialSize = 256 << 10
  package static let largestSize = 8 << 20

  package private(set) var size = Self.initialSize
  /// The bytes that were received and not read.
  package private(set) var unread = 0
  /// The bytes that were read since the reader fell behind, or the window grew.
  private var readSinceChange = 0
  private var isOpen = true

  /// Makes the window of a new stream.
  package init(in budget: inout WindowBudget) { budget.add(size) }

  /// Notes bytes of the server.
  package mutating func received(_ count: Int) {
    guard isOpen else { return }
    unread += max(0, count)
    // The reader is slower than the connection. A larger window would hold more memory, and gain nothing.
    if unread > size / 2 { readSinceChange = 0 }
  }

  /// Notes bytes that the reader took. Returns the new size if the window grows.
  package mutating func read(_ count: Int, in budget: inout WindowBudget) -> Int? {
    guard isOpen else { return nil }
    let count = min(max(0, count), unread)
    unread -= count
    guard unread <= size / 2 else { return nil }
    readSinceChange += count
    guard readSinceChange >= size, size < Self.largestSize, budget.grow(by: size) else { return nil }
    readSinceChange = 0
    size *= 2
    return size
  }

  /// Returns the window to the budget when the stream has ended.
  package mutating func close(in budget: inout WindowBudget) {
    guard isOpen else { return }
    isOpen = false
    budget.remove(size)
  }
}
