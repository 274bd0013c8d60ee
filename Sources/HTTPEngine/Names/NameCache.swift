import HTTPWire
import Synchronization

/// The addresses of names, until they expire.
final class NameCache: Sendable {
  struct Key: Hashable {
    let service: String
    /// The partition of the trust settings by which the name service was verified.
    let partition: Int
    let name: String
  }

  private struct Entry {
    let addresses: [IPAddress]
    let end: UInt64
  }

  private static let capacity = 1024
  /// The longest time for which an answer is kept, in seconds.
  private static let longest: UInt32 = 3600

  private let entries = Mutex<[Key: Entry]>([:])

  func addresses(_ key: Key) -> [IPAddress]? {
    let now = Clock.now()
    return entries.withLock { entries in
      guard let entry = entries[key], entry.end > now else { return nil }
      return entry.addresses
    }
  }

  func store(_ addresses: [IPAddress], for seconds: UInt32, _ key: Key) {
    guard seconds > 0 else { return }
    let now = Clock.now()
    let entry = Entry(addresses: addresses, end: now + UInt64(min(seconds, Self.longest)) * 1_000_000_000)
    entries.withLock { entries in
      if entries.count >= Self.capacity {
        entries = entries.filter { $0.value.end > now }
        if entries.count >= Self.capacity { entries.removeAll() }
      }
      entries[key] = entry
    }
  }
}
