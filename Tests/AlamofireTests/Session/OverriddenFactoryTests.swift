import Foundation
import FoundationNetworking
import Testing

@testable import Alamofire

/// A subclass of a session that overrides the methods that take a `URLRequestConvertible`.
@Suite("Overridden factories", .timeLimit(.minutes(1))) struct OverriddenFactoryTests {
  private struct Router: URLRequestConvertible {
    func asURLRequest() throws -> URLRequest { try URLRequest(url: url, method: .post) }
  }

  private struct Signed: URLRequestConvertible {
    let base: any URLRequestConvertible

    func asURLRequest() throws -> URLRequest {
      var request = try base.asURLRequest()
      request.setValue("signed", forHTTPHeaderField: "X-Signature")
      return request
    }
  }

  private final class Signing: Session, @unchecked Sendable {
    let calls = Recorder<String>()

    private func signed(_ convertible: any URLRequestConvertible, _ name: String) -> Signed {
      calls.add(name)
      return Signed(base: convertible)
    }

    override func request(
      _ convertible: any URLRequestConvertible, interceptor: (any RequestInterceptor)? = nil,
      shouldAutomaticallyResume: Bool? = nil
    ) -> DataRequest {
      super.request(
        signed(convertible, "request"), interceptor: interceptor,
        shouldAutomaticallyResume: shouldAutomaticallyResume)
    }

    override func download(
      _ convertible: any URLRequestConvertible, interceptor: (any RequestInterceptor)? = nil,
      shouldAutomaticallyResume: Bool? = nil, to destination: DownloadRequest.Destination? = nil
    ) -> DownloadRequest {
      super.download(
        signed(convertible, "download"), interceptor: interceptor,
        shouldAutomaticallyResume: shouldAutomaticallyResume, to: destination)
    }

    override func streamRequest(
      _ convertible: any URLRequestConvertible, automaticallyCancelOnStreamError: Bool = false,
      interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool? = nil
    ) -> DataStreamRequest {
      super.streamRequest(
        signed(convertible, "stream"), automaticallyCancelOnStreamError: automaticallyCancelOnStreamError,
        interceptor: interceptor, shouldAutomaticallyResume: shouldAutomaticallyResume)
    }

    override func webSocketRequest(
      performing convertible: any URLRequestConvertible,
      configuration: WebSocketRequest.Configuration = .default,
      interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool? = nil
    ) -> WebSocketRequest {
      super.webSocketRequest(
        performing: signed(convertible, "socket"), configuration: configuration, interceptor: interceptor,
        shouldAutomaticallyResume: shouldAutomaticallyResume)
    }

    override func upload(
      _ data: Data, with convertible: any URLRequestConvertible,
      interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool? = nil,
      fileManager: FileManager = .default
    ) -> UploadRequest {
      super.upload(
        data, with: signed(convertible, "data"), interceptor: interceptor,
        shouldAutomaticallyResume: shouldAutomaticallyResume, fileManager: fileManager)
    }

    override func upload(
      _ fileURL: URL, with convertible: any URLRequestConvertible,
      interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool? = nil,
      fileManager: FileManager = .default
    ) -> UploadRequest {
      super.upload(
        fileURL, with: signed(convertible, "file"), interceptor: interceptor,
        shouldAutomaticallyResume: shouldAutomaticallyResume, fileManager: fileManager)
    }

    override func upload(
      _ stream: InputStream, with convertible: any URLRequestConvertible,
      interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool? = nil,
      fileManager: FileManager = .default
    ) -> UploadRequest {
      super.upload(
        stream, with: signed(convertible, "input"), interceptor: interceptor,
        shouldAutomaticallyResume: shouldAutomaticallyResume, fileManager: fileManager)
    }

    override func upload(
      multipartFormData: MultipartFormData, with convertible: any URLRequestConvertible,
      usingThreshold encodingMemoryThreshold: UInt64 = MultipartFormData.encodingMemoryThreshold,
      interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool? = nil,
      fileManager: FileManager = .default
    ) -> UploadRequest {
      super.upload(
        multipartFormData: multipartFormData, with: signed(convertible, "form"),
        usingThreshold: encodingMemoryThreshold, interceptor: interceptor,
        shouldAutomaticallyResume: shouldAutomaticallyResume, fileManager: fileManager)
    }
  }

  struct Factory: Sendable, CustomTestStringConvertible {
    /// The name of the overridden method that it calls.
    let name: String
    let make: @Sendable (Session) -> Request
    var testDescription: String { name }

    init(_ name: String, _ make: @escaping @Sendable (Session) -> Request) {
      self.name = name
      self.make = make
    }
  }

  private static let url = "http://a.test/"
  private static let file = URL(fileURLWithPath: "/proc/self/comm")
  private static var input: InputStream { InputStream(data: Data("body".utf8)) }

  private static func fill(_ form: MultipartFormData) { form.append(Data("v".utf8), withName: "k") }

  private static var form: MultipartFormData {
    let form = MultipartFormData()
    fill(form)
    return form
  }

  /// The factories that take a URL, without code of the caller's.
  private static let plain = [
    Factory("request") { $0.request(url) },
    Factory("download") { $0.download(url) },
    Factory("stream") { $0.streamRequest(url) },
    Factory("socket") { $0.webSocketRequest(to: url) },
    Factory("data") { $0.upload(Data("body".utf8), to: url) },
    Factory("file") { $0.upload(file, to: url) },
    Factory("input") { $0.upload(input, to: url) },
    Factory("input") { $0.upload(input, to: url, shouldAutomaticallyResume: false) },
    Factory("form") { $0.upload(multipartFormData: fill, to: url) },
    Factory("form") { $0.upload(multipartFormData: fill, to: url, shouldAutomaticallyResume: false) },
    Factory("form") { $0.upload(multipartFormData: form, to: url) },
  ]

  /// The factories that encode parameters.
  private static let encoding = [
    Factory("request") { $0.request(url, parameters: ["a": 1]) },
    Factory("request") { $0.request(url, parameters: ["a": "1"], encoder: .urlEncodedForm) },
    Factory("download") { $0.download(url, parameters: ["a": 1]) },
    Factory("download") { $0.download(url, parameters: ["a": "1"], encoder: .urlEncodedForm) },
    Factory("stream") { $0.streamRequest(url, parameters: ["a": "1"]) },
    Factory("socket") { $0.webSocketRequest(to: url, parameters: ["a": "1"]) },
  ]

  private static let converting = [
    Factory("form") { session in
      session.upload(multipartFormData: fill, with: Router())
    },
    Factory("form") { session in
      session.upload(
        multipartFormData: fill, with: Router(),
        shouldAutomaticallyResume: false)
    },
  ]

  @Test(
    "A method that takes a URL calls the overridden method once", arguments: plain + encoding + converting)
  func overridden(by factory: Factory) async throws {
    let session = Signing(fake: FakeTransport(), startRequestsImmediately: false)
    let request = factory.make(session).resume()
    await request.finished()
    #expect(session.calls.values == [factory.name])
    #expect(request.request?.value(forHTTPHeaderField: "X-Signature") == "signed")
    if let file = (request as? DownloadRequest)?.fileURL { try FileManager.default.removeItem(at: file) }
  }

  @Test("Only the conversion of a plain URL runs no code of the caller's") func userCode() {
    let session = Session.retained(fake: FakeTransport(), startRequestsImmediately: false)
    for factory in Self.plain {
      #expect(!factory.make(session).core.convertsByUserCode, "\(factory.name)")
    }
    for factory in Self.encoding + Self.converting {
      #expect(factory.make(session).core.convertsByUserCode, "\(factory.name)")
    }
    for request in [
      session.request(Self.url, requestModifier: { _ in }),
      session.request(Router()),
      Signing(fake: FakeTransport()).request(Self.url),
    ] { #expect(request.core.convertsByUserCode) }
  }
}
