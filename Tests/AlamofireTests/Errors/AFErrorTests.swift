import Alamofire
import Testing

struct AFErrorTests {
  struct Inner: LocalizedError, Equatable {
    var errorDescription: String? { "inner message" }
  }

  static let file = URL(fileURLWithPath: "/folder/file")
  static let other = URL(fileURLWithPath: "/elsewhere")

  static let trust = ServerTrust(certificates: [], host: "example.com")
  static let output = AFError.ServerTrustFailureReason.Output("example.com", trust, -50, .otherError)

  /// One error of each kind with an underlying error.
  static let wrapping: [AFError] = [
    .createUploadableFailed(error: Inner()),
    .createURLRequestFailed(error: Inner()),
    .downloadedFileMoveFailed(error: Inner(), source: file, destination: other),
    .multipartEncodingFailed(reason: .bodyPartFileNotReachableWithError(atURL: file, error: Inner())),
    .multipartEncodingFailed(reason: .bodyPartFileSizeQueryFailedWithError(forURL: file, error: Inner())),
    .multipartEncodingFailed(reason: .outputStreamWriteFailed(error: Inner())),
    .multipartEncodingFailed(reason: .inputStreamReadFailed(error: Inner())),
    .parameterEncodingFailed(reason: .jsonEncodingFailed(error: Inner())),
    .parameterEncodingFailed(reason: .customEncodingFailed(error: Inner())),
    .parameterEncoderFailed(reason: .encoderFailed(error: Inner())),
    .requestAdaptationFailed(error: Inner()),
    .requestRetryFailed(retryError: Inner(), originalError: URLError(.timedOut)),
    .responseValidationFailed(reason: .customValidationFailed(error: Inner())),
    .responseSerializationFailed(reason: .jsonSerializationFailed(error: Inner())),
    .responseSerializationFailed(reason: .decodingFailed(error: Inner())),
    .responseSerializationFailed(reason: .customSerializationFailed(error: Inner())),
    .serverTrustEvaluationFailed(reason: .trustEvaluationFailed(error: Inner())),
    .serverTrustEvaluationFailed(reason: .customEvaluationFailed(error: Inner())),
    .sessionInvalidated(error: Inner()),
    .sessionTaskFailed(error: Inner()),
  ]

  /// One error of each kind without an underlying error.
  static let plain: [AFError] = [
    .explicitlyCancelled,
    .invalidURL(url: "::"),
    .multipartEncodingFailed(reason: .bodyPartURLInvalid(url: file)),
    .multipartEncodingFailed(reason: .bodyPartFilenameInvalid(in: file)),
    .multipartEncodingFailed(reason: .bodyPartFileNotReachable(at: file)),
    .multipartEncodingFailed(reason: .bodyPartFileIsDirectory(at: file)),
    .multipartEncodingFailed(reason: .bodyPartFileSizeNotAvailable(at: file)),
    .multipartEncodingFailed(reason: .bodyPartInputStreamCreationFailed(for: file)),
    .multipartEncodingFailed(reason: .outputStreamCreationFailed(for: file)),
    .multipartEncodingFailed(reason: .outputStreamFileAlreadyExists(at: file)),
    .multipartEncodingFailed(reason: .outputStreamURLInvalid(url: file)),
    .parameterEncodingFailed(reason: .missingURL),
    .parameterEncoderFailed(reason: .missingRequiredComponent(.url)),
    .parameterEncoderFailed(reason: .missingRequiredComponent(.httpMethod(rawValue: "nil"))),
    .responseValidationFailed(reason: .dataFileNil),
    .responseValidationFailed(reason: .dataFileReadFailed(at: file)),
    .responseValidationFailed(reason: .missingContentType(acceptableContentTypes: ["a/b"])),
    .responseValidationFailed(
      reason: .unacceptableContentType(acceptableContentTypes: ["a/b"], responseContentType: "c/d")),
    .responseValidationFailed(reason: .unacceptableStatusCode(code: 404)),
    .responseSerializationFailed(reason: .inputDataNilOrZeroLength),
    .responseSerializationFailed(reason: .inputFileNil),
    .responseSerializationFailed(reason: .inputFileReadFailed(at: file)),
    .responseSerializationFailed(reason: .stringSerializationFailed(encoding: .utf16)),
    .responseSerializationFailed(reason: .invalidEmptyResponse(type: "Person")),
    .serverTrustEvaluationFailed(reason: .noRequiredEvaluator(host: "example.com")),
    .serverTrustEvaluationFailed(reason: .noCertificatesFound),
    .serverTrustEvaluationFailed(reason: .noPublicKeysFound),
    .serverTrustEvaluationFailed(reason: .revocationPolicyCreationFailed),
    .serverTrustEvaluationFailed(reason: .trustEvaluationFailed(error: nil)),
    .serverTrustEvaluationFailed(
      reason: .policyApplicationFailed(trust: trust, policy: .default, status: -50)),
    .serverTrustEvaluationFailed(reason: .settingAnchorCertificatesFailed(status: -50, certificates: [])),
    .serverTrustEvaluationFailed(reason: .defaultEvaluationFailed(output: output)),
    .serverTrustEvaluationFailed(reason: .hostValidationFailed(output: output)),
    .serverTrustEvaluationFailed(reason: .revocationCheckFailed(output: output, options: .any)),
    .serverTrustEvaluationFailed(
      reason: .certificatePinningFailed(
        host: "example.com", trust: trust, pinnedCertificates: [], serverCertificates: [])),
    .serverTrustEvaluationFailed(
      reason: .publicKeyPinningFailed(host: "example.com", trust: trust, pinnedKeys: [], serverKeys: [])),
    .sessionDeinitialized,
    .sessionInvalidated(error: nil),
    .urlRequestValidationFailed(reason: .bodyDataInGETRequest(Data("secret".utf8))),
  ]

  @Test("An error with an underlying error returns it and its message", arguments: wrapping)
  func wrappedErrors(error: AFError) {
    #expect(error.underlyingError as? Inner == Inner())
    #expect(error.localizedDescription.contains("inner message"))
  }

  @Test("An error without an underlying error describes the failure in sentences", arguments: plain)
  func plainErrors(error: AFError) {
    #expect(error.underlyingError == nil)
    let message = error.localizedDescription
    #expect(message.count > 20)
    #expect(message.hasSuffix(".") || message.hasSuffix("?"))
    #expect(!message.contains("secret"))
  }

  @Test("The same failure of a retrier is described once")
  func retriersAskedTwice() {
    let refusal = AFError.responseValidationFailed(reason: .unacceptableStatusCode(code: 401))
    let first = AFError.requestRetryFailed(retryError: Inner(), originalError: refusal)
    let second = AFError.requestRetryFailed(retryError: Inner(), originalError: first)
    #expect(second.localizedDescription == first.localizedDescription)
    let other = AFError.requestRetryFailed(retryError: URLError(.timedOut), originalError: first)
    #expect(other.localizedDescription.contains(first.localizedDescription))
  }

  @Test("A printed error names its case and its reason, and has its message", arguments: wrapping + plain)
  func printing(error: AFError) {
    #expect("\(error)".contains(": \(error.localizedDescription)"))
    #expect(!"\(error)".contains("Alamofire."))
  }

  @Test("The case of a printed error is written as in code")
  func printedCases() {
    let texts: [(AFError, String)] = [
      (.explicitlyCancelled, "explicitlyCancelled"), (.sessionDeinitialized, "sessionDeinitialized"),
      (.sessionInvalidated(error: nil), "sessionInvalidated(error: nil)"),
      (.invalidURL(url: "::"), #"invalidURL(url: "::")"#),
      (
        .responseValidationFailed(reason: .unacceptableStatusCode(code: 200)),
        "responseValidationFailed(reason: unacceptableStatusCode(code: 200))"
      ),
      (
        .responseSerializationFailed(reason: .inputDataNilOrZeroLength),
        "responseSerializationFailed(reason: inputDataNilOrZeroLength)"
      ),
      (
        .sessionTaskFailed(error: URLError(.timedOut)), "sessionTaskFailed(error: URLError.timedOut)"
      ),
      (
        .parameterEncoderFailed(reason: .missingRequiredComponent(.httpMethod(rawValue: "nil"))),
        #"parameterEncoderFailed(reason: missingRequiredComponent(httpMethod(rawValue: "nil")))"#
      ),
      (
        .urlRequestValidationFailed(reason: .bodyDataInGETRequest(Data([1, 2]))),
        "urlRequestValidationFailed(reason: bodyDataInGETRequest(2 bytes))"
      ),
    ]
    for (error, text) in texts {
      #expect("\(error)" == "\(text): \(error.localizedDescription)")
      #expect(String(reflecting: error) == "AFError.\(error)")
    }
  }

  @Test("All errors have different messages")
  func messagesDiffer() {
    let messages = (Self.wrapping + Self.plain).map(\.localizedDescription)
    #expect(Set(messages).count == messages.count)
  }

  @Test("Exactly one boolean holds for a case, and none for request validation")
  func booleans() {
    for error in Self.wrapping + Self.plain {
      let claims = [
        error.isSessionDeinitializedError, error.isSessionInvalidatedError, error.isExplicitlyCancelledError,
        error.isInvalidURLError, error.isParameterEncodingError, error.isParameterEncoderError,
        error.isMultipartEncodingError, error.isRequestAdaptationError, error.isResponseValidationError,
        error.isResponseSerializationError, error.isServerTrustEvaluationError, error.isRequestRetryError,
        error.isCreateUploadableError, error.isCreateURLRequestError, error.isDownloadedFileMoveError,
        error.isSessionTaskError,
      ]
      let expected = if case .urlRequestValidationFailed = error { 0 } else { 1 }
      #expect(claims.count(where: { $0 }) == expected, "\(error)")
    }
  }

  @Test("The properties return the associated values")
  func payloads() {
    let move = AFError.downloadedFileMoveFailed(error: Inner(), source: Self.file, destination: Self.other)
    #expect(move.sourceURL == Self.file)
    #expect(move.destinationURL == Self.other)
    #expect(move.url == Self.other)

    let type = AFError.responseValidationFailed(
      reason: .unacceptableContentType(acceptableContentTypes: ["a/b"], responseContentType: "c/d"))
    #expect(type.acceptableContentTypes == ["a/b"])
    #expect(type.responseContentType == "c/d")
    #expect(type.responseCode == nil)

    let missing = AFError.responseValidationFailed(
      reason: .missingContentType(acceptableContentTypes: ["a/b"]))
    #expect(missing.acceptableContentTypes == ["a/b"])
    #expect(missing.responseContentType == nil)

    #expect(AFError.responseValidationFailed(reason: .unacceptableStatusCode(code: 404)).responseCode == 404)
    #expect(
      AFError.responseSerializationFailed(reason: .stringSerializationFailed(encoding: .utf16))
        .failedStringEncoding == .utf16)
    #expect(AFError.invalidURL(url: "::").urlConvertible as? String == "::")
    #expect(AFError.explicitlyCancelled.urlConvertible == nil)
  }

  @Test("The URL of a multipart error is its file's")
  func multipartURL() {
    let multipart = (Self.wrapping + Self.plain).filter(\.isMultipartEncodingError)
    #expect(multipart.count == 13)
    #expect(multipart.count(where: { $0.url == Self.file }) == 11)
  }

  /// One error of each kind that has a URL, and one of each that has none.
  static let urls: [(error: AFError, url: URL?)] = {
    let page = URL(string: "https://example.com/a")
    let other = URL(string: "https://example.com/b")
    let lost = URLError(.networkConnectionLost, userInfo: [NSURLErrorFailingURLErrorKey: page as Any])
    let late = URLError(.timedOut, userInfo: [NSURLErrorFailingURLErrorKey: other as Any])
    let missing = CocoaError(.fileReadNoSuchFile, userInfo: [NSURLErrorKey: file])
    let full = CocoaError(.fileWriteOutOfSpace, userInfo: [NSFilePathErrorKey: file.path])
    let posix = NSError(domain: NSPOSIXErrorDomain, code: 28, userInfo: [NSFilePathErrorKey: file.path])
    let invalid = AFError.multipartEncodingFailed(reason: .bodyPartURLInvalid(url: file))
    return [
      (.sessionTaskFailed(error: lost), page),
      (.sessionTaskFailed(error: Inner()), nil),
      (.sessionInvalidated(error: lost), page),
      (.sessionInvalidated(error: nil), nil),
      (.createUploadableFailed(error: missing), file),
      (.createUploadableFailed(error: invalid), file),
      (.createURLRequestFailed(error: lost), page),
      (.requestAdaptationFailed(error: AFError.sessionTaskFailed(error: lost)), page),
      (.requestRetryFailed(retryError: late, originalError: lost), other),
      (.requestRetryFailed(retryError: Inner(), originalError: AFError.sessionTaskFailed(error: lost)), page),
      (.requestRetryFailed(retryError: Inner(), originalError: Inner()), nil),
      (.multipartEncodingFailed(reason: .outputStreamWriteFailed(error: posix)), file),
      (.multipartEncodingFailed(reason: .inputStreamReadFailed(error: Inner())), nil),
      (.parameterEncodingFailed(reason: .customEncodingFailed(error: full)), file),
      (.parameterEncodingFailed(reason: .missingURL), nil),
      (.parameterEncoderFailed(reason: .encoderFailed(error: full)), file),
      (.responseValidationFailed(reason: .dataFileReadFailed(at: file)), file),
      (.responseValidationFailed(reason: .customValidationFailed(error: lost)), page),
      (.responseValidationFailed(reason: .unacceptableStatusCode(code: 404)), nil),
      (.responseSerializationFailed(reason: .inputFileReadFailed(at: file)), file),
      (.responseSerializationFailed(reason: .customSerializationFailed(error: missing)), file),
      (.responseSerializationFailed(reason: .inputFileNil), nil),
      (.serverTrustEvaluationFailed(reason: .customEvaluationFailed(error: lost)), page),
      (.serverTrustEvaluationFailed(reason: .noCertificatesFound), nil),
      (.invalidURL(url: file), file),
      (.invalidURL(url: "::"), nil),
      (.explicitlyCancelled, nil),
      (.sessionDeinitialized, nil),
      (.urlRequestValidationFailed(reason: .bodyDataInGETRequest(Data())), nil),
    ]
  }()

  @Test("An error has the URL that it is about, or that a wrapped error is about") func urls() {
    for (error, url) in Self.urls { #expect(error.url == url, "\(error)") }
  }

  @Test("Resume data is found in the error of the transfer")
  func resumeData() {
    let data = Data([1, 2, 3])
    let lost = URLError(.networkConnectionLost, userInfo: [NSURLSessionDownloadTaskResumeData: data])
    #expect(lost.downloadTaskResumeData == data)
    #expect(AFError.sessionTaskFailed(error: lost).downloadResumeData == data)
    #expect(AFError.sessionTaskFailed(error: URLError(.timedOut)).downloadResumeData == nil)
    #expect(AFError.explicitlyCancelled.downloadResumeData == nil)
  }

  @Test("Any error can be cast to AFError")
  func asAFError() {
    let ours: any Error = AFError.explicitlyCancelled
    #expect(ours.asAFError?.isExplicitlyCancelledError == true)
    #expect(Inner().asAFError == nil)
    #expect(ours.asAFError(orFailWith: "not ours").isExplicitlyCancelledError)
    #expect(ours.asAFError(or: .sessionDeinitialized).isExplicitlyCancelledError)
    #expect(Inner().asAFError(or: .sessionDeinitialized).isSessionDeinitializedError)
  }

  @Test("The message of a short stream has both lengths")
  func unexpectedLength() {
    let error = AFError.UnexpectedInputStreamLength(bytesExpected: 10, bytesRead: 7)
    #expect(error.localizedDescription == "The stream was announced with 10 bytes but held 7.")
  }

  /// Texts that are not URLs, and their visible parts.
  @Test(
    "Neither message nor description of an invalid URL shows a password",
    arguments: [
      ("https://ann:s3cret@[h]/", "https://redacted@[h]/"),
      ("https://ann:s3/cr#et?@h.example/", "https://redacted@h.example/"),
      ("https://ann:s3 cret@h.example/", "https://redacted@h.example/"),
      ("https://ann:s3@cret@h.example/", "https://redacted@h.example/"),
      ("ann:s3cret@h.example:x", "redacted@h.example:x"),
      ("https://h.example:x/", "https://h.example:x/"),
      ("::", "::"),
    ])
  func invalidURLShowsNoPassword(text: String, shown: String) {
    let error = AFError.invalidURL(url: text)
    #expect(error.urlConvertible as? String == text)
    let printed = "invalidURL(url: \(shown.debugDescription)): \(error.localizedDescription)"
    #expect("\(error)" == printed)
    #expect(String(reflecting: error) == "AFError.\(printed)")
    #expect(error.localizedDescription.contains(": \(shown). "))
    let result = Result<Int, AFError>.failure(error)
    let inside = AFError.createURLRequestFailed(error: AFError.requestAdaptationFailed(error: error))
    for text in [
      "\(result)", "\([error])", "\(inside)", "\(inside as any Error)", inside.localizedDescription,
    ] {
      #expect(!text.contains("s3"), "\(text)")
    }
  }

  @Test("URLs in values of other errors are shown without their passwords")
  func otherErrorsShowNoPassword() throws {
    let url = try #require(URL(string: "https://ann:s3cret@h.example/a"))
    let reason = AFError.MultipartEncodingFailureReason.bodyPartURLInvalid(url: url)
    let error = AFError.multipartEncodingFailed(reason: reason)
    for text in ["\(reason)", String(reflecting: reason), "\(error)", error.localizedDescription] {
      #expect(text.contains("redacted@h.example/a") && !text.contains("s3cret"), "\(text)")
    }
    let failed = AFError.sessionTaskFailed(error: Failing(url: url))
    #expect("\(failed)".contains("sessionTaskFailed(error: ") && !"\(failed)".contains("s3cret"))
  }

  private struct Failing: Error { let url: URL }
}
