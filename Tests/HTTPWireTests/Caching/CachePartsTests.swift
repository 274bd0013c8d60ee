import FoundationEssentials
import HTTPWire
import Randomness
import Testing

@Suite("Parts of the cache", .timeLimit(.minutes(5))) struct CachePartsTests {
  @Test("The cost of a response includes its selection and its attachment") func cost() {
    let head = ResponseHead(status: 200)
    func cost(_ names: [String], attachment: Int) -> Int {
      StoredResponse(
        key: CacheKey("http://a.test/") ?? CacheKey("", Origin(scheme: "http", host: "", port: nil)),
        head: head,
        body: Data(), selection: Selection(fields: names.map { Selection.Field(name: $0, digest: nil) }),
        requestTime: 0, responseTime: 0, attachment: Data(count: attachment)
      ).cost
    }
    let empty = cost([], attachment: 0)
    #expect(cost([], attachment: 10_000) == empty + 10_000)
    #expect(cost([String(repeating: "a", count: 5_000)], attachment: 0) >= empty + 5_000)
    #expect(cost((0..<60).map { "x-\($0)" }, attachment: 0) >= empty + 60 * 64)
  }

  @Test(
    "max-age is parsed",
    arguments: [
      ("max-age=60", 60), ("max-age=\"60\"", 60), ("MAX-AGE=60", 60), ("max-age =60", 0), ("max-age= 60", 0),
      ("max-age = 60", 0), ("max-age=60 \t, x", 60), ("max-age=60, max-age=10", 10),
      ("max-age=10,max-age=60", 10), ("max-age=", 0), ("max-age", 0), ("max-age=-1", 0), ("max-age=1.5", 0),
      ("max-age=60 garbage", 0), ("max-age=\"60", 60), (",,  ,max-age=5,", 5),
      ("a=\"b\\\",c\", max-age=5", 5),
      ("max-age='60'", 0), ("=60, max-age=7", 7),
    ]) func maxAge(text: String, seconds: Int64)
  {
    #expect(CacheControl(text).maxAge == seconds)
  }

  /// Reads directives with whitespace around the equals sign. RFC 9111 does not allow it, so they are read in the
  /// strictest way.
  @Test("A directive with whitespace around the equals sign is read in the strictest way")
  func whitespaceAroundEqualsSign() {
    let control = CacheControl(
      "no-cache =\"a\", public =1, immutable = 1, max-stale =60, min-fresh =1, stale-while-revalidate =60, "
        + "stale-if-error= 60")
    #expect(control.noCache && control.noCacheFields.isEmpty && !control.isPublic && !control.isImmutable)
    #expect(control.maxStale == 0 && control.minFresh == CacheControl.forever)
    #expect(control.staleWhileRevalidate == 0 && control.staleIfError == 0)
    #expect(CacheControl("no-store =1, must-revalidate =1").noStore)
    #expect(CacheControl("no-store =1, must-revalidate =1").mustRevalidate)
  }

  @Test(
    "Valid entity tags are parsed",
    arguments: [
      ("\"a\"", true, true), ("W/\"a\"", true, false), ("\"\"", true, true), ("abc-1", false, false),
      ("W/abc", false, false),
    ]) func tags(text: String, isQuoted: Bool, isStrong: Bool) throws
  {
    let tag = try #require(EntityTag(text))
    #expect(tag.text == text && tag.isQuoted == isQuoted && tag.isStrong == isStrong && tag.matches(tag))
  }

  @Test(
    "An invalid entity tag is refused",
    arguments: ["", "*", "\"", "\"a", "a\"", "a b", "a,b", "\"a\", \"b\"", "W/\"a", "a\u{7f}"])
  func invalidTags(text: String) { #expect(EntityTag(text) == nil) }

  @Test("Tags are compared by bytes") func tagEquality() throws {
    func tag(_ text: String) throws -> EntityTag { try #require(EntityTag(text)) }
    #expect(try tag("W/\"1\"").matches(tag("\"1\"")))
    #expect(try !tag("1").matches(tag("\"1\"")))
    #expect(try !tag("\"\u{e9}\"").matches(tag("\"e\u{301}\"")))
  }

  @Test("One digest is computed for a request and a field") func digests() {
    let token = String(repeating: "t", count: 1_000)
    let stored = (0..<16).map { number in
      CacheFixture.response(
        [("Vary", "Accept")], requestFields: [("Authorization", "Bearer \(number)"), ("Accept", "a")])
    }
    var digests = FieldDigests(of: CacheFixture.headers([("Authorization", token), ("Accept", "a")]))
    #expect(stored.allSatisfy { !$0.selection.includes(&digests) })
    #expect(digests.computedCount == 2, "one for each name, for sixteen responses")
    #expect(stored.filter { $0.selection.hasCredentials(of: &digests) }.isEmpty)
    #expect(digests.computedCount == 2)
  }

  @Test("Directives are parsed") func directives() {
    let control = CacheControl(
      "private, No-Cache=\"A, b\", public, must-revalidate, immutable, only-if-cached, max-stale, min-fresh=3, "
        + "min-fresh=2, stale-while-revalidate=4, stale-if-error=5, must-understand")
    #expect(control.isPrivate && !control.isPublic && control.mustRevalidate && control.isImmutable)
    #expect(control.onlyIfCached && control.mustUnderstand && !control.noStore && !control.noCache)
    #expect(control.noCacheFields == ["a", "b"] && control.maxStale == CacheControl.forever)
    #expect(control.minFresh == 3 && control.staleWhileRevalidate == 4 && control.staleIfError == 5)
    #expect(CacheControl(nil) == CacheControl() && CacheControl("") == CacheControl())
    #expect(CacheControl("a=\"no-store\", b=no-store").noStore == false)
  }

  @Test(
    "An open quotation is read in the strictest way",
    arguments: [
      "a=\"b", "max-age=60, a=\"b, no-store", "max-age=60, a=\"\\\"", "no-cache=\"x, max-age=60",
    ])
  func openQuotation(text: String) {
    let control = CacheControl(text)
    #expect(control.noStore && control.noCache)
    // Also directives in another line of the field.
    let head = ResponseHead(
      status: 200, fields: CacheFixture.headers([("Cache-Control", text), ("Cache-Control", "max-age=60")]))
    #expect(!StorageRules.mayStore(method: "GET", fields: [], head: head))
  }

  @Test("A value without a digest selects no response") func digestFails() {
    struct NoHashes: HashFunctions {
      func hash(_ algorithm: DigestChallenge.Algorithm, _ bytes: [UInt8]) -> [UInt8]? { nil }
      func makeRunningHash(_ algorithm: DigestChallenge.Algorithm) -> (any RunningHash)? { nil }
    }
    var request = FieldDigests(of: CacheFixture.headers([("Authorization", "a")]), hashes: NoHashes())
    let selection = Selection(ResponseHead(status: 200), CacheControl(nil), request: request)
    #expect(selection.fields.map(\.name) == ["authorization"])
    #expect(!selection.includes(&request) && !selection.hasCredentials(of: &request))
    #expect(!CacheFixture.response(requestFields: []).selection.includes(&request))
  }

  @Test("A written date is read") func dates() {
    #expect(HTTPDate(secondsSince1970: 784_111_777).text == "Sun, 06 Nov 1994 08:49:37 GMT")
    #expect(HTTPDate(secondsSince1970: 0).text == "Thu, 01 Jan 1970 00:00:00 GMT")
    #expect(HTTPDate(secondsSince1970: -1).text == "Wed, 31 Dec 1969 23:59:59 GMT")
    #expect(HTTPDate(secondsSince1970: .max).text == "Fri, 31 Dec 9999 23:59:59 GMT")
    #expect(HTTPDate(secondsSince1970: .min).text == "Sat, 01 Jan 0000 00:00:00 GMT")
    var generator = SeededGenerator(seed: 7)
    for _ in 0..<10_000 {
      let date = HTTPDate(
        secondsSince1970: Int64.random(in: -62_167_219_200...253_402_300_799, using: &generator))
      #expect(HTTPDate(date.text, now: HTTPDate(secondsSince1970: 0)) == date)
    }
  }

  @Test("A stored response is read from its bytes") func storedResponse() throws {
    let stored = StoredResponse(
      key: try #require(CacheKey("https://a.test/ü?x=%20")),
      head: ResponseHead(
        status: 404, version: .http2, block: FieldBlock(bytes: Array("A: \u{e9}\r\nB:\r\n".utf8))),
      body: Data([0, 255, 1]),
      selection: Selection(fields: [.init(name: "accept", digest: nil), .init(name: "cookie", digest: "ab")]),
      requestTime: 5, responseTime: -6, attachment: Data([9]))
    let copy = try #require(StoredResponse.decode(stored.encoded))
    #expect(copy.key == stored.key && copy.head.block == stored.head.block && copy.body == stored.body)
    #expect(copy.head.status == 404 && copy.head.version == .http2 && copy.selection == stored.selection)
    #expect(copy.body.startIndex == 0, "whoever gets it counts from there")
    #expect(copy.requestTime == 5 && copy.responseTime == -6 && copy.attachment == Data([9]))
  }

  /// An object that the bytes of a file retain.
  private final class FileToken: Sendable {}

  @Test("A response does not retain the bytes that it was read from", arguments: [0, 100])
  func releasedBytes(attachment: Int) throws {
    weak var token: FileToken?
    func read() -> StoredResponse? {
      let bytes = StoredResponse(
        key: CacheKey("http://a.test/") ?? CacheKey("", Origin(scheme: "http", host: "", port: nil)),
        head: ResponseHead(status: 200), body: Data(count: 65_536),
        selection: Selection(fields: [.init(name: "accept", digest: "ab")]), requestTime: 0,
        responseTime: 0, attachment: Data(count: attachment)
      ).encoded
      let owner = FileToken()
      token = owner
      let memory = UnsafeMutableRawPointer.allocate(byteCount: bytes.count, alignment: 1)
      UnsafeMutableRawBufferPointer(start: memory, count: bytes.count).copyBytes(from: bytes)
      let file = Data(
        bytesNoCopy: memory, count: bytes.count,
        deallocator: .custom { memory, _ in withExtendedLifetime(owner) { memory.deallocate() } })
      return StoredResponse.decode(file)
    }
    let stored = try #require(read())
    #expect(token == nil)
    #expect(stored.body.count == 65_536 && stored.attachment == Data(count: attachment))
  }

  @Test("A response is read without its body") func storedHead() throws {
    let whole = CacheFixture.response([("ETag", "\"1\"")], body: "0123456789")
    let bytes = whole.encoded
    let length = try #require(StoredResponse.lengthBeforeBody(bytes))
    #expect(length == bytes.count - 10)
    let head = try #require(StoredResponse.decodeHead(bytes.prefix(length)))
    #expect(head.head.block == whole.head.block && head.selection == whole.selection)
    #expect(head.body.isEmpty && head.bodyLength == 10 && !head.hasBody && whole.hasBody)
    #expect(CacheFixture.answer(head) == nil, "it has no body to answer with")
    #expect(!head.with(head: head.head, selection: head.selection, requestTime: 1, responseTime: 2).hasBody)
    for count in 0..<length { #expect(StoredResponse.decodeHead(bytes.prefix(count)) == nil) }
    #expect(StoredResponse.lengthBeforeBody(bytes.prefix(15)) == nil)
    var tooLong = bytes
    for index in 8..<15 { tooLong[index] = 0xFF }
    tooLong[15] = 0x7F
    #expect(StoredResponse.lengthBeforeBody(tooLong) == nil && StoredResponse.decodeHead(tooLong) == nil)
  }

  @Test("Corrupt bytes are refused") func corruptBytes() {
    let bytes = CacheFixture.response([("ETag", "\"1\"")], body: "0123456789").encoded
    #expect(StoredResponse.decode(bytes) != nil)
    for count in 0..<bytes.count { #expect(StoredResponse.decode(bytes.prefix(count)) == nil) }
    #expect(StoredResponse.decode(bytes + Data([0])) == nil)
    for index in bytes.indices {
      var broken = bytes
      broken[index] ^= 1 << UInt8(index % 8)
      #expect(StoredResponse.decode(broken) == nil)
    }
  }

  @Test("Random bytes crash no parser") func randomBytes() throws {
    var generator = SeededGenerator(seed: 42)
    let whole = CacheFixture.response([("Vary", "a"), ("ETag", "\"1\"")], requestFields: [("A", "b")]).encoded
    let words = ["max-age=", "no-cache=\"", "no-store", ",", "\"", "\\", "=", " ", "public", "9999999999"]
    for _ in 0..<40_000 {
      let bytes = (0..<Int.random(in: 0..<40, using: &generator)).map { _ in
        UInt8.random(in: 0...255, using: &generator)
      }
      var text = String(decoding: bytes, as: UTF8.self)
      for _ in 0..<3 where Bool.random(using: &generator) {
        text += words[Int.random(in: 0..<words.count, using: &generator)]
      }
      let control = CacheControl(text)
      for seconds in [control.maxAge, control.minFresh, control.maxStale, control.staleIfError] {
        #expect(seconds.map { (0...CacheControl.forever).contains($0) } ?? true)
      }
      _ = EntityTag(text)
      _ = CacheKey("http://a.test/\(text)")
      if let part = StoredAnswer.part("bytes=" + text, of: 10) {
        #expect(part.lowerBound < 10 && part.upperBound <= 10)
      }
      _ = Selection.names(in: text)
      _ = EntryID(name: text)
      #expect(StoredResponse.decode(Data(bytes)) == nil)
      _ = StoredResponse.decodeHead(Data(bytes))
      let start = Int.random(in: 0..<whole.count, using: &generator)
      let mixed = whole.prefix(start) + Data(bytes) + whole.dropFirst(start + bytes.count)
      if mixed != whole { #expect(StoredResponse.decode(mixed) == nil) }
      _ = StoredResponse.decodeHead(mixed)
      _ = StoredResponse(encodedHead: mixed.dropFirst(32), body: Data())
    }
  }

  @Test("Indices of a part start at zero") func indices() throws {
    let body = String(repeating: "x", count: 1_000)
    let stored = CacheFixture.response([("Cache-Control", "max-age=60")], body: body)
    let part = try #require(CacheFixture.answer(stored, requestFields: [("Range", "bytes=400-599")]))
    #expect(part.body.startIndex == 0 && part.body.count == 200)
  }

  @Test("Options that refuse private addresses have their own partition of the cache") func refusedAddresses()
  {
    var options = TransportOptions()
    let usual = ConnectionProfile(options: options)
    options.refusesPrivateAddresses = true
    let protected = ConnectionProfile(options: options)
    #expect(usual.isUsual && !protected.isUsual && usual.cachePartition != protected.cachePartition)
  }

  @Test("Options with an address family have their own partition of the cache") func addressFamilies() {
    let families: [TransportOptions.AddressFamily] = [.any, .ipv4, .ipv6]
    let profiles = families.map { family in
      var options = TransportOptions()
      options.addressFamily = family
      return ConnectionProfile(options: options)
    }
    #expect(profiles.map(\.isUsual) == [true, false, false])
    #expect(Set(profiles.map(\.cachePartition)).count == 3)
  }

  @Test("Responses with options for another route or another trust stay in one session") func oneSession() {
    let changes: [(String, (inout TransportOptions) -> Void)] = [
      ("no proxy", { $0.proxy = .none }), ("a proxy", { $0.proxy = .socks5h("127.0.0.1", port: 1080) }),
      ("a socket", { $0.unixSocket = "/run/server" }), ("an interface", { $0.localInterface = "lo" }),
      ("an override", { $0.hostOverrides = [.init(host: "a.test", target: "b.test")] }),
      ("DNS over HTTPS", { $0.nameServiceURL = "https://dns.test/" }),
      ("a trust store", { $0.trustStore = .file("/authorities.pem") }),
      ("revocation lists", { $0.certificateRevocationLists = [Data("list".utf8)] }),
    ]
    let usual = ConnectionProfile()
    #expect(usual.isUsual)
    for (name, change) in changes {
      var options = TransportOptions()
      change(&options)
      let profile = ConnectionProfile(options: options)
      #expect(!profile.isUsual && profile.cachePartition != usual.cachePartition, "\(name)")
    }
    let configured = ConnectionProfile(systemProxies: ProxyTable())
    #expect(!configured.isUsual && configured.cachePartition != usual.cachePartition)
  }

  @Test("File names are read") func fileNames() {
    let id = EntryID(hash: 0xAB, variant: 0xFFFF_FFFF)
    #expect(id.name == "00000000000000abffffffff.response")
    #expect(EntryID(name: id.name) == id)
    for name in ["", "x", ".new-1", "00000000000000ABffffffff.response", "+0000000000000abffffffff.response"]
    {
      #expect(EntryID(name: name) == nil)
    }
  }
}
