/// The counts that answers to challenges have used. A server may send one nonce to several requests at once, and each
/// answer needs another count (RFC 7616 §3.4). Pure and bounded: the nonce that was added first is forgotten first.
package struct NonceCounts: Sendable {
  private struct Key: Hashable {
    let origin: Origin
    let nonce: String
  }

  private let limit: Int
  private var counts: [Key: UInt32] = [:]
  /// The nonces in the order in which they came, as a ring.
  private var order: [Key] = []
  private var oldest = 0

  package init(limit: Int = 64) {
    self.limit = max(1, limit)
  }

  /// Returns the last count of a nonce; 0 if it was not used, or is forgotten.
  package func last(of nonce: String, from origin: Origin) -> UInt32 {
    counts[Key(origin: origin, nonce: nonce)] ?? 0
  }

  /// Returns the ticket of an answer to a challenge, with the next count of its nonce.
  ///
  /// - Parameter known: The largest count that is known from elsewhere.
  package mutating func ticket(
    answering challenge: DigestChallenge, from origin: Origin, after known: UInt32 = 0
  ) -> DigestTicket {
    let first = DigestTicket.first(for: challenge)
    let used = max(known, last(of: challenge.nonce, from: origin))
    // After the last count, only the server can help, with another nonce.
    let count = used < .max ? used + 1 : 1
    note(count, of: Key(origin: origin, nonce: challenge.nonce))
    return first.counted(count)
  }

  private mutating func note(_ count: UInt32, of key: Key) {
    guard counts.updateValue(count, forKey: key) == nil else { return }
    guard order.count == limit else { return order.append(key) }
    counts[order[oldest]] = nil
    order[oldest] = key
    oldest = (oldest + 1) % limit
  }
}
