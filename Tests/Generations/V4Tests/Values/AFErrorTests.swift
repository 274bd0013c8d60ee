import AlamofireV4
import Testing

@Suite("AFError") struct AFErrorTests {
  private struct Cause: LocalizedError { var errorDescription: String? { "the cause" } }

  private let file = URL(fileURLWithPath: "/tmp/file")

  private func kinds(_ error: AFError) -> [Bool] {
    [
      error.isInvalidURLError, error.isParameterEncodingError, error.isMultipartEncodingError,
      error.isResponseValidationError, error.isResponseSerializationError,
    ]
  }

  @Test("Each case has its boolean") func booleans() {
    let errors: [AFError] = [
      .invalidURL(url: "x"), .parameterEncodingFailed(reason: .missingURL),
      .multipartEncodingFailed(reason: .bodyPartURLInvalid(url: file)),
      .responseValidationFailed(reason: .dataFileNil), .responseSerializationFailed(reason: .inputDataNil),
    ]
    for (index, error) in errors.enumerated() {
      #expect(kinds(error) == errors.indices.map { $0 == index }, "\(error)")
    }
  }

  @Test("Properties of a case are returned and others are nil") func properties() {
    let url = AFError.invalidURL(url: "x")
    #expect(url.urlConvertible as? String == "x" && url.url == nil && url.underlyingError == nil)
    let form = AFError.multipartEncodingFailed(
      reason: .bodyPartFileNotReachableWithError(atURL: file, error: Cause()))
    #expect(form.url == file && form.underlyingError is Cause && form.urlConvertible == nil)
    let type = AFError.responseValidationFailed(
      reason: .unacceptableContentType(acceptableContentTypes: ["a/b"], responseContentType: "c/d"))
    #expect(type.acceptableContentTypes == ["a/b"] && type.responseContentType == "c/d")
    #expect(type.responseCode == nil && type.underlyingError == nil)
    let missing = AFError.responseValidationFailed(
      reason: .missingContentType(acceptableContentTypes: ["a/b"]))
    #expect(missing.acceptableContentTypes == ["a/b"] && missing.responseContentType == nil)
    let status = AFError.responseValidationFailed(reason: .unacceptableStatusCode(code: 404))
    #expect(status.responseCode == 404 && status.acceptableContentTypes == nil)
    let text = AFError.responseSerializationFailed(reason: .stringSerializationFailed(encoding: .utf16))
    #expect(text.failedStringEncoding == .utf16 && text.underlyingError == nil)
  }

  @Test("Underlying errors are returned") func underlyingErrors() {
    let wrapping: [AFError] = [
      .parameterEncodingFailed(reason: .jsonEncodingFailed(error: Cause())),
      .parameterEncodingFailed(reason: .propertyListEncodingFailed(error: Cause())),
      .multipartEncodingFailed(reason: .inputStreamReadFailed(error: Cause())),
      .responseSerializationFailed(reason: .jsonSerializationFailed(error: Cause())),
      .responseSerializationFailed(reason: .propertyListSerializationFailed(error: Cause())),
    ]
    for error in wrapping {
      #expect(error.underlyingError is Cause)
      #expect(error.localizedDescription.contains("the cause"), "\(error)")
    }
  }

  @Test("Messages contain their associated values") func messages() {
    let messages: [(AFError, String)] = [
      (.invalidURL(url: "a b"), "a b"), (.parameterEncodingFailed(reason: .missingURL), "URL"),
      (.multipartEncodingFailed(reason: .bodyPartFileIsDirectory(at: file)), "/tmp/file"),
      (.responseValidationFailed(reason: .dataFileNil), "file"),
      (.responseValidationFailed(reason: .dataFileReadFailed(at: file)), "/tmp/file"),
      (.responseValidationFailed(reason: .missingContentType(acceptableContentTypes: ["a/b"])), "a/b"),
      (
        .responseValidationFailed(
          reason: .unacceptableContentType(acceptableContentTypes: ["a/b"], responseContentType: "c/d")),
        "c/d"
      ),
      (.responseValidationFailed(reason: .unacceptableStatusCode(code: 404)), "404"),
      (.responseSerializationFailed(reason: .inputDataNil), "no body"),
      (.responseSerializationFailed(reason: .inputDataNilOrZeroLength), "empty"),
      (.responseSerializationFailed(reason: .inputFileNil), "file"),
      (.responseSerializationFailed(reason: .inputFileReadFailed(at: file)), "/tmp/file"),
      (.responseSerializationFailed(reason: .stringSerializationFailed(encoding: .utf8)), "UTF-8"),
    ]
    for (error, word) in messages { #expect(error.localizedDescription.contains(word), "\(error)") }
    let secret = AFError.invalidURL(url: "http://ada:secret@a b/").localizedDescription
    #expect(!secret.contains("secret"))
  }
}
