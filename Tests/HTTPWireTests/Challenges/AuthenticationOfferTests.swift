import FoundationEssentials
import HTTPWire
import Testing

@Suite("Challenges of servers")
struct AuthenticationOfferTests {
  private func ranked(
    _ field: String, connection: Set<AuthenticationScheme> = [],
    knows: (DigestChallenge.Algorithm) -> Bool = { _ in true }
  ) -> [AuthenticationOffer] {
    AuthenticationOffer.ranked(Challenge.all(in: [field]), connectionSchemes: connection, knows: knows)
  }

  @Test("The strongest challenge is first") func strongestFirst() {
    let field = """
      Basic realm="a", Digest realm="b", nonce="1", NTLM, Negotiate, Digest realm="c", nonce="1", algorithm=SHA-256, \
      Digest realm="d", nonce="1", algorithm=SHA-512-256-sess, qop=auth, Bearer
      """
    #expect(ranked(field).map(\.realm) == ["d", "c", "b", "a"])
    #expect(
      ranked(field, connection: [.ntlm, .negotiate]).map(\.scheme) == [
        .digest, .digest, .digest, .negotiate, .ntlm, .basic,
      ])
    #expect(ranked(field) { $0 != .md5 && $0 != .sha512Half }.map(\.realm) == ["c", "a"])
  }

  @Test(
    "Challenges that cannot be answered",
    arguments: [
      #"Digest realm="x""#, #"Digest realm="x", nonce="""#, #"Digest nonce="x", algorithm=SHA-1"#,
      #"Digest nonce="x", qop="confidential""#, #"Digest nonce="x", algorithm=MD5-sess"#,
      "Digest nonce=\"x\u{1}\"", "Bearer", "Basically",
    ])
  func unanswerable(field: String) {
    #expect(ranked(field).isEmpty)
  }

  @Test("A Digest challenge has its parameters") func digest() throws {
    let field = """
      Digest realm="r", nonce="n", opaque="o", algorithm=sha-256-SESS, qop="auth-int, AUTH,other", stale=TRUE, \
      userhash=true, charset=utf-8, domain="/a"
      """
    let digest = try #require(ranked(field).first?.digest)
    #expect(digest.algorithm == .sha256)
    #expect(digest.isSession)
    #expect(digest.qualities == [.auth, .authInt])
    #expect(digest.isStale && digest.hashesUser && digest.isUTF8)
    #expect(digest.opaque == "o" && digest.domain == "/a")
  }

  @Test("Basic fields match the examples of RFC 7617") func basic() {
    // RFC 7617 §2 and §2.1.
    #expect(
      PasswordCredential(user: "Aladdin", password: "open sesame").basicField
        == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
    #expect(PasswordCredential(user: "test", password: "123\u{A3}").basicField == "Basic dGVzdDoxMjPCow==")
    #expect(PasswordCredential(user: "a:b", password: "c").basicField == nil)
    #expect(PasswordCredential(user: "a", password: "b:c").basicField != nil)
    #expect(PasswordCredential(user: "a\r\nX: y", password: "c").basicField == nil)
    #expect(PasswordCredential(user: "a", password: "\u{7F}").basicField == nil)
  }

  @Test("A credential is in no description") func description() {
    let credential = PasswordCredential(user: "name", password: "secret")
    var text = ""
    dump(credential, to: &text)
    text += "\(credential) \(String(reflecting: credential)) \(String(describing: [credential]))"
    #expect(!text.contains("secret") && !text.contains("name"))
  }

  @Test(
    "Qualities",
    arguments: [
      ("", false, DigestChallenge.Choice.use(nil)), ("auth", false, .use(.auth)),
      ("auth,auth-int", true, .use(.auth)),
      ("auth-int", true, .use(.authInt)), ("auth-int", false, .needsStoredBody),
    ])
  func qualities(named: String, isStored: Bool, choice: DigestChallenge.Choice) throws {
    let field = #"Digest nonce="n", qop=""# + named + "\""
    let digest = try #require(ranked(field).first?.digest)
    #expect(digest.choice(for: isStored ? .bytes(Data([1])) : .source(ReadOnce())) == choice)
  }

  @Test(
    "A body is hashed to its end or not at all",
    arguments: [
      ([.end], ""), ([.bytes(2), .bytes(1), .end], "616161"), ([.bytes(2), .failure(broken), .end], nil),
      ([.bytes(2), .wait, .end], nil), ([.failure(broken)], nil),
    ] as [([BodyReading], String?)])
  func hashOfBody(readings: [BodyReading], text: String?) {
    let body = ScriptedBody(readings)
    #expect(MessageHashes().text(.sha256, of: .source(body)) == text)
    #expect(body.isStopped)
  }

  @Test("A body is not hashed if it cannot be read again, or cannot be started") func unreadableBody() {
    #expect(MessageHashes().text(.md5, of: .source(ReadOnce())) == nil)
    #expect(MessageHashes().text(.md5, of: .source(ScriptedBody([.end], failure: Self.broken))) == nil)
    #expect(MessageHashes().text(.md5, of: .none) == "")
    #expect(MessageHashes().text(.md5, of: .bytes(Data([1, 0xAB]))) == "01ab")
  }

  private static let broken = TransportFailure(.cannotReadBody, "The file is gone.")
}

/// A hash function that returns its message.
private struct MessageHashes: HashFunctions {
  private final class Message: RunningHash {
    private var bytes: [UInt8] = []
    func add(_ bytes: UnsafeRawBufferPointer) { self.bytes.append(contentsOf: bytes) }
    func finish() -> [UInt8]? { bytes }
  }

  func hash(_ algorithm: DigestChallenge.Algorithm, _ bytes: [UInt8]) -> [UInt8]? { bytes }
  func makeRunningHash(_ algorithm: DigestChallenge.Algorithm) -> (any RunningHash)? { Message() }
}

/// A stored body whose bytes are the letter "a", and which is read as a script says.
private final class ScriptedBody: BodySource {
  private struct ReadingState {
    var readings: ArraySlice<BodyReading>
    var isStopped = false
  }

  let length: Int64 = -1
  let isRepeatable = true
  let isStored = true
  private let failure: TransportFailure?
  /// The readings that are left, and whether the body was stopped, for the thread of the test.
  private let state: Mutex<ReadingState>

  init(_ readings: [BodyReading], failure: TransportFailure? = nil) {
    self.failure = failure
    state = Mutex(ReadingState(readings: readings[...]))
  }

  var isStopped: Bool { state.withLock { $0.isStopped } }

  func start(wake: @escaping @Sendable () -> Void) -> TransportFailure? { failure }

  func read(into room: UnsafeMutableRawBufferPointer) -> BodyReading {
    let reading = state.withLock { $0.readings.popFirst() } ?? .end
    if case .bytes(let count) = reading {
      room.copyBytes(from: [UInt8](repeating: UInt8(ascii: "a"), count: count))
    }
    return reading
  }

  func stop() { state.withLock { $0.isStopped = true } }
}

/// A body that can be read once.
private final class ReadOnce: BodySource {
  let length: Int64 = -1
  let isRepeatable = false
  func start(wake: @escaping @Sendable () -> Void) -> TransportFailure? { nil }
  func read(into room: UnsafeMutableRawBufferPointer) -> BodyReading { .end }
  func stop() {}
}
