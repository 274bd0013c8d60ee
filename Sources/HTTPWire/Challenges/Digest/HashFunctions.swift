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

  /// Returns the hash of some texts with a colon between them, in hexadecimal digits.
  func text(_ algorithm: DigestChallenge.Algorithm, _ parts: String...) -> String? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(parts.reduce(parts.count) { $0 + $1.utf8.count })
    for (index, part) in parts.enumerated() {
      if index > 0 { bytes.append(UInt8(ascii: ":")) }
      bytes.append(contentsOf: part.utf8)
    }
    return text(algorithm, bytes)
  }

  /// Returns lower-case hexadecimal digits, two for each byte.
  package static func digits(_ bytes: [UInt8]) -> String {
    String(unsafeUninitializedCapacity: bytes.count * 2) { digits in
      for (index, byte) in bytes.enumerated() {
        digits[2 * index] = HexDigit.lowercase(byte >> 4)
        digits[2 * index + 1] = HexDigit.lowercase(byte)
      }
      return bytes.count * 2
    }
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

/// Hexadecimal digits in ASCII.
enum HexDigit {
  /// Returns the digit of the lower four bits of a value.
  static func lowercase(_ value: UInt8) -> UInt8 {
    let value = value & 15
    return value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
  }
}
