import HTTPWire
import Testing

/// The messages of NTLM, by the examples of MS-NLMP 4.2.4.
@Suite("NTLM") struct NTLMTests {
  /// Returns the challenge of a server, laid out as in MS-NLMP 2.2.1.2.
  static func challenge(
    flags: UInt32 = 0xE28A_8233, info: [UInt8]? = NTLMTests.exampleInfo, offset: UInt32 = 56,
    length: UInt16? = nil
  ) -> [UInt8] {
    var message = Array("NTLMSSP\0".utf8)
    message.appendLittleEndian(UInt32(2))
    message += [0, 0, 0, 0, 56, 0, 0, 0]
    message.appendLittleEndian(info == nil ? flags & ~0x0080_0000 : flags)
    message += Array(hex: "0123456789abcdef") + [UInt8](repeating: 0, count: 8)
    for _ in 0..<2 { message.appendLittleEndian(length ?? UInt16(info?.count ?? 0)) }
    message.appendLittleEndian(offset)
    return message + Array(hex: "0600 7017 0000 000f") + (info ?? [])
  }

  /// The domain "Domain" and the server "Server".
  static let exampleInfo = Array(
    hex: "0200 0c00 44006f006d00610069006e00 0100 0c00 530065007200760065007200 0000 0000")
  static let timestamp = Array(hex: "0102030405060708")
  static let timedInfo = Array(exampleInfo.dropLast(4)) + Array(hex: "0700 0800 0102030405060708 0000 0000")

  static func client(_ user: String = "Domain\\User", service: String = "") -> NTLMClient {
    NTLMClient(
      credential: PasswordCredential(user: user, password: "Password"), service: service,
      hashes: ReferenceMD5())
  }

  static func answer(
    _ client: NTLMClient = client(), to challenge: [UInt8], time: UInt64 = 0
  ) throws(NTLMClient.Failure) -> [UInt8] {
    try client.answer(to: challenge, clientChallenge: 0xAAAA_AAAA_AAAA_AAAA, time: time)
  }

  /// Returns a part of an answer by the position of its length and offset.
  static func part(_ message: [UInt8], at position: Int) -> [UInt8] {
    let length = Int(message[position]) | Int(message[position + 1]) << 8
    let start = Int(message[position + 4]) | Int(message[position + 5]) << 8
    guard start + length <= message.count else { return [] }
    return Array(message[start..<start + length])
  }

  @Test(
    "MD4 has the hashes of RFC 1320",
    arguments: [
      ("", "31d6cfe0d16ae931b73c59d7e0c089c0"), ("a", "bde52cb31de33e46245e05fbdbd6fb24"),
      ("abc", "a448017aaf21d8525fc10ae87aa6729d"), ("message digest", "d9130a8164549fe818874806e1c7014b"),
      ("abcdefghijklmnopqrstuvwxyz", "d79e1c308aa5bbcdeea8ed63df412da9"),
      (
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "043f8582f241db351ce627e153e7f0e4"
      ),
      (String(repeating: "1234567890", count: 8), "e33b4ddc9c38f2199c3e7b164fcc0536"),
    ])
  func md4(text: String, hash: String) { #expect(MD4.hash(Array(text.utf8)).hex == hash) }

  @Test("The hash and the code of the tests are MD5 and HMAC-MD5") func reference() throws {
    #expect(ReferenceMD5().text(.md5, Array("abc".utf8)) == "900150983cd24fb0d6963f7d28e17f72")
    let keys = try #require(NTLMKeys(user: "", domain: "", password: "", hashes: ReferenceMD5()))
    // RFC 2202 §2, cases 2 and 6.
    let short = keys.authenticationCode(
      of: Array("what do ya want for nothing?".utf8), key: Array("Jefe".utf8))
    #expect(short?.hex == "750c783e6ab0b503eaa86e310a5db738")
    let text = "Test Using Larger Than Block-Size Key - Hash Key First"
    let long = keys.authenticationCode(of: Array(text.utf8), key: [UInt8](repeating: 0xAA, count: 80))
    #expect(long?.hex == "6b1ab7fe4bd7bf8f0b62e6ce61b9d0cd")
  }

  @Test("Keys and responses match the specification's examples") func example() throws {
    let keys = try #require(
      NTLMKeys(user: "User", domain: "Domain", password: "Password", hashes: ReferenceMD5()))
    #expect(keys.responseKey.hex == "0c868a403bfd7a93a3001ef22ef02e3f")
    let nonce = [UInt8](repeating: 0xAA, count: 8)
    let server = Array(hex: "0123456789abcdef")
    let short = keys.shortResponse(to: server, clientChallenge: nonce)
    #expect(short?.hex == "86c35097ac9cec102554764a57cccc19aaaaaaaaaaaaaaaa")
    let response = try #require(
      keys.response(
        to: server, time: [UInt8](repeating: 0, count: 8), clientChallenge: nonce,
        targetInfo: Self.exampleInfo))
    #expect(response.bytes.prefix(16).hex == "68cd0ab851e51c96aabc927bebef6a1c")
    #expect(response.sessionKey.hex == "8de40ccadbc14a82f15cb0ad0de95ca3")
  }

  @Test("The first message offers NTLMv2 and names nothing") func negotiate() {
    #expect(
      NTLMClient.negotiateMessage.hex
        == "4e544c4d53535000 01000000 078208a2 0000000000000000 0000000000000000 "
        .replacing(" ", with: "") + "0601b11d0000000f")
  }

  @Test("The answer to the example") func answer() throws {
    let message = try Self.answer(to: Self.challenge())
    #expect(message.prefix(12).hex == "4e544c4d5353500003000000")
    #expect(Self.part(message, at: 12).hex == "86c35097ac9cec102554764a57cccc19aaaaaaaaaaaaaaaa")
    let response = Self.part(message, at: 20)
    #expect(
      response.hex == "68cd0ab851e51c96aabc927bebef6a1c" + "0101000000000000" + "0000000000000000"
        + "aaaaaaaaaaaaaaaa" + "00000000" + Self.exampleInfo.hex + "00000000")
    #expect(Self.part(message, at: 28) == NTLMKeys.utf16("Domain"))
    #expect(Self.part(message, at: 36) == NTLMKeys.utf16("User"))
    #expect(Self.part(message, at: 44) == NTLMKeys.utf16("WORKSTATION"))
    #expect(Self.part(message, at: 52).isEmpty)
    #expect(message[16..<20] == [64, 0, 0, 0], "the payload begins after the flags")
    // Accepted ones of the offered flags, without the version and the code page.
    #expect(message[60..<64].hex == "018288a0")
    #expect(message.count == 64 + 24 + 84 + 12 + 8 + 22)
  }

  @Test("The time is the caller's, if the server does not send one") func time() throws {
    let message = try Self.answer(to: Self.challenge(), time: 0x0807_0605_0403_0201)
    #expect(Self.part(message, at: 20)[24..<32] == Self.timestamp[...])
    #expect(NTLMClient.time(unixSeconds: 0) == 116_444_736_000_000_000)
    #expect(NTLMClient.time(unixSeconds: 1_700_000_000) == 133_444_736_000_000_000)
    for seconds in [Int64.min, -11_644_473_601] { #expect(NTLMClient.time(unixSeconds: seconds) == 0) }
    for seconds in [1_844_674_407_370, Int64.max] { #expect(NTLMClient.time(unixSeconds: seconds) == .max) }
  }

  @Test("Without target information the response is of NTLMv2 as well", arguments: [32, 40, 48, 56])
  func noTargetInfo(length: Int) throws {
    let message = try Self.answer(to: Array(Self.challenge(info: nil).prefix(length)))
    #expect(
      Self.part(message, at: 20).hex == "c60618298cac38e518bac188e58825e0" + "0101000000000000"
        + "0000000000000000" + "aaaaaaaaaaaaaaaa" + "0000000000000000")
    #expect(Self.part(message, at: 12).hex == "86c35097ac9cec102554764a57cccc19aaaaaaaaaaaaaaaa")
  }

  @Test("A flag without target information, or an empty one, is accepted") func emptyTargetInfo() throws {
    var message = Array(Self.challenge().prefix(40))
    #expect(NTLMChallenge(message)?.targetInfo == nil)
    message = Self.challenge(info: [])
    #expect(NTLMChallenge(message) != nil)
    #expect(NTLMChallenge(message)?.targetInfo == nil)
  }

  @Test("A server with a clock gets an integrity code", arguments: [0xE28A_8233, 0xE08A_8233] as [UInt32])
  func integrityCode(flags: UInt32) throws {
    let challenge = Self.challenge(flags: flags, info: Self.timedInfo)
    let message = try Self.answer(Self.client(service: "HTTP/a"), to: challenge, time: 99)
    #expect(Self.part(message, at: 12) == [UInt8](repeating: 0, count: 24), "no short response")
    let response = Self.part(message, at: 20)
    #expect(Array(response[24..<32]) == Self.timestamp)
    // Flags, channel bindings and the name of the service follow the server's attributes.
    let added =
      "0600 0400 02000000 0a00 1000 00000000000000000000000000000000 0900 0c00 48005400540050002f006100"
    #expect(
      Array(response.dropFirst(44)) == Array(Self.timedInfo.dropLast(4)) + Array(hex: added)
        + [UInt8](repeating: 0, count: 8))
    #expect(message[16..<20] == [88, 0, 0, 0], "the payload begins after the code")
    let hasVersion = flags & 0x0200_0000 != 0
    #expect(message[64..<72].hex == (hasVersion ? "0601b11d0000000f" : "0000000000000000"))
    #expect(message[60..<64].hex == (hasVersion ? "018288a2" : "018288a0"))
    let keys = try #require(
      NTLMKeys(user: "User", domain: "Domain", password: "Password", hashes: ReferenceMD5()))
    let session = try #require(keys.authenticationCode(of: Array(response.prefix(16)), key: keys.responseKey))
    #expect(
      keys.authenticationCode(
        of: Array(hex: "0123456789abcdef") + response.dropFirst(16), key: keys.responseKey)
        == Array(response.prefix(16)))
    var unsigned = message
    unsigned.replaceSubrange(72..<88, with: [UInt8](repeating: 0, count: 16))
    let code = keys.authenticationCode(of: NTLMClient.negotiateMessage + challenge + unsigned, key: session)
    #expect(Array(message[72..<88]) == code)
  }

  @Test("The flags of the server stay, and each attribute is there once") func attributes() throws {
    let info = Array(hex: "0600 0400 01000100 0900 0200 7800 0700 0800 0102030405060708 0000 0000")
    let message = try Self.answer(to: Self.challenge(info: info))
    let sent = try #require(NTLMTargetInfo(Self.part(message, at: 20).dropFirst(44)))
    #expect(sent.attributes.map(\.identifier) == [7, 6, 10, 9])
    #expect(sent.attributes[1].value == [3, 0, 1, 0])
    #expect(sent.attributes[3].value.isEmpty)
  }

  @Test("A timestamp of another length is none") func shortTimestamp() throws {
    let message = try Self.answer(to: Self.challenge(info: Array(hex: "0700 0400 01020304 0000 0000")))
    #expect(message[16] == 64)
  }

  @Test(
    "A user may have a domain",
    arguments: [
      ("D\\u", "D", "u"), ("D/u", "D", "u"), ("u@d.example", "", "u@d.example"), ("u", "", "u"),
      ("D\\u\\v", "D", "u\\v"), ("a/b\\c", "a/b", "c"), ("\\u", "", "u"), ("", "", ""),
    ])
  func domains(name: String, domain: String, user: String) throws {
    let message = try Self.answer(Self.client(name), to: Self.challenge())
    #expect(Self.part(message, at: 28) == NTLMKeys.utf16(domain))
    #expect(Self.part(message, at: 36) == NTLMKeys.utf16(user))
    let keys = try #require(
      NTLMKeys(user: user, domain: domain, password: "Password", hashes: ReferenceMD5()))
    let response = Self.part(message, at: 20)
    #expect(
      keys.authenticationCode(
        of: Array(hex: "0123456789abcdef") + response.dropFirst(16), key: keys.responseKey)
        == Array(response.prefix(16)))
  }

  @Test(
    "Names are hashed in capitals as Windows writes them",
    arguments: [
      ("anna", "ANNA"), ("Äöü", "ÄÖÜ"), ("straße", "STRAßE"), ("ıſ", "ıſ"), ("ÿ", "Ÿ"), ("1é", "1É"),
      ("ﬁ", "ﬁ"),
    ])
  func capitals(name: String, capitals: String) { #expect(NTLMKeys.uppercased(name) == capitals) }

  @Test(
    "Texts are in the encoding of the server", arguments: [0x0080_0201, 0x0080_0202, 0x0080_0203] as [UInt32])
  func encodings(flags: UInt32) throws {
    let message = try Self.answer(Self.client("D\\jö"), to: Self.challenge(flags: flags))
    let isUnicode = flags & 1 != 0
    #expect(Self.part(message, at: 36) == (isUnicode ? NTLMKeys.utf16("jö") : Array("jö".utf8)))
    #expect(message[60] == (isUnicode ? 1 : 2))
  }

  @Test("Bytes that are not a challenge are refused") func malformed() {
    let whole = Self.challenge()
    var broken: [(String, [UInt8])] = (0..<32).map { ("the first \($0) bytes", Array(whole.prefix($0))) }
    for offset in [0, 47, 57, 93, 94, 0x7FFF_FFFF, 0xFFFF_FFFF] as [UInt32] {
      broken.append(("the offset \(offset)", Self.challenge(offset: offset)))
    }
    broken.append(("attributes within the head", Self.challenge(offset: 32, length: 4)))
    for length in [35, 37, 100, 0xFFFF] as [UInt16] {
      broken.append(("the length \(length)", Self.challenge(length: length)))
    }
    for info in ["02", "0200", "0200 0c", "0200 0c00 44", "0200 0100", "0100 0000 02"] {
      broken.append(("the attributes \(info)", Self.challenge(info: Array(hex: info))))
    }
    broken.append(("another signature", [0x6E] + whole.dropFirst()))
    broken.append(("another type", Array(whole[..<8]) + [3] + whole[9...]))
    broken.append(("a type above 255", Array(whole[..<9]) + [1] + whole[10...]))
    broken.append(("too many bytes", whole + [UInt8](repeating: 0, count: 16_384)))
    for (name, message) in broken {
      #expect(throws: NTLMClient.Failure.challenge, "\(name)") { try Self.answer(to: message) }
    }
  }

  @Test("A list of attributes may end with its bytes; bytes after its end are ignored") func ends() {
    #expect(NTLMTargetInfo(Array(hex: "0200 0000"))?.attributes.count == 1)
    #expect(NTLMTargetInfo(Array(hex: "0000 0000 ff"))?.attributes.isEmpty == true)
    #expect(NTLMTargetInfo([])?.bytes == [0, 0, 0, 0])
    #expect(NTLMTargetInfo(Self.timedInfo)?.bytes == Self.timedInfo)
  }

  @Test("No prefix and no changed byte of a challenge traps") func mutations() {
    for whole in [Self.challenge(info: Self.timedInfo), Self.challenge(), Self.challenge(info: nil)] {
      for length in 0...whole.count { _ = try? Self.answer(to: Array(whole.prefix(length))) }
      for index in whole.indices {
        for byte in [0, 0x80, 0xFF, whole[index] ^ 1] as [UInt8] {
          var message = whole
          message[index] = byte
          guard let answer = try? Self.answer(to: message) else { continue }
          #expect(answer.count >= 64 + 24 + 48, "byte \(index) is \(byte)")
          #expect([88, 64].contains(answer[16]))
        }
      }
    }
  }

  @Test("Without MD5, NTLM is not available") func noHash() {
    struct NoHashes: HashFunctions {
      func hash(_ algorithm: DigestChallenge.Algorithm, _ bytes: [UInt8]) -> [UInt8]? { nil }
      func makeRunningHash(_ algorithm: DigestChallenge.Algorithm) -> (any RunningHash)? { nil }
    }
    let client = NTLMClient(credential: PasswordCredential(user: "u", password: "p"), hashes: NoHashes())
    #expect(throws: NTLMClient.Failure.hash) { try Self.answer(client, to: Self.challenge()) }
  }

  @Test("A name that does not fit into a message is refused") func longNames() throws {
    let long = String(repeating: "u", count: 1_024)
    #expect(try Self.part(Self.answer(Self.client(long), to: Self.challenge()), at: 36).count == 2_048)
    for user in [long + "u", long + "u\\u"] {
      #expect(throws: NTLMClient.Failure.credential) {
        try Self.answer(Self.client(user), to: Self.challenge())
      }
    }
    #expect(throws: NTLMClient.Failure.credential) {
      try Self.answer(Self.client(service: long + "u"), to: Self.challenge())
    }
  }
}

extension Collection<UInt8> {
  var hex: String { ReferenceMD5.digits(Array(self)) }
}
