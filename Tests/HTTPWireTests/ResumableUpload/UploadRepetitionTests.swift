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
}
