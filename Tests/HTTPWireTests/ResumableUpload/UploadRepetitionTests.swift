import Foundation
import HTTPWire
import Testing

/// Requests of resumable uploads that are sent again: how often, and in which parts.
@Suite("Repeated requests of resumable uploads") struct UploadRepetitionTests {
  private static let url = "https://a.example/upload"

  private static func upload(_ dialect: UploadResumption.Dialect, length: Int64) -> UploadResumption {
    var policy = UploadResumption.Policy()
    policy.dialect = dialect
    return UploadResumption(length: length, policy: policy)
  }

  @Test("A creation whose content was read is not repeated, whatever failed then") func readContent() {
    var upload = Self.upload(.draft, length: 10)
    _ = upload.next()
    upload.contentRead(upTo: 10)
    #expect(upload.delay(after: .network(sentNothing: true), random: 0) == nil)
  }

  @Test("A creation that was refused is repeated in a smaller part, also if the server is gone for a while")
  func refusedContent() {
    var upload = Self.upload(.draft, length: 100)
    _ = upload.next()
    upload.contentRead(upTo: 100)
    #expect(upload.process(Self.tooLarge(40), at: Self.url) == .proceed)
    _ = upload.next()
    #expect(upload.delay(after: .network(sentNothing: true), random: 0) != nil)
  }

  private static func tooLarge(_ limit: Int64) -> UploadAnswer {
    var answer = UploadAnswer(status: 413)
    answer.limits = UploadLimits("max-append-size=\(limit)")
    return answer
  }

  @Test("A server whose limit falls by a byte each time is asked a few times only") func fallingLimit() throws
  {
    let resource = try #require(UploadResource(url: Self.url))
    var policy = UploadResumption.Policy()
    policy.dialect = .draft
    var upload = UploadResumption(length: 1000, resource: resource, dialect: .draft, policy: policy)
    var offset = UploadAnswer(status: 204)
    (offset.offset, offset.isComplete) = (0, false)
    var (count, verdict) = (0, UploadResumption.Verdict.proceed)
    while verdict == .proceed, count < 100 {
      let part = upload.next().part
      verdict = upload.process(part.map { Self.tooLarge($0.count - 1) } ?? offset, at: Self.url)
      count += 1
    }
    #expect(verdict == .refusal && count <= 20, "\(count) requests")
  }

  @Test("A server whose limit falls a little is asked again if it has taken bytes before") func progress()
    throws
  {
    let resource = try #require(UploadResource(url: Self.url))
    var policy = UploadResumption.Policy()
    policy.dialect = .tus
    var upload = UploadResumption(length: 1000, resource: resource, dialect: .tus, policy: policy)
    for taken in 0..<20 {
      var offset = UploadAnswer(status: 204)
      offset.offset = Int64(taken)
      #expect(upload.next() == .offset)
      #expect(upload.process(offset, at: Self.url) == .proceed)
      let part = try #require(upload.next().part)
      #expect(upload.process(Self.tooLarge(part.count - 1), at: Self.url) == .proceed, "\(taken)")
    }
  }

  /// Performs an upload to a server that takes at most `step` bytes of each part. Returns the last verdict.
  private static func perform(
    _ dialect: UploadResumption.Dialect, length: Int64, step: Int64
  ) throws -> (verdict: UploadResumption.Verdict, count: Int) {
    let resource = try #require(UploadResource(url: Self.url))
    var policy = UploadResumption.Policy()
    policy.dialect = dialect
    var upload = UploadResumption(length: length, resource: resource, dialect: dialect, policy: policy)
    var (count, taken) = (0, Int64(0))
    while count < 100 {
      count += 1
      let part = upload.next().part
      if let part {
        upload.contentRead(upTo: part.end)
        taken += min(step, part.count)
      }
      var answer = UploadAnswer(status: 204)
      (answer.offset, answer.isComplete) = (taken, dialect == .draft && part != nil && taken == length)
      let verdict = upload.process(answer, at: Self.url)
      if verdict == .refusal, upload.delay(after: .response, random: 0) != nil { continue }
      if verdict != .proceed { return (verdict, count) }
    }
    return (.proceed, count)
  }

  @Test(
    "A server that takes a byte of each part is refused", arguments: [UploadResumption.Dialect.draft, .tus])
  func byteByByte(dialect: UploadResumption.Dialect) throws {
    let (verdict, count) = try Self.perform(dialect, length: 10_000, step: 1)
    #expect(verdict == .refusal && count < 100, "\(count) requests")
  }

  @Test(
    "A server that takes small parts gets small parts",
    arguments: [UploadResumption.Dialect.draft, .tus], [100_000, 1 << 20] as [Int64])
  func smallParts(dialect: UploadResumption.Dialect, step: Int64) throws {
    let (verdict, count) = try Self.perform(dialect, length: step * 40, step: step)
    #expect(verdict == .result, "after \(count) requests")
  }

  @Test(
    "Retry-After is a number of seconds or a date",
    arguments: [
      ("30", 30), (" 30 ", 30), ("Mon, 01 Jan 2024 00:00:40 GMT", 30),
      ("Sun, 31 Dec 2023 00:00:00 GMT", 0), ("99999999999999999999", 31_536_000), ("soon", nil), ("-1", nil),
    ] as [(String, Int64?)])
  func retryAfter(value: String, seconds: Int64?) {
    let head = ResponseHead(
      status: 503,
      fields: [
        HTTPHeader(name: "Retry-After", value: value),
        HTTPHeader(name: "Date", value: "Mon, 01 Jan 2024 00:00:10 GMT"),
      ])
    #expect(UploadAnswer(head).retryAfter == seconds)
  }
}
