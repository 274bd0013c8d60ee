import Foundation
import HTTPWire
import Testing

@Suite("Decisions about resumable uploads") struct UploadResumptionTests {
  static let dialects: [UploadResumption.Dialect] = [.draft, .tus]
  static let url = "https://a.example/upload"

  private static func policy(_ dialect: UploadResumption.Dialect?) -> UploadResumption.Policy {
    var policy = UploadResumption.Policy()
    policy.dialect = dialect
    return policy
  }

  /// Makes an upload with a known resource, before its first bytes are sent again.
  private static func begun(
    _ dialect: UploadResumption.Dialect, length: Int64 = 100, sent: Int64 = 60,
    _ change: (inout UploadResumption.Policy) -> Void = { _ in }
  ) -> UploadResumption {
    var policy = policy(dialect)
    change(&policy)
    var upload = UploadResumption(length: length, policy: policy)
    _ = upload.next()
    if dialect == .draft {
      let isNamed = upload.informational(named(104), at: url)
      #expect(isNamed)
      upload.contentRead(upTo: sent)
    } else {
      #expect(upload.process(named(201), at: url) == .proceed)
      _ = upload.next()
      upload.contentRead(upTo: sent)
    }
    return upload
  }

  private static func named(_ status: Int, _ location: String = "/files/1") -> UploadAnswer {
    var answer = UploadAnswer(status: status)
    answer.location = location
    answer.interopVersion = 6
    answer.tusVersion = "1.0.0"
    return answer
  }

  private static func offset(_ offset: Int64?, _ isComplete: Bool? = false, status: Int = 204) -> UploadAnswer
  {
    var answer = UploadAnswer(status: status)
    answer.offset = offset
    answer.isComplete = isComplete
    return answer
  }

  // MARK: Whole uploads

  /// Performs an upload, and breaks each connection in turn after the given number of bytes of its content.
  private static func perform(
    _ upload: inout UploadResumption, on server: inout PureUploadServer, content: [UInt8], cuts: [Int]
  ) -> UploadResumption.Verdict? {
    var cuts = cuts[...]
    for _ in 0..<1000 {
      let request = upload.next()
      let part = request.part
      let bytes = part.map { Array(content[Int($0.offset)..<Int($0.end)]) } ?? []
      // Requests without content are not cut.
      var cut: Int?
      if let part, part.count > 0, let first = cuts.first, Int64(first) < part.end,
        Int64(first) >= part.offset
      {
        cut = first - Int(part.offset)
        cuts = cuts.dropFirst()
      }
      let reply = server.serve(request, to: upload.resource, content: bytes, cutAfter: cut)
      if let part { upload.contentRead(upTo: min(part.end, part.offset + Int64(cut ?? bytes.count) + 7)) }
      if let informational = reply.informational { _ = upload.informational(informational, at: url) }
      guard let final = reply.final else {
        guard upload.delay(after: .network(sentNothing: false), random: 0.5) != nil else { return nil }
        continue
      }
      let verdict = upload.process(final, at: url)
      if verdict == .refusal, upload.delay(after: .response, random: 0.5) != nil { continue }
      if verdict != .proceed { return verdict }
    }
    return nil
  }

  @Test("An upload that breaks after any byte is stored once, byte by byte", arguments: dialects)
  func everyCut(dialect: UploadResumption.Dialect) {
    let content = (0..<64).map { UInt8($0) }
    for cut in 0..<64 {
      for second in cut..<64 {
        var server = PureUploadServer(dialect, length: 64)
        var upload = UploadResumption(length: 64, policy: Self.policy(dialect))
        let verdict = Self.perform(&upload, on: &server, content: content, cuts: [cut, second])
        #expect(verdict == .result)
        #expect(server.uploads.map(\.content) == [content])
        #expect(server.processedCount == 1 && server.takenCount == 64)
      }
    }
  }

  @Test("An upload in parts of any size is stored once", arguments: dialects)
  func parts(dialect: UploadResumption.Dialect) {
    let content = (0..<50).map { UInt8($0) }
    for size in 1...51 as ClosedRange<Int64> {
      for cut in [0, 1, 25, 49] {
        var server = PureUploadServer(dialect, length: 50)
        var policy = Self.policy(dialect)
        policy.largestPart = size
        var upload = UploadResumption(length: 50, policy: policy)
        #expect(Self.perform(&upload, on: &server, content: content, cuts: [cut]) == .result)
        #expect(server.uploads.map(\.content) == [content] && server.processedCount == 1)
      }
    }
  }

  @Test("An empty upload is complete with its creation", arguments: dialects)
  func emptyUpload(dialect: UploadResumption.Dialect) {
    for createsWithContent in [true, false] {
      var server = PureUploadServer(dialect, length: 0)
      var policy = Self.policy(dialect)
      policy.createsWithContent = createsWithContent
      var upload = UploadResumption(length: 0, policy: policy)
      #expect(Self.perform(&upload, on: &server, content: [], cuts: []) == .result)
      #expect(server.processedCount == 1)
    }
  }

  @Test("A creation without content is followed by the whole content") func carefulCreation() {
    var policy = Self.policy(.draft)
    policy.createsWithContent = false
    var upload = UploadResumption(length: 10, policy: policy)
    let creation = upload.next()
    #expect(creation == .creation(.init(offset: 0, count: 0, isLast: false)))
    #expect(upload.fields(of: creation).contains(HTTPHeader(name: "Upload-Complete", value: "?0")))
    var created = Self.named(201)
    created.isComplete = false
    #expect(upload.process(created, at: Self.url) == .proceed)
    #expect(upload.next() == .append(.init(offset: 0, count: 10, isLast: true)))
    // A server without the protocol has processed an empty request.
    var other = UploadResumption(length: 10, policy: policy)
    _ = other.next()
    #expect(other.process(UploadAnswer(status: 201), at: Self.url) == .failure(.unsupportedByServer))
  }

  // MARK: Losses

  @Test("Without a known upload a lost request is not repeated") func lostCreation() {
    for dialect in Self.dialects {
      var upload = UploadResumption(length: 10, policy: Self.policy(dialect))
      _ = upload.next()
      #expect(upload.delay(after: .network(sentNothing: false), random: 0) == nil)
      #expect(upload.delay(after: .network(sentNothing: true), random: 0) != nil)
    }
  }

  @Test("The lost response to the last byte is replaced by the one to HEAD", arguments: dialects)
  func lostResponse(dialect: UploadResumption.Dialect) {
    var upload = Self.begun(dialect, sent: 100)
    #expect(upload.next() == .offset)
    #expect(upload.process(Self.offset(100, dialect == .draft ? true : nil), at: Self.url) == .result)
  }

  @Test("The end of an upload is sent without content if only it was lost") func lostEnd() {
    var upload = Self.begun(.draft, sent: 100)
    #expect(upload.next() == .offset)
    #expect(upload.process(Self.offset(100, false), at: Self.url) == .proceed)
    #expect(upload.next() == .append(.init(offset: 100, count: 0, isLast: true)))
  }

  @Test("A lost upload begins again only if it cannot have been processed", arguments: dialects, [404, 410])
  func lostUpload(dialect: UploadResumption.Dialect, status: Int) {
    var partly = Self.begun(dialect, sent: 60)
    #expect(partly.next() == .offset)
    #expect(partly.process(UploadAnswer(status: status), at: Self.url) == .proceed)
    #expect(partly.resource == nil && partly.acknowledged == 0)
    #expect(partly.next().part?.offset == 0)
    var whole = Self.begun(dialect, sent: 100)
    #expect(whole.next() == .offset)
    #expect(whole.process(UploadAnswer(status: status), at: Self.url) == .failure(.uploadIsGone))
  }

  @Test(
    "An upload does not begin again while an earlier request may still be stored", arguments: dialects,
    [404, 410])
  func stillStored(dialect: UploadResumption.Dialect, status: Int) {
    var upload = Self.begun(dialect, sent: 100)
    #expect(upload.next() == .offset)
    #expect(upload.process(Self.offset(60, false), at: Self.url) == .proceed)
    #expect(upload.next() == .append(.init(offset: 60, count: 40, isLast: true)))
    upload.contentRead(upTo: 80)
    #expect(upload.mayBeProcessed, "the journal must not say that the last byte was never sent")
    #expect(upload.next() == .offset, "the part is lost before its end")
    #expect(upload.process(UploadAnswer(status: status), at: Self.url) == .failure(.uploadIsGone))
  }

  @Test("An upload that is lost again and again ends") func endlessRestarts() {
    var upload = UploadResumption(length: 100, policy: Self.policy(.tus))
    for _ in 0..<5 {
      _ = upload.next()
      #expect(upload.process(Self.named(201), at: Self.url) == .proceed)
      _ = upload.next()
      #expect(upload.process(UploadAnswer(status: 404), at: Self.url) == .proceed)
    }
    _ = upload.next()
    _ = upload.process(Self.named(201), at: Self.url)
    _ = upload.next()
    #expect(upload.process(UploadAnswer(status: 404), at: Self.url) == .failure(.uploadIsGone))
  }

  // MARK: Offsets

  @Test("Wrong offsets are refused", arguments: dialects)
  func wrongOffsets(dialect: UploadResumption.Dialect) {
    let isComplete: Bool? = dialect == .draft ? false : nil
    for wrong in [61, 100, 101, .max] as [Int64] {
      var upload = Self.begun(dialect, sent: 60)
      _ = upload.next()
      #expect(upload.process(Self.offset(wrong, isComplete), at: Self.url) == .failure(.wrongOffset(wrong)))
    }
    var upload = Self.begun(dialect, sent: 60)
    _ = upload.next()
    #expect(upload.process(Self.offset(50, isComplete), at: Self.url) == .proceed)
    #expect(upload.next() == .append(.init(offset: 50, count: 50, isLast: true)))
    #expect(upload.next() == .offset)
    #expect(upload.process(Self.offset(49, isComplete), at: Self.url) == .failure(.wrongOffset(49)))
    var missing = Self.begun(dialect, sent: 60)
    _ = missing.next()
    #expect(missing.process(Self.offset(nil, isComplete), at: Self.url) == .failure(.wrongOffset(nil)))
  }

  @Test("Upload-Complete is required and must agree with the offset") func completeness() {
    var missing = Self.begun(.draft)
    _ = missing.next()
    #expect(missing.process(Self.offset(10, nil), at: Self.url) == .failure(.wrongOffset(nil)))
    var early = Self.begun(.draft)
    _ = early.next()
    #expect(early.process(Self.offset(10, true), at: Self.url) == .failure(.wrongOffset(10)))
  }

  @Test("Another length is refused", arguments: dialects) func wrongLength(dialect: UploadResumption.Dialect)
  {
    var upload = Self.begun(dialect)
    _ = upload.next()
    var answer = Self.offset(10)
    answer.length = 99
    #expect(upload.process(answer, at: Self.url) == .failure(.wrongLength(99)))
  }

  @Test("The offset of a response to PATCH is within its part", arguments: dialects)
  func offsetsOfParts(dialect: UploadResumption.Dialect) {
    for (named, verdict) in [
      (19, .failure(.wrongOffset(19))), (20, .refusal), (25, .proceed), (30, .proceed),
      (31, .failure(.wrongOffset(31))),
    ] as [(Int64, UploadResumption.Verdict)] {
      var upload = Self.begun(dialect, sent: 20) { $0.largestPart = 10 }
      _ = upload.next()
      #expect(upload.process(Self.offset(20), at: Self.url) == .proceed)
      #expect(upload.next() == .append(.init(offset: 20, count: 10, isLast: false)))
      upload.contentRead(upTo: 30)
      #expect(upload.process(Self.offset(named), at: Self.url) == verdict)
    }
  }

  // MARK: Failures

  @Test("Temporary statuses are followed by HEAD after a delay", arguments: dialects)
  func temporaryStatuses(dialect: UploadResumption.Dialect) {
    for status in [408, 409, 423, 429, 500, 503] {
      var upload = Self.begun(dialect, sent: 60)
      _ = upload.next()
      _ = upload.process(Self.offset(50), at: Self.url)
      _ = upload.next()
      #expect(upload.process(UploadAnswer(status: status), at: Self.url) == .refusal)
      #expect(upload.delay(after: .response, random: 0) != nil)
      #expect(upload.next() == .offset)
    }
    for status in [401, 403, 415] {
      var upload = Self.begun(dialect, sent: 60)
      _ = upload.next()
      #expect(upload.process(UploadAnswer(status: status), at: Self.url) == .refusal)
      #expect(upload.delay(after: .response, random: 0) == nil)
    }
  }

  @Test("Delays grow without progress up to the limit of failures, and progress resets them") func delays() {
    var upload = Self.begun(.draft, sent: 60) {
      $0.failureLimit = 4
      $0.maximumDelay = .seconds(5)
    }
    func lost() -> Duration? { upload.delay(after: .network(sentNothing: false), random: 1) }
    #expect([lost(), lost(), lost()] == [.seconds(1), .seconds(2), .seconds(4)])
    _ = upload.next()
    _ = upload.process(Self.offset(10), at: Self.url)
    _ = upload.next()
    upload.contentRead(upTo: 100)
    #expect([lost(), lost(), lost(), lost()] == [1, 2, 4, 5].map { .seconds($0) })
    #expect(lost() == nil)
  }

  @Test("Retry-After is the shortest delay, up to the limit") func retryAfter() {
    for (asked, delay) in [(3, 3), (1000, 60)] as [(Int64, Int)] {
      var upload = Self.begun(.tus)
      var answer = UploadAnswer(status: 503)
      answer.retryAfter = asked
      #expect(upload.process(answer, at: Self.url) == .refusal)
      #expect(upload.delay(after: .response, random: 0) == .seconds(delay))
    }
  }

  @Test("A part that is too large is sent in smaller ones") func tooLarge() {
    var upload = Self.begun(.draft, sent: 100)
    var answer = UploadAnswer(status: 413)
    answer.limits = UploadLimits("max-append-size=40")
    #expect(upload.process(answer, at: Self.url) == .proceed)
    #expect(upload.next() == .offset)
    #expect(upload.process(Self.offset(0), at: Self.url) == .proceed)
    #expect(upload.next() == .append(.init(offset: 0, count: 40, isLast: false)))
    var whole = Self.begun(.draft)
    answer.limits = UploadLimits("max-size=99")
    #expect(whole.process(answer, at: Self.url) == .failure(.sizeNotAccepted(limit: 99)))
    var other = Self.begun(.draft)
    #expect(other.process(UploadAnswer(status: 413), at: Self.url) == .result)
  }

  // MARK: The protocol and the URL of the upload

  @Test("The protocol of the server is asked for") func discovery() {
    var tus = UploadResumption(length: 10)
    #expect(tus.next() == .discovery)
    #expect(tus.fields(of: .discovery) == [HTTPHeader(name: "Tus-Resumable", value: "1.0.0")])
    let head = ResponseHead(
      status: 204,
      fields: [
        HTTPHeader(name: "Tus-Version", value: "0.2.2, 1.0.0"), HTTPHeader(name: "Tus-Max-Size", value: "20"),
        HTTPHeader(name: "Tus-Extension", value: "expiration,creation"),
      ])
    #expect(tus.process(UploadAnswer(head), support: TusSupport(head), at: Self.url) == .proceed)
    #expect(tus.dialect == .tus)
    var large = UploadResumption(length: 21)
    _ = large.next()
    #expect(
      large.process(UploadAnswer(head), support: TusSupport(head), at: Self.url)
        == .failure(.sizeNotAccepted(limit: 20)))
    for status in [200, 204, 404, 405, 501] {
      var draft = UploadResumption(length: 10)
      _ = draft.next()
      #expect(draft.process(UploadAnswer(status: status), at: Self.url) == .proceed)
      #expect(draft.next() == .creation(.init(offset: 0, count: 10, isLast: true)))
    }
  }

  @Test("A largest size that is not a size is unknown", arguments: ["-1", "-20", "1.5", "many", ""])
  func invalidMaximumSize(text: String) {
    let head = ResponseHead(
      status: 204,
      fields: [
        HTTPHeader(name: "Tus-Version", value: "1.0.0"), HTTPHeader(name: "Tus-Max-Size", value: text),
        HTTPHeader(name: "Tus-Extension", value: "creation"),
      ])
    var upload = UploadResumption(length: 10)
    _ = upload.next()
    #expect(upload.process(UploadAnswer(head), support: TusSupport(head), at: Self.url) == .proceed)
    #expect(upload.dialect == .tus)
    #expect(upload.limits.maximumSize == nil)
  }

  @Test("A response 104 with another interop version is ignored") func interopVersion() {
    for version in [nil, 5, 7] as [Int64?] {
      var upload = UploadResumption(length: 10, policy: Self.policy(.draft))
      _ = upload.next()
      var answer = Self.named(104)
      answer.interopVersion = version
      let isNamed = upload.informational(answer, at: Self.url)
      #expect(!isNamed && upload.resource == nil)
    }
  }

  @Test(
    "The URL of an upload never leaves TLS",
    arguments: [
      ("https://a.example/", "/x?y#z", "https://a.example/x?y#z"),
      ("https://a.example/b/c", "d", "https://a.example/b/d"),
      ("https://a.example/", "https://b.example/x", "https://b.example/x"),
      ("https://a.example/", "http://a.example/x", nil),
      ("http://a.example/", "https://a.example/x", "https://a.example/x"),
      ("http://a.example/", "http://b.example/x", "http://b.example/x"),
      ("http://a.example/", "file:///x", nil),
      ("http://a.example/", "https://u:p@b.example/x", "https://b.example/x"), ("http://a.example/", "", nil),
    ] as [(String, String, String?)]) func resources(url: String, location: String, resource: String?)
  {
    #expect(UploadResource(location, at: url)?.url == resource)
  }

  @Test("Requests have the fields of their protocol") func fields() throws {
    var draft = UploadResumption(length: 10, policy: Self.policy(.draft))
    #expect(
      Self.text(&draft, "PUT")
        == "PUT Upload-Draft-Interop-Version: 6, Upload-Complete: ?1, Upload-Length: 10")
    _ = draft.informational(Self.named(104), at: Self.url)
    draft.contentRead(upTo: 9)
    #expect(Self.text(&draft, "PUT") == "HEAD Upload-Draft-Interop-Version: 6")
    _ = draft.process(Self.offset(4), at: Self.url)
    #expect(
      Self.text(&draft, "PUT")
        == "PATCH Upload-Draft-Interop-Version: 6, Upload-Complete: ?1, Upload-Offset: 4, Content-Type: application/partial-upload"
    )
    var policy = Self.policy(.tus)
    policy.metadata = try UploadMetadata.field(["name": "a b", "empty": ""])
    var tus = UploadResumption(length: 10, policy: policy)
    #expect(
      Self.text(&tus, "PUT")
        == "POST Tus-Resumable: 1.0.0, Upload-Length: 10, Upload-Metadata: empty,name YSBi")
    _ = tus.process(Self.named(201), at: Self.url)
    #expect(
      Self.text(&tus, "PUT")
        == "PATCH Tus-Resumable: 1.0.0, Upload-Offset: 0, Content-Type: application/offset+octet-stream")
    for key in ["", "a b", "a,b", "ä"] {
      #expect(throws: ResumableUploadError.invalidMetadataKey(key)) { try UploadMetadata.field([key: ""]) }
    }
  }

  private static func text(_ upload: inout UploadResumption, _ method: String) -> String {
    let request = upload.next()
    let fields = upload.fields(of: request).map(\.description).joined(separator: ", ")
    return "\(upload.method(of: request, original: method)) \(fields)"
  }

  @Test("Fields of the content stay with the request that has all of it") func keptFields() {
    let draft = UploadResumption(length: 10, policy: Self.policy(.draft))
    let whole = UploadResumption.Request.creation(.init(offset: 0, count: 10, isLast: true))
    let first = UploadResumption.Request.creation(.init(offset: 0, count: 5, isLast: false))
    #expect(draft.keeps("Content-MD5", in: whole) && draft.keeps("content-type", in: first))
    #expect(!draft.keeps("content-md5", in: first) && !draft.keeps("Content-Type", in: .offset))
    #expect(draft.keeps("Authorization", in: .offset) && draft.keeps("X-Own", in: first))
    let tus = UploadResumption(length: 10, policy: Self.policy(.tus))
    #expect(!tus.keeps("Content-Type", in: first))
    for name in ["If-Match", "if-none-match", "If-Modified-Since", "If-Unmodified-Since", "Range"] {
      #expect(tus.keeps(name, in: first) && !tus.keeps(name, in: .offset))
    }
  }

  @Test("Problem documents are recognised by type") func problems() {
    let field = HTTPHeader.contentType("application/problem+json; charset=utf-8")
    let head = ResponseHead(status: 400, fields: [field])
    let document = Data(#"{"type": "https://iana.org/assignments/http-problem-types#completed-upload"}"#.utf8)
    #expect(UploadAnswer(head, body: document).problem == .completedUpload)
    #expect(UploadAnswer(ResponseHead(status: 400), body: document).problem == nil)
    #expect(UploadAnswer(head, body: Data("{".utf8)).problem == nil)
    var upload = Self.begun(.draft)
    _ = upload.next()
    _ = upload.process(Self.offset(50), at: Self.url)
    _ = upload.next()
    #expect(upload.process(UploadAnswer(head, body: document), at: Self.url) == .refusal)
    #expect(upload.delay(after: .response, random: 0) != nil && upload.next() == .offset)
  }

  @Test("The upload of another process begins with HEAD and is never begun again") func otherProcess() throws
  {
    let resource = try #require(UploadResource(url: "https://a.example/files/1"))
    var upload = UploadResumption(
      length: 10, resource: resource, dialect: .draft, policy: Self.policy(.draft))
    #expect(upload.next() == .offset)
    #expect(upload.process(Self.offset(7), at: Self.url) == .proceed)
    #expect(upload.next() == .append(.init(offset: 7, count: 3, isLast: true)))
    var removed = UploadResumption(
      length: 10, resource: resource, dialect: .tus, policy: Self.policy(nil), isRemoved: true)
    #expect(Self.text(&removed, "PUT") == "DELETE Tus-Resumable: 1.0.0")
    #expect(removed.process(UploadAnswer(status: 204), at: Self.url) == .result)
    var gone = UploadResumption(length: 10, resource: resource, dialect: .tus, policy: Self.policy(nil))
    _ = gone.next()
    #expect(gone.process(UploadAnswer(status: 404), at: Self.url) == .failure(.uploadIsGone))
  }

  @Test(
    "An upload of another process begins again only if bytes were missing", arguments: dialects, [404, 410])
  func expired(dialect: UploadResumption.Dialect, status: Int) throws {
    let resource = try #require(UploadResource(url: "https://a.example/files/1"))
    for mayBeComplete in [true, false] {
      var upload = UploadResumption(
        length: 100, resource: resource, dialect: dialect, policy: Self.policy(dialect),
        mayBeComplete: mayBeComplete)
      #expect(upload.next() == .offset)
      let verdict = upload.process(UploadAnswer(status: status), at: resource.url)
      #expect(verdict == (mayBeComplete ? .failure(.uploadIsGone) : .proceed))
      guard !mayBeComplete else { continue }
      #expect(upload.resource == nil && !upload.mayBeComplete)
      guard case .creation = upload.next() else {
        Issue.record("The upload does not begin again.")
        return
      }
    }
  }
}
