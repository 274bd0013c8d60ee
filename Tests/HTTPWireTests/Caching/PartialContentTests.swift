import FoundationEssentials
import HTTPWire
import Testing

@Suite("Parts of a response in the cache") struct PartialContentTests {
  private typealias Fixture = CacheFixture

  private static func part(
    _ range: String, _ body: String, tag: String = "\"1\"", requestFields: [(String, String)] = [],
    at time: Int64 = 0, digests: String? = nil,
    _ more: (String, String)...
  ) -> StoredResponse {
    Fixture.response(
      [("Content-Range", range), ("ETag", tag), ("Cache-Control", "max-age=60")] + more
        + (digests.map { digest in digestFields.map { ($0, digest) } } ?? []), status: 206,
      body: body,
      requestFields: requestFields, at: Fixture.start + time)
  }

  /// Two digests of the bytes of a message, and one of its representation.
  private static let digestFields = ["Content-Digest", "Content-MD5", "Repr-Digest"]

  private static func digests(_ head: ResponseHead) -> [String?] { digestFields.map { head.value($0) } }

  @Test(
    "Ranges of responses are parsed",
    arguments: [
      ("bytes 0-4/10", 0..<5, 10), ("BYTES 9-9/10", 9..<10, 10), ("bytes 0-0/1", 0..<1, 1),
    ]) func ranges(text: String, bounds: Range<Int>, total: Int) throws
  {
    let range = try #require(PartRange(text))
    #expect(range.bounds == bounds && range.total == total && range.text.lowercased() == text.lowercased())
  }

  @Test(
    "An invalid range is refused",
    arguments: [
      "", "bytes", "bytes 0-4", "bytes 0-4/*", "bytes */10", "bytes 5-4/10", "bytes 0-10/10", "bytes -4/10",
      "bytes 0-4/10, bytes 5-9/10", "lines 0-4/10", "bytes 0-4/99999999999999999999", "bytes +0-4/10",
      "bytes 0-9223372036854775807/9223372036854775807",
    ]) func invalidRanges(text: String)
  { #expect(PartRange(text) == nil) }

  @Test("Parts are stored if their version and range are known") func storedParts() {
    func mayStore(_ fields: (String, String)..., status: Int = 206, requestFields: String? = "bytes=0-4")
      -> Bool
    {
      Fixture.mayStore(
        [("Cache-Control", "max-age=60")] + fields, status: status,
        requestFields: requestFields.map { [("Range", $0)] } ?? []
      )
    }
    let place = ("Content-Range", "bytes 0-4/10")
    let tag = ("ETag", "\"1\"")
    #expect(mayStore(place, tag))
    #expect(!mayStore(place, ("ETag", "W/\"1\"")) && !mayStore(place, ("ETag", "1")) && !mayStore(place))
    #expect(!mayStore(tag) && !mayStore(("Content-Range", "bytes 0-4/*"), tag))
    #expect(!mayStore(place, tag, ("Content-Encoding", "gzip")))
    #expect(!mayStore(place, tag, ("Cache-Control", "no-store")))
    #expect(!mayStore(place, tag, requestFields: nil), "the request had no range")
    #expect(!mayStore(tag, status: 200), "the server may not know what a range is")
  }

  @Test("A part answers requests for its bytes") func partForRange() throws {
    let stored = Self.part("bytes 2-6/10", "23456", digests: "old")
    #expect(Fixture.decide(stored, requestFields: [("Range", "bytes=2-6")]) == .serve)
    #expect(Fixture.decide(stored, requestFields: [("Range", "bytes=3-4")]) == .serve)
    for range in ["bytes=1-4", "bytes=3-7", "bytes=3-", "bytes=-3", "bytes=0-", "lines=3-4"] {
      #expect(Fixture.decide(stored, requestFields: [("Range", range)]) == .send, "\(range)")
    }
    #expect(Fixture.decide(stored) == .send && Fixture.decide(stored, policy: .storedOnly) == .unavailable)
    #expect(Fixture.decide(stored, requestFields: [("Range", "bytes=3-4")], method: "HEAD") == .send)
    #expect(
      Fixture.decide(stored, after: 60, requestFields: [("Range", "bytes=3-4")])
        == .validate(["If-None-Match: \"1\""]))
    let answer = try #require(Fixture.answer(stored, requestFields: [("Range", "bytes=3-4")]))
    #expect(answer.head.status == 206 && answer.body == Data("34".utf8) && answer.body.startIndex == 0)
    #expect(
      answer.head.value("Content-Range") == "bytes 3-4/10" && answer.head.value("Content-Length") == "2")
    #expect(Self.digests(answer.head) == [nil, nil, "old"], "the digests of other bytes")
    let short = Self.part("bytes 2-6/10", "234")
    #expect(
      Fixture.decide(short, requestFields: [("Range", "bytes=2-3")]) == .send, "its bytes are not all there")
  }

  @Test(
    "A range with a condition is answered by the version that the condition names",
    arguments: [
      ("\"1\"", true), ("\"2\"", false), ("W/\"1\"", false), ("1", false), ("nonsense, \"1\"", false),
      ("", false), (Fixture.date(Fixture.start - 1), true), (Fixture.date(Fixture.start - 2), false),
      (Fixture.date(Fixture.start), false),
    ]) func conditionalRange(condition: String, isMet: Bool) throws
  {
    let fields = [("Range", "bytes=3-4"), ("If-Range", condition)]
    let whole = Fixture.response(
      [("ETag", "\"1\""), ("Last-Modified", Fixture.date(Fixture.start - 1))], body: "0123456789")
    #expect(Fixture.decide(whole, requestFields: fields, policy: .storedOnly) == .serve)
    let answer = try #require(Fixture.answer(whole, requestFields: fields))
    #expect(answer.head.status == (isMet ? 206 : 200))
    #expect(answer.body == Data((isMet ? "34" : "0123456789").utf8))
    let part = Self.part(
      "bytes 2-6/10", "23456", tag: "\"1\"", requestFields: [], at: 0,
      ("Last-Modified", Fixture.date(Fixture.start - 1)))
    #expect(Fixture.answer(part, requestFields: fields)?.body == (isMet ? Data("34".utf8) : nil))
  }

  @Test("A date is a condition for a range only if the response was created after it") func weakDate() {
    let date = ("Last-Modified", Fixture.date(Fixture.start))
    let fields = [("Range", "bytes=3-4"), ("If-Range", date.1)]
    #expect(
      Fixture.answer(Fixture.response([date], body: "0123456789"), requestFields: fields)?.head.status == 200)
    let weak = Fixture.response([("ETag", "W/\"1\"")], body: "0123456789")
    let tagged = [("Range", "bytes=3-4"), ("If-Range", "\"1\"")]
    #expect(Fixture.answer(weak, requestFields: tagged)?.head.status == 200)
  }

  @Test(
    "Adjacent parts are combined",
    arguments: [
      ("bytes 0-4/10", "01234", "bytes 5-9/10", "56789", "0123456789", 200),
      ("bytes 5-9/10", "56789", "bytes 0-4/10", "01234", "0123456789", 200),
      ("bytes 0-4/10", "01234", "bytes 3-7/10", "34567", "01234567", 206),
      ("bytes 0-7/10", "01234567", "bytes 3-4/10", "34", "01234567", 206),
      ("bytes 3-4/10", "34", "bytes 1-7/10", "1234567", "1234567", 206),
      // With a gap between them, or with another length, only the newer part is stored.
      ("bytes 0-2/10", "012", "bytes 5-6/10", "56", "56", 206),
      ("bytes 0-4/10", "01234", "bytes 5-9/11", "56789", "56789", 206),
    ])
  func adjacentParts(
    old: String, oldBody: String, new: String, newBody: String, body: String, status: Int
  ) throws {
    let older = Self.part(old, oldBody, at: 0, digests: "old", ("X-Old", "1"))
    let newer = Self.part(new, newBody, at: 30, digests: "new")
    let all = try #require(PartialContent.combined(newer, with: [older]))
    #expect(String(decoding: all.body, as: UTF8.self) == body && all.head.status == status)
    #expect((all.head.value("Content-Range") == nil) == (status == 200))
    #expect(all.responseTime == Fixture.start + 30)
    #expect(Self.digests(all.head) == (all === newer ? ["new", "new", "new"] : [nil, nil, "new"]))
    guard body != newBody else { return }
    #expect(all.head.value("Content-Length") == "\(body.count)" && all.head.value("X-Old") == "1")
    #expect(status == 200 || PartialContent.range(of: all)?.bounds.count == body.count)
    if status == 200 { #expect(Fixture.decide(all, after: 60) == .serve) }
  }

  @Test("Parts of different versions are not combined") func partsOfAnotherVersionAreNotCombined() throws {
    let first = Self.part("bytes 0-4/10", "01234")
    let second = Self.part("bytes 5-9/10", "56789", tag: "\"2\"")
    #expect(PartialContent.combined(second, with: [first]) === second)
    let other = Self.part("bytes 5-9/10", "56789", requestFields: [("Authorization", "Bearer a")])
    #expect(PartialContent.combined(other, with: [first]) === other)
    let weak = Self.part("bytes 5-9/10", "56789", tag: "W/\"1\"")
    #expect(PartialContent.combined(weak, with: [first]) == nil)
  }

  @Test("A 206 revalidates the complete response of its version") func partRevalidatesWhole() throws {
    let whole = Fixture.response(
      [("ETag", "\"1\""), ("Cache-Control", "max-age=60"), ("Content-Digest", "whole")], body: "0123456789")
    let part = Self.part("bytes 5-9/10", "56789", at: 50, digests: "part", ("X-New", "1"))
    let fresh = try #require(PartialContent.combined(part, with: [whole]))
    #expect(fresh.body == whole.body && fresh.head.status == 200 && fresh.head.value("X-New") == "1")
    #expect(fresh.head.value("Content-Range") == nil && Fixture.decide(fresh, after: 100) == .serve)
    #expect(Self.digests(fresh.head) == ["whole", nil, "part"])
    let other = Self.part("bytes 5-9/10", "56789", tag: "\"2\"", at: 50)
    #expect(
      PartialContent.combined(other, with: [whole]) == nil, "what is stored stays until it is validated")
    let longer = Self.part("bytes 5-9/11", "56789", at: 50)
    #expect(PartialContent.combined(longer, with: [whole]) == nil)
  }
}
