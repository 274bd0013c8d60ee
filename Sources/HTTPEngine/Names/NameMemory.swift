import HTTPWire
import Synchronization

/// What servers have said about names, until it ends.
final class NameMemory: Sendable {
  struct Key: Hashable {
    let service: String
    /// Who makes sure of the server.
    let partition: Int
    let name: String
  }

  private struct Entry {
    let addresses: [IPAddress]
    let end: UInt64
  }

  private static let capacity = 1024
  /// In seconds; nothing is believed for longer.
  private static let longest: UInt32 = 3600

  private let entries = Mutex<[Key: Entry]>([:])

  func addresses(_ key: Key) -> [IPAddress]? {
    let now = Clock.now()
    return entries.withLock { entries in
      guard let entry = entries[key], entry.end > now else { return nil }
      return entry.addresses
    }
  }

  func remember(_ addresses: [IPAddress], for seconds: UInt32, _ key: Key) {
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
