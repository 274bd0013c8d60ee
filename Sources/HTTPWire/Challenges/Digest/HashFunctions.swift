import FoundationEssentials

/// Computes the hashes that Digest needs: HTTPWire itself has none.
package protocol HashFunctions: Sendable {
  /// Returns the hash of some bytes; `nil` when the system does not allow this algorithm.
  func hash(_ algorithm: DigestChallenge.Algorithm, _ bytes: [UInt8]) -> [UInt8]?
  /// Makes a hash of bytes that come one after the other; `nil` when the system does not allow this algorithm.
  func makeRunningHash(_ algorithm: DigestChallenge.Algorithm) -> (any RunningHash)?
}

/// A hash that is not complete.
package protocol RunningHash: AnyObject {
  func add(_ bytes: UnsafeRawBufferPointer)
  /// Returns the hash of all that was added; to be called once. `nil` when an update failed.
  func finish() -> [UInt8]?
}

extension HashFunctions {
  /// Returns the hash of some bytes in hexadecimal digits, as Digest writes it.
  package func text(_ algorithm: DigestChallenge.Algorithm, _ bytes: [UInt8]) -> String? {
    hash(algorithm, bytes).map(Self.digits)
  }

  func text(_ algorithm: DigestChallenge.Algorithm, _ text: String) -> String? {
    self.text(algorithm, Array(text.utf8))
  }

  /// Returns lower-case hexadecimal digits, two for each byte.
  package static func digits(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef".utf8)
    return String(
      decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
  }

  /// Returns the hash of a body; `nil` if it cannot be read again from its first byte. The call reads files, so it
  /// must not run on the thread of the transport.
  package func text(_ algorithm: DigestChallenge.Algorithm, of body: RequestBody) -> String? {
    guard let hash = makeRunningHash(algorithm) else { return nil }
    switch body {
    case .none: break
    case .bytes(let data): data.withUnsafeBytes { hash.add($0) }
    case .source(let source):
      guard source.isStored, source.start(wake: {}) == nil else { return nil }
      defer { source.stop() }
      let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 16)
      defer { room.deallocate() }
      reading: while true {
        switch source.read(into: room) {
        case .bytes(let count): hash.add(UnsafeRawBufferPointer(rebasing: room[..<count]))
        case .end: break reading
        case .wait, .failure: return nil
        }
      }
    }
    return hash.finish().map(Self.digits)
  }
}
