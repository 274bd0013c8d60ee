/// SHA-256 (FIPS 180-4), for texts that are compared and should not be kept: secrets among the fields that select
/// a stored response.
package enum SHA256 {
  /// 64 hexadecimal digits.
  package static func hexadecimal(_ text: String) -> String { hexadecimal(Array(text.utf8)) }

  package static func hexadecimal(_ message: [UInt8]) -> String {
    let digits: StaticString = "0123456789abcdef"
    let digest = digest(message)
    return String(unsafeUninitializedCapacity: 2 * digest.count) { room in
      for (index, byte) in digest.enumerated() {
        room[2 * index] = digits.utf8Start[Int(byte >> 4)]
        room[2 * index + 1] = digits.utf8Start[Int(byte & 15)]
      }
      return 2 * digest.count
    }
  }

  package static func digest(_ message: [UInt8]) -> [UInt8] {
    var padded = message
    padded.reserveCapacity(message.count + 72)
    padded.append(0x80)
    padded.append(contentsOf: repeatElement(0, count: (120 - padded.count % 64) % 64))
    let bits = UInt64(message.count) &* 8
    for place in 0..<8 { padded.append(UInt8(truncatingIfNeeded: bits >> UInt64(56 - 8 * place))) }
    var state: State = (
      0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A, 0x510E_527F, 0x9B05_688C, 0x1F83_D9AB, 0x5BE0_CD19
    )
    padded.withUnsafeBufferPointer { bytes in
      constants.withUnsafeBufferPointer { constants in
        // One array of words for all blocks: a request with a long token is digested before its answer is found.
        withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 64) { words in
          for start in stride(from: 0, to: bytes.count, by: 64) {
            expand(UnsafeBufferPointer(rebasing: bytes[start..<(start + 64)]), into: words)
            compress(words, constants, into: &state)
          }
        }
      }
    }
    let (a, b, c, d, e, f, g, h) = state
    var digest: [UInt8] = []
    digest.reserveCapacity(32)
    for word in [a, b, c, d, e, f, g, h] {
      for place in 0..<4 { digest.append(UInt8(truncatingIfNeeded: word >> UInt32(24 - 8 * place))) }
    }
    return digest
  }

  private typealias State = (UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32)

  private static func expand(
    _ block: UnsafeBufferPointer<UInt8>, into words: UnsafeMutableBufferPointer<UInt32>
  ) {
    for index in 0..<16 {
      let place = 4 * index
      words[index] =
        UInt32(block[place]) << 24 | UInt32(block[place + 1]) << 16 | UInt32(block[place + 2]) << 8
        | UInt32(block[place + 3])
    }
    for index in 16..<64 {
      let early = words[index - 15]
      let late = words[index - 2]
      let first = rotated(early, 7) ^ rotated(early, 18) ^ early >> 3
      let second = rotated(late, 17) ^ rotated(late, 19) ^ late >> 10
      words[index] = words[index - 16] &+ first &+ words[index - 7] &+ second
    }
  }

  private static func compress(
    _ words: UnsafeMutableBufferPointer<UInt32>, _ constants: UnsafeBufferPointer<UInt32>,
    into state: inout State
  ) {
    var (a, b, c, d, e, f, g, h) = state
    for index in 0..<64 {
      let choice = (e & f) ^ (~e & g)
      let sum = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)
      let first = h &+ sum &+ choice &+ constants[index] &+ words[index]
      let majority = (a & b) ^ (a & c) ^ (b & c)
      let second = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) &+ majority
      (h, g, f, e) = (g, f, e, d &+ first)
      (d, c, b, a) = (c, b, a, first &+ second)
    }
    state.0 &+= a
    state.1 &+= b
    state.2 &+= c
    state.3 &+= d
    state.4 &+= e
    state.5 &+= f
    state.6 &+= g
    state.7 &+= h
  }

  private static func rotated(_ word: UInt32, _ count: UInt32) -> UInt32 {
    word >> count | word << (32 - count)
  }

  /// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
  private static let constants: [UInt32] = [
    0x428A_2F98, 0x7137_4491, 0xB5C0_FBCF, 0xE9B5_DBA5, 0x3956_C25B, 0x59F1_11F1, 0x923F_82A4, 0xAB1C_5ED5,
    0xD807_AA98, 0x1283_5B01, 0x2431_85BE, 0x550C_7DC3, 0x72BE_5D74, 0x80DE_B1FE, 0x9BDC_06A7, 0xC19B_F174,
    0xE49B_69C1, 0xEFBE_4786, 0x0FC1_9DC6, 0x240C_A1CC, 0x2DE9_2C6F, 0x4A74_84AA, 0x5CB0_A9DC, 0x76F9_88DA,
    0x983E_5152, 0xA831_C66D, 0xB003_27C8, 0xBF59_7FC7, 0xC6E0_0BF3, 0xD5A7_9147, 0x06CA_6351, 0x1429_2967,
    0x27B7_0A85, 0x2E1B_2138, 0x4D2C_6DFC, 0x5338_0D13, 0x650A_7354, 0x766A_0ABB, 0x81C2_C92E, 0x9272_2C85,
    0xA2BF_E8A1, 0xA81A_664B, 0xC24B_8B70, 0xC76C_51A3, 0xD192_E819, 0xD699_0624, 0xF40E_3585, 0x106A_A070,
    0x19A4_C116, 0x1E37_6C08, 0x2748_774C, 0x34B0_BCB5, 0x391C_0CB3, 0x4ED8_AA4A, 0x5B9C_CA4F, 0x682E_6FF3,
    0x748F_82EE, 0x78A5_636F, 0x84C8_7814, 0x8CC7_0208, 0x90BE_FFFA, 0xA450_6CEB, 0xBEF9_A3F7, 0xC671_78F2,
  ]
}
