import HTTPWire
import Testing

/// Answers to the last bytes of an upload, whose offset is asked for afterwards.
@Suite("Failures after the last byte of resumable uploads") struct UploadLateFailureTests {
  private static let url = "https://a.example/upload"

  /// Makes an upload that has sent all its bytes.
  ///
  /// - Parameter isRepeated: Whether an earlier request had sent them, too.
  private static func sent(_ dialect: UploadResumption.Dialect, isRepeated: Bool = false) throws
    -> UploadResumption
  {
    let resource = try #require(UploadResource(url: url))
    var upload = UploadResumption(
      length: 100, resource: resource, dialect: dialect, policy: UploadResumption.Policy(),
      mayBeComplete: isRepeated)
    _ = upload.next()
    _ = upload.process(offset(0, false), at: url)
    _ = upload.next()
    upload.contentRead(upTo: 100)
    return upload
  }

  private static func offset(_ offset: Int64?, _ isComplete: Bool?, status: Int = 204) -> UploadAnswer {
    var answer = UploadAnswer(status: status)
    answer.offset = offset
    answer.isComplete = isComplete
    return answer
  }

  @Test("A failure of the server after the last byte is not a success") func failureBehindLastByte() throws {
    var mismatch = UploadAnswer(status: 409)
    mismatch.problem = .mismatchingOffset
    let late = [500, 503, 409, 423, 425, 429].map { (UploadAnswer(status: $0), true) }
    let lost = [408, 502, 504].map { (UploadAnswer(status: $0), false) }
    for (answer, isFailure) in late + lost + [(Self.offset(90, nil, status: 409), false), (mismatch, false)] {
      let failure = UploadResumption.Verdict.failure(.failedAfterUpload(status: answer.status))
      let verdict = isFailure ? failure : .result
      var upload = try Self.sent(.draft)
      #expect(upload.process(answer, at: Self.url) == .refusal)
      #expect(upload.delay(after: .response, random: 0) != nil)
      #expect(upload.next() == .offset)
      #expect(upload.process(Self.offset(100, true), at: Self.url) == verdict)
    }
  }

  @Test("The lock of an upload by tus is no failure of the upload", arguments: [409, 423])
  func lockedUpload(status: Int) throws {
    var upload = try Self.sent(.tus)
    #expect(upload.process(UploadAnswer(status: status), at: Self.url) == .refusal)
    #expect(upload.next() == .offset)
    #expect(upload.process(Self.offset(100, nil), at: Self.url) == .result)
  }

  @Test(
    "The lock of an earlier request, which the server still stores, is no failure of the upload",
    arguments: [409, 423, 425])
  func earlierRequest(status: Int) throws {
    var upload = try Self.sent(.draft, isRepeated: true)
    #expect(upload.process(UploadAnswer(status: status), at: Self.url) == .refusal)
    #expect(upload.next() == .offset)
    #expect(upload.process(Self.offset(100, true), at: Self.url) == .result)
  }

  @Test("A failure after the last byte counts in the next process, too", arguments: [500, nil])
  func storedFailure(status: Int?) throws {
    let resource = try #require(UploadResource(url: Self.url))
    var upload = UploadResumption(
      length: 10, resource: resource, dialect: .draft, policy: UploadResumption.Policy(),
      statusAfterLastByte: status)
    _ = upload.next()
    let end = status.map { UploadResumption.Verdict.failure(.failedAfterUpload(status: $0)) } ?? .result
    #expect(upload.process(Self.offset(10, true), at: Self.url) == end)
  }
}
