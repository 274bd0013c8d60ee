/// The hash function MD4 (RFC 1320), from which NTLM derives its keys. OpenSSL 3 has it in its legacy provider only.
package enum MD4 {
  /// Returns the hash of some bytes: 16 bytes.
  package static func hash(_ message: [UInt8]) -> [UInt8] {
    var padded = message
    padded.append(0x80)
    while padded.count % 64 != 56 { padded.append(0) }
    padded.appendLittleEndian(UInt64(message.count) &* 8)
    var state: [UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476]
    for start in stride(from: 0, to: padded.count, by: 64) {
      let words = (0..<16).map { index in
        (0..<4).reduce(UInt32(0)) { $0 | UInt32(padded[start + index * 4 + $1]) << UInt32($1 * 8) }
      }
      mix(&state, with: words)
    }
    var hash: [UInt8] = []
    for word in state { hash.appendLittleEndian(word) }
    return hash
  }

  /// The order of the words and the rotations of the three rounds (RFC 1320 §3.4).
  private static let rounds: [(constant: UInt32, rotations: [UInt32], order: [Int])] = [
    (0, [3, 7, 11, 19], Array(0..<16)),
    (0x5A82_7999, [3, 5, 9, 13], [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15]),
    (0x6ED9_EBA1, [3, 9, 11, 15], [0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15]),
  ]

  private static func mix(_ state: inout [UInt32], with words: [UInt32]) {
    var (a, b, c, d) = (state[0], state[1], state[2], state[3])
    for (number, round) in rounds.enumerated() {
      for (step, index) in round.order.enumerated() {
        let sum = a &+ mixed(b, c, d, inRound: number) &+ words[index] &+ round.constant
        let rotation = round.rotations[step % 4]
        (a, b, c, d) = (d, sum << rotation | sum >> (32 - rotation), b, c)
      }
    }
    state[0] &+= a
    state[1] &+= b
    state[2] &+= c
    state[3] &+= d
  }

  private static func mixed(_ x: UInt32, _ y: UInt32, _ z: UInt32, inRound round: Int) -> UInt32 {
    switch round {
    case 0: x & y | ~x & z
    case 1: x & y | x & z | y & z
    default: x ^ y ^ z
    }
  }
}

extension [UInt8] {
  /// Appends the bytes of a number, the lowest first.
  package mutating func appendLittleEndian(_ number: some FixedWidthInteger & UnsignedInteger) {
    Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
  }
}
