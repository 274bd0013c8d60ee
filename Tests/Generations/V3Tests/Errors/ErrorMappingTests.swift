import Alamofire
@testable import AlamofireV3
import Foundation
import FoundationNetworking
import Testing

@Suite struct ErrorMappingTests {
  private static let own = NSError(domain: "own", code: 1)
  private static let file = URL(fileURLWithPath: "/a")
  private static let transport = "NSURLErrorDomain"
  private static let kinds = "com.alamofire.error"

  private static let cancelled = "\(transport) \(NSURLErrorCancelled)"
  private static let badURL = "\(transport) \(NSURLErrorBadURL)"
  private static let cannotOpen = "\(transport) \(NSURLErrorCannotOpenFile)"

  private static let table: [(AFError, String)] = [
    (.createUploadableFailed(error: own), "own 1"),
    (.createURLRequestFailed(error: own), "own 1"),
    (.createURLRequestFailed(error: AFError.explicitlyCancelled), cancelled),
    (.downloadedFileMoveFailed(error: own, source: file, destination: file), "own 1"),
    (.explicitlyCancelled, cancelled),
    (.invalidURL(url: ""), badURL),
    (.requestAdaptationFailed(error: own), "own 1"),
    (.requestRetryFailed(retryError: NSError(domain: "retry", code: 2), originalError: own), "own 1"),
    (.serverTrustEvaluationFailed(reason: .noCertificatesFound), cancelled),
    (.sessionDeinitialized, cancelled),
    (.sessionInvalidated(error: nil), cancelled),
    (.sessionInvalidated(error: own), cancelled),
    (.sessionTaskFailed(error: URLError(.timedOut)), "\(transport) \(NSURLErrorTimedOut)"),
    (.sessionTaskFailed(error: own), "own 1"),
    (
      .urlRequestValidationFailed(reason: .bodyDataInGETRequest(Data())),
      "\(transport) \(NSURLErrorDataLengthExceedsMaximum)"
    ),
    (.parameterEncodingFailed(reason: .missingURL), badURL),
    (.parameterEncodingFailed(reason: .jsonEncodingFailed(error: own)), "own 1"),
    (.parameterEncodingFailed(reason: .customEncodingFailed(error: own)), "own 1"),
    (.parameterEncoderFailed(reason: .missingRequiredComponent(.url)), badURL),
    (.parameterEncoderFailed(reason: .encoderFailed(error: own)), "own 1"),
    (.multipartEncodingFailed(reason: .inputStreamReadFailed(error: own)), "\(kinds) -6000"),
    (.multipartEncodingFailed(reason: .outputStreamWriteFailed(error: own)), "\(kinds) -6001"),
    (.multipartEncodingFailed(reason: .bodyPartInputStreamCreationFailed(for: file)), cannotOpen),
    (.multipartEncodingFailed(reason: .outputStreamCreationFailed(for: file)), cannotOpen),
    (.multipartEncodingFailed(reason: .bodyPartURLInvalid(url: file)), badURL),
    (.multipartEncodingFailed(reason: .bodyPartFilenameInvalid(in: file)), badURL),
    (.multipartEncodingFailed(reason: .bodyPartFileNotReachable(at: file)), badURL),
    (.multipartEncodingFailed(reason: .bodyPartFileNotReachableWithError(atURL: file, error: own)), badURL),
    (.multipartEncodingFailed(reason: .bodyPartFileIsDirectory(at: file)), badURL),
    (.multipartEncodingFailed(reason: .bodyPartFileSizeNotAvailable(at: file)), badURL),
    (
      .multipartEncodingFailed(reason: .bodyPartFileSizeQueryFailedWithError(forURL: file, error: own)),
      badURL
    ),
    (.multipartEncodingFailed(reason: .outputStreamFileAlreadyExists(at: file)), badURL),
    (.multipartEncodingFailed(reason: .outputStreamURLInvalid(url: file)), badURL),
    (
      .responseValidationFailed(
        reason: .unacceptableContentType(acceptableContentTypes: [], responseContentType: "a/b")),
      "\(kinds) -6002"
    ),
    (
      .responseValidationFailed(reason: .missingContentType(acceptableContentTypes: [])), "\(kinds) -6002"
    ),
    (.responseValidationFailed(reason: .unacceptableStatusCode(code: 404)), "\(kinds) -6003"),
    (.responseValidationFailed(reason: .customValidationFailed(error: own)), "own 1"),
    (.responseValidationFailed(reason: .dataFileNil), "\(kinds) -6000"),
    (.responseValidationFailed(reason: .dataFileReadFailed(at: file)), "\(kinds) -6000"),
    (.responseSerializationFailed(reason: .inputDataNilOrZeroLength), "\(kinds) -6004"),
    (.responseSerializationFailed(reason: .inputFileNil), "\(kinds) -6004"),
    (.responseSerializationFailed(reason: .inputFileReadFailed(at: file)), "\(kinds) -6004"),
    (.responseSerializationFailed(reason: .invalidEmptyResponse(type: "A")), "\(kinds) -6004"),
    (.responseSerializationFailed(reason: .stringSerializationFailed(encoding: .utf8)), "\(kinds) -6005"),
    (.responseSerializationFailed(reason: .jsonSerializationFailed(error: own)), "\(kinds) -6006"),
    (.responseSerializationFailed(reason: .decodingFailed(error: own)), "own 1"),
    (.responseSerializationFailed(reason: .customSerializationFailed(error: own)), "own 1"),
  ]

  @Test("Every case has its error", arguments: 0..<table.count) func errorCases(row: Int) {
    let (error, expected) = Self.table[row]
    let mapped = generationThreeError(error)
    #expect("\(mapped.domain) \(mapped.code)" == expected, "\(error)")
    #expect(!mapped.localizedDescription.isEmpty)
  }

  @Test("Other errors are not changed") func otherErrors() {
    #expect(generationThreeError(Self.own) === Self.own)
    #expect(generationThreeError(URLError(.badServerResponse)).code == NSURLErrorBadServerResponse)
  }

  @Test("The reason of a refused server is the underlying error") func refusedServer() {
    let mapped = generationThreeError(
      AFError.serverTrustEvaluationFailed(reason: .customEvaluationFailed(error: Self.own)))
    #expect(mapped.userInfo[NSUnderlyingErrorKey] as? NSError === Self.own)
  }

  @Test("Errors are created from codes") func codes() {
    typealias Error = AlamofireV3::Alamofire.Error
    let error = Error.errorWithCode(.JSONSerializationFailed, failureReason: "why")
    #expect(error.domain == "com.alamofire.error")
    #expect(error.code == -6006)
    #expect(error.localizedFailureReason == "why")
    #expect(Error.errorWithCode(7, failureReason: "why").code == 7)
    #expect(Error.error(domain: "d", code: .InputStreamReadFailed, failureReason: "").domain == "d")
    #expect(Error.UserInfoKeys.StatusCode == "StatusCode")
    #expect(Error.UserInfoKeys.ContentType == "ContentType")
  }
}
