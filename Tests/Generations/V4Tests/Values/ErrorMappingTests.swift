import Alamofire
import Foundation
import FoundationNetworking
import Testing

@testable import AlamofireV4

private typealias Current = Alamofire::AFError

@Suite("Mapping of the core's errors") struct ErrorMappingTests {
  private struct Mishap: Error, Equatable { var number = 1 }

  private let file = URL(fileURLWithPath: "/tmp/file")

  @Test("Other errors are not changed") func otherErrors() {
    #expect(legacy(Mishap(number: 7)) as? Mishap == Mishap(number: 7))
    #expect((legacy(URLError(.timedOut)) as? URLError)?.code == .timedOut)
    let own = legacy(
      AlamofireV4::AFError.responseValidationFailed(reason: .unacceptableStatusCode(code: 418)))
    #expect((own as? AlamofireV4::AFError)?.responseCode == 418)
  }

  @Test("Errors of the user's code are unwrapped") func userErrors() {
    let wrapped: [Current] = [
      .createURLRequestFailed(error: Mishap()), .createUploadableFailed(error: Mishap()),
      .requestAdaptationFailed(error: Mishap()),
      .requestRetryFailed(retryError: Mishap(number: 2), originalError: Mishap()),
      .parameterEncodingFailed(reason: .customEncodingFailed(error: Mishap())),
      .parameterEncoderFailed(reason: .encoderFailed(error: Mishap())),
      .responseValidationFailed(reason: .customValidationFailed(error: Mishap())),
      .responseSerializationFailed(reason: .customSerializationFailed(error: Mishap())),
      .responseSerializationFailed(reason: .decodingFailed(error: Mishap())),
      .downloadedFileMoveFailed(error: Mishap(), source: file, destination: file),
      .sessionTaskFailed(error: Mishap()),
    ]
    for error in wrapped { #expect(legacy(error) as? Mishap == Mishap(), "\(error)") }
  }

  @Test("Transport failures are plain URLErrors") func transportFailures() {
    for code in [URLError.Code.timedOut, .cannotFindHost, .networkConnectionLost, .cancelled] {
      #expect((legacy(Current.sessionTaskFailed(error: URLError(code))) as? URLError)?.code == code)
    }
  }

  @Test("Cancellations, ended sessions and refused servers are cancelled URLErrors") func cancellations() {
    let errors: [Current] = [
      .explicitlyCancelled, .sessionDeinitialized, .sessionInvalidated(error: nil),
      .sessionInvalidated(error: Mishap()),
      .serverTrustEvaluationFailed(reason: .noRequiredEvaluator(host: "a.test")),
      .serverTrustEvaluationFailed(reason: .customEvaluationFailed(error: Mishap())),
    ]
    for error in errors { #expect((legacy(error) as? URLError)?.code == .cancelled, "\(error)") }
  }

  @Test("The original error of a refused retry is mapped") func originalError() {
    let error = Current.requestRetryFailed(
      retryError: Mishap(),
      originalError: Current.responseValidationFailed(reason: .unacceptableStatusCode(code: 401)))
    #expect((legacy(error) as? AlamofireV4::AFError)?.responseCode == 401)
    let nested = Current.requestRetryFailed(
      retryError: Mishap(),
      originalError: Current.requestAdaptationFailed(
        error: Current.sessionTaskFailed(error: Mishap(number: 9))))
    #expect(legacy(nested) as? Mishap == Mishap(number: 9))
  }

  @Test("An invalid URL is part of the error") func invalidURL() {
    let text = legacy(Current.invalidURL(url: "http://[")) as? AlamofireV4::AFError
    #expect(text?.urlConvertible as? String == "http://[")
    struct Stranger: Alamofire::URLConvertible, CustomStringConvertible {
      let description = "stranger"
      func asURL() throws -> URL { throw Mishap() }
    }
    let other = legacy(Current.invalidURL(url: Stranger())) as? AlamofireV4::AFError
    #expect(other?.urlConvertible as? String == "stranger")
  }

  @Test("A body in a GET has the code of Apple's systems") func bodyOfGET() {
    let error = legacy(Current.urlRequestValidationFailed(reason: .bodyDataInGETRequest(Data([1]))))
    #expect((error as? URLError)?.code == .dataLengthExceedsMaximum)
  }

  /// The reasons of the library's own, with the text of the mapped reason.
  private var ownReasons: [(Current, String)] {
    [
      (.multipartEncodingFailed(reason: .bodyPartFileIsDirectory(at: file)), "bodyPartFileIsDirectory(at: "),
      (
        .multipartEncodingFailed(reason: .outputStreamWriteFailed(error: Mishap())),
        "outputStreamWriteFailed(error: "
      ),
      (.parameterEncodingFailed(reason: .missingURL), "parameterEncodingFailed(reason: "),
      (.parameterEncodingFailed(reason: .jsonEncodingFailed(error: Mishap())), "jsonEncodingFailed(error: "),
      (.responseValidationFailed(reason: .dataFileNil), "dataFileNil"),
      (.responseValidationFailed(reason: .dataFileReadFailed(at: file)), "dataFileReadFailed(at: file"),
      (
        .responseValidationFailed(reason: .missingContentType(acceptableContentTypes: ["a/b"])),
        "missingContentType(acceptableContentTypes: [\"a/b\"])"
      ),
      (
        .responseValidationFailed(
          reason: .unacceptableContentType(acceptableContentTypes: ["a/b"], responseContentType: "c/d")),
        "unacceptableContentType(acceptableContentTypes: [\"a/b\"], responseContentType: \"c/d\")"
      ),
      (
        .responseValidationFailed(reason: .unacceptableStatusCode(code: 404)),
        "unacceptableStatusCode(code: 404)"
      ),
      (.responseSerializationFailed(reason: .inputDataNilOrZeroLength), "inputDataNilOrZeroLength"),
      (.responseSerializationFailed(reason: .inputFileNil), "inputFileNil"),
      (.responseSerializationFailed(reason: .inputFileReadFailed(at: file)), "inputFileReadFailed(at: file"),
      (
        .responseSerializationFailed(reason: .stringSerializationFailed(encoding: .utf8)),
        "stringSerializationFailed("
      ),
      (
        .responseSerializationFailed(reason: .jsonSerializationFailed(error: Mishap())),
        "jsonSerializationFailed("
      ),
    ]
  }

  @Test("Reasons of the library are preserved") func ownReasons2() {
    for (current, text) in ownReasons {
      let mapped = legacy(current)
      #expect(mapped is AlamofireV4::AFError, "\(current)")
      #expect(
        current.underlyingError as? Mishap == (mapped as? AlamofireV4::AFError)?.underlyingError as? Mishap)
      #expect("\(mapped)".contains(text), "\(current)")
    }
  }

  @Test("A reason without a counterpart is mapped to the nearest one") func nearestReasons() {
    let component = legacy(Current.parameterEncoderFailed(reason: .missingRequiredComponent(.url)))
    #expect("\(component)".contains("missingURL") && component is AlamofireV4::AFError)
    let empty = legacy(Current.responseSerializationFailed(reason: .invalidEmptyResponse(type: "X")))
    #expect("\(empty)".contains("inputDataNilOrZeroLength") && empty is AlamofireV4::AFError)
  }
}
