import FoundationEssentials

/// Messages of NTLM for scripts of servers.
enum NTLMExample {
  /// The second message: the challenge of the server (MS-NLMP 2.2.1.2), in base64.
  static let challenge: String = {
    let empty: [UInt8] = [0, 0, 0, 0, 48, 0, 0, 0]
    let nonce: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8] + [UInt8](repeating: 0, count: 8)
    let flags: [UInt8] = [0x01, 0x82, 0x08, 0x00]
    return Data(Array("NTLMSSP\0".utf8) + [2, 0, 0, 0] + empty + flags + nonce + empty).base64EncodedString()
  }()
}
