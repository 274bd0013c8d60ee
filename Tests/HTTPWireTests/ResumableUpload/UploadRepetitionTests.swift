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

  @Test("A server that refuses parts of the smallest size that it states gets smaller ones, a few times only")
  func contradictoryLimits() throws {
    let resource = try #require(UploadResource(url: Self.url))
    var upload = UploadResumption(
      length: 1000, resource: resource, dialect: .draft, policy: UploadResumption.Policy())
    var offset = UploadAnswer(status: 204)
    (offset.offset, offset.isComplete) = (0, false)
    offset.limits = UploadLimits("max-append-size=500, min-append-size=500")
    var (sizes, verdict) = ([Int64](), UploadResumption.Verdict.proceed)
    while verdict == .proceed, sizes.count < 100 {
      let part = upload.next().part
      if let part { sizes.append(part.count) }
      verdict = upload.process(part == nil ? offset : Self.tooLarge(10), at: Self.url)
    }
    #expect(verdict == .refusal && sizes == [500, 10], "\(sizes)")
  }

  @Test("A server that takes a byte before each refusal of a part is asked a limited number of times")
  func endlessRefusals() throws {
    let resource = try #require(UploadResource(url: Self.url))
    var upload = UploadResumption(
      length: 10_000, resource: resource, dialect: .draft, policy: UploadResumption.Policy())
    var (count, verdict) = (0, UploadResumption.Verdict.proceed)
    while verdict == .proceed, count < 1000 {
      var offset = UploadAnswer(status: 204)
      (offset.offset, offset.isComplete) = (Int64(count), false)
      let part = upload.next().part
      if part != nil { count += 1 }
      verdict = upload.process(part.map { Self.tooLarge($0.count - 1) } ?? offset, at: Self.url)
    }
    #expect(verdict == .refusal && count < 100, "\(count) requests")
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

  /// Performs an upload to a server that takes `step` bytes of each part and then fails, with a status or without an
  /// answer. Returns whether the upload was completed, and the numbers of its parts and of the bytes that were read.
  ///
  /// - Parameter ahead: The number of bytes that are read ahead of the server; `nil` for the whole part.
  private static func fail(
    _ length: Int64, step: Int64, ahead: Int64?, status: Int?
  ) throws -> (isComplete: Bool, count: Int, read: Int64) {
    let resource = try #require(UploadResource(url: Self.url))
    var upload = UploadResumption(
      length: length, resource: resource, dialect: .tus, policy: UploadResumption.Policy())
    var (count, taken, read) = (0, Int64(0), Int64(0))
    while count < 2000 {
      let part = upload.next().part
      if let part {
        count += 1
        taken = min(part.offset + step, part.end)
        let end = min(part.end, ahead.map { taken + $0 } ?? .max)
        upload.contentRead(upTo: end)
        read += end - part.offset
      }
      guard part == nil || taken == part?.end else {
        if let status { _ = upload.process(UploadAnswer(status: status), at: Self.url) }
        let failure = status == nil ? UploadResumption.Failure.network(sentNothing: false) : .response
        guard upload.delay(after: failure, random: 0) != nil else { return (false, count, read) }
        continue
      }
      var answer = UploadAnswer(status: 204)
      answer.offset = taken
      guard upload.process(answer, at: Self.url) == .proceed else { return (taken == length, count, read) }
    }
    return (false, count, read)
  }

  @Test(
    "A server that fails after a few bytes of each part is not sent the rest for each of them",
    arguments: [503, nil])
  func failedParts(status: Int?) throws {
    let length = Int64(100 << 20)
    let (isComplete, count, read) = try Self.fail(length, step: 10, ahead: nil, status: status)
    #expect(!isComplete && count < 50 && read < 10 * length, "\(count) parts, \(read) bytes")
  }

  @Test("Connections that break again and again complete an upload", arguments: [503, nil])
  func brokenConnections(status: Int?) throws {
    let length = Int64(100 << 20)
    for (step, ahead) in [(100_000, 1 << 20), (200_000, 8 << 20), (5 << 20, nil)] as [(Int64, Int64?)] {
      let (isComplete, _, read) = try Self.fail(length, step: step, ahead: ahead, status: status)
      #expect(isComplete && read < 20 * length, "\(step): \(read) bytes")
    }
  }

  @Test("A server that limits the parts of a large upload to a byte is refused") func tinyLimit() throws {
    let resource = try #require(UploadResource(url: Self.url))
    var upload = UploadResumption(
      length: 1 << 20, resource: resource, dialect: .draft, policy: UploadResumption.Policy())
    var (count, taken, verdict) = (0, Int64(0), UploadResumption.Verdict.proceed)
    while count < 200, verdict == .proceed {
      count += 1
      let part = upload.next().part
      if let part { upload.contentRead(upTo: part.end) }
      taken = part?.end ?? taken
      var answer = UploadAnswer(status: 204)
      (answer.offset, answer.isComplete) = (taken, false)
      answer.limits = UploadLimits("max-append-size=1")
      verdict = upload.process(answer, at: Self.url)
      if verdict == .refusal, upload.delay(after: .response, random: 0) != nil { verdict = .proceed }
    }
    #expect(verdict == .refusal && count < 50, "\(count) requests")
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

  @Test("A location that is not UTF-8 names the server's resource") func otherEncoding() {
    let block = FieldBlock(bytes: Array("Location: /caf".utf8) + [0xE9])
    let answer = UploadAnswer(ResponseHead(status: 201, version: .http1_1, block: block))
    #expect(answer.location == "/caf%E9")
  }
}
