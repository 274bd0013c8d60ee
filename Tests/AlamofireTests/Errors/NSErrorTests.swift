import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

/// Casts of errors to `NSError`, as in code for Apple's systems.
@Suite("Errors as NSError") struct NSErrorTests {
  private static let failures: [(AFError, Int)] = [
    (.responseSerializationFailed(reason: .inputFileNil), 10),
    (.responseValidationFailed(reason: .unacceptableStatusCode(code: 404)), 9),
    (.sessionTaskFailed(error: URLError(.timedOut)), 13), (.explicitlyCancelled, 15),
  ]

  @Test("An AFError is cast to NSError with the code that it has on Apple's systems", arguments: failures)
  func casts(error: AFError, code: Int) throws {
    let existential: any Error = error
    let cast = try #require(Self.cast(existential))
    #expect(cast.domain == "Alamofire.AFError")
    #expect(cast.code == code)
    #expect(cast.localizedDescription == error.localizedDescription)
    #expect(Self.cast(error)?.code == code)
    let bridged = existential as NSError
    #expect(bridged.domain == cast.domain && bridged.code == cast.code)
    #expect(bridged.localizedDescription == cast.localizedDescription)
    #expect(Self.cast(cast) === cast)
  }

  @Test("An NSError created from an AFError is cast back to it")
  func castsBack() throws {
    let cast = try #require(Self.cast(AFError.invalidURL(url: "a b")))
    #expect((cast as any Error).asAFError?.isInvalidURLError == true)
    #expect((cast as any Error) as? AuthenticationError == nil)
    for other in [
      NSError(domain: "Alamofire.AFError", code: 15), NSError(domain: NSURLErrorDomain, code: -1001),
    ] {
      #expect((other as any Error).asAFError == nil)
    }
  }

  @Test("A thrown AFError is caught as NSError")
  func caught() {
    do {
      throw AFError.explicitlyCancelled
    } catch let error as NSError {
      #expect(error.code == 15)
    } catch {
      Issue.record("\(error) is not an NSError")
    }
  }

  @Test("A URLError is cast to NSError with its code and user info, and back")
  func transportErrors() throws {
    let error: any Error = URLError(
      .notConnectedToInternet, userInfo: [NSLocalizedFailureReasonErrorKey: "reason"])
    let response = AFError.sessionTaskFailed(error: error)
    let cast = try #require(Self.cast(response.underlyingError as Any))
    #expect(cast.domain == NSURLErrorDomain)
    #expect(cast.code == NSURLErrorNotConnectedToInternet)
    #expect(cast.localizedFailureReason == "reason")
    #expect(((cast as any Error) as? URLError)?.code == .notConnectedToInternet)
    #expect((NSError(domain: "other", code: -1001) as any Error) as? URLError == nil)
  }

  @Test(
    "Other errors of the library are cast to NSError",
    arguments: [
      AuthenticationError.excessiveRefresh, JSONEncoding.Error.invalidJSONObject,
      URLEncodedFormEncoder.Error.invalidRootObject("x"),
      AFError.UnexpectedInputStreamLength(bytesExpected: 1, bytesRead: 2),
      SegmentedDownload.Failure.unsuitableRequest, ResumableUploadError.bodyIsStream,
      HostStorageError.otherFile,
    ] as [any Error])
  func others(error: any Error) throws {
    let cast = try #require(Self.cast(error))
    #expect(cast.domain == String(reflecting: type(of: error)))
    #expect(cast.localizedDescription == error.localizedDescription)
  }

  @Test("All public errors of the library can be cast to NSError")
  func types() {
    let types: [any Error.Type] = [
      AFError.self, AFError.UnexpectedInputStreamLength.self, AFError.MultipartFormFailure.self,
      AuthenticationError.self, Certificate.ReadingError.self, ClientIdentity.Failure.self,
      DecodableWebSocketMessageDecoder<Int>.Error.self, DeflateRequestCompressor.DuplicateHeaderError.self,
      HostStorageError.self, JSONEncoding.Error.self, PublicKeyPin.Invalid.self, ResponseRefusal.self,
      ResumableUploadError.self, SegmentedDownload.Failure.self, ServerTrust.Failure.self,
      URLEncodedFormEncoder.Error.self,
    ]
    for type in types { #expect(type is any NSErrorConvertible.Type, "\(type)") }
  }

  @Test("NSErrors of equal errors are archived and compared")
  func archives() throws {
    let cast = try #require(Self.cast(AFError.explicitlyCancelled))
    let data = try NSKeyedArchiver.archivedData(withRootObject: cast, requiringSecureCoding: false)
    let read = try NSKeyedUnarchiver.unarchivedObject(ofClass: NSError.self, from: data)
    #expect(read?.code == cast.code && read?.domain == cast.domain)
    #expect(Self.cast(AFError.explicitlyCancelled) == cast)
  }

  /// Casts like `error as? NSError`, which the compiler reports as a cast that always succeeds.
  private static func cast(_ value: Any) -> NSError? { value as? NSError }
}
