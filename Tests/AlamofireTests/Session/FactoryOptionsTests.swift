import Alamofire
import Foundation
import FoundationNetworking
import Testing

/// Each factory of a session passes on what it is called with.
@Suite("Options of the factories", .timeLimit(.minutes(1))) struct FactoryOptionsTests {
  /// The arguments of a factory.
  struct Given: Sendable {
    var interceptor: SpyInterceptor
    var starts: Bool?
    var fileManager = FileManager()
  }

  /// A factory, with the parts of `Given` that it takes.
  struct Factory: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// Whether it takes a method, fields and a modifier.
    var describesRequest = true
    var takesMethod = true
    var takesStart = true
    var takesFileManager = false
    let make: @Sendable (Session, Given) throws -> Request
  }

  private static let url = "http://a.test/factory"
  private static let headers: HTTPHeaders = ["X-Header": "given"]
  private static let parameters = ["key": "value"]
  private static let modify: Session.RequestModifier = {
    $0.setValue("modified", forHTTPHeaderField: "X-Modifier")
  }
  private static var convertible: any URLRequestConvertible {
    get throws { try URLRequest(url: url, method: .patch) }
  }

  private static let requests = [
    Factory(testDescription: "request with an encoding") { session, given in
      session.request(
        url, method: .patch, parameters: ["key": "value"], encoding: URLEncoding.queryString,
        headers: headers,
        interceptor: given.interceptor, shouldAutomaticallyResume: given.starts, requestModifier: modify)
    },
    Factory(testDescription: "request with an encoder") { session, given in
      session.request(
        url, method: .patch, parameters: parameters,
        encoder: URLEncodedFormParameterEncoder(destination: .queryString), headers: headers,
        interceptor: given.interceptor, shouldAutomaticallyResume: given.starts, requestModifier: modify)
    },
    Factory(testDescription: "request of a convertible", describesRequest: false) { session, given in
      session.request(
        try convertible, interceptor: given.interceptor, shouldAutomaticallyResume: given.starts)
    },
    Factory(testDescription: "download with an encoding") { session, given in
      session.download(
        url, method: .patch, parameters: ["key": "value"], encoding: URLEncoding.queryString,
        headers: headers,
        interceptor: given.interceptor, shouldAutomaticallyResume: given.starts, requestModifier: modify)
    },
    Factory(testDescription: "download with an encoder") { session, given in
      session.download(
        url, method: .patch, parameters: parameters,
        encoder: URLEncodedFormParameterEncoder(destination: .queryString), headers: headers,
        interceptor: given.interceptor, shouldAutomaticallyResume: given.starts, requestModifier: modify)
    },
    Factory(testDescription: "download of a convertible", describesRequest: false) { session, given in
      session.download(
        try convertible, interceptor: given.interceptor, shouldAutomaticallyResume: given.starts)
    },
    Factory(testDescription: "stream with an encoder") { session, given in
      session.streamRequest(
        url, method: .patch, parameters: parameters,
        encoder: URLEncodedFormParameterEncoder(destination: .queryString), headers: headers,
        interceptor: given.interceptor, shouldAutomaticallyResume: given.starts, requestModifier: modify)
    },
    Factory(testDescription: "stream") { session, given in
      session.streamRequest(
        url, method: .patch, headers: headers, interceptor: given.interceptor,
        shouldAutomaticallyResume: given.starts, requestModifier: modify)
    },
    Factory(testDescription: "stream of a convertible", describesRequest: false) { session, given in
      session.streamRequest(
        try convertible, interceptor: given.interceptor, shouldAutomaticallyResume: given.starts)
    },
    Factory(testDescription: "events") { session, given in
      session.eventSourceRequest(
        url, method: .patch, headers: headers, interceptor: given.interceptor,
        shouldAutomaticallyResume: given.starts, requestModifier: modify)
    },
    Factory(testDescription: "events of a convertible", describesRequest: false) { session, given in
      session.eventSourceRequest(
        try convertible, interceptor: given.interceptor, shouldAutomaticallyResume: given.starts)
    },
    Factory(testDescription: "WebSocket", takesMethod: false) { session, given in
      session.webSocketRequest(
        to: url, headers: headers, interceptor: given.interceptor, shouldAutomaticallyResume: given.starts,
        requestModifier: modify)
    },
    Factory(testDescription: "WebSocket with an encoder", takesMethod: false) { session, given in
      session.webSocketRequest(
        to: url, parameters: parameters,
        encoder: URLEncodedFormParameterEncoder(destination: .queryString), headers: headers,
        interceptor: given.interceptor, shouldAutomaticallyResume: given.starts, requestModifier: modify)
    },
    Factory(testDescription: "WebSocket of a convertible", describesRequest: false) { session, given in
      session.webSocketRequest(
        performing: try convertible, interceptor: given.interceptor, shouldAutomaticallyResume: given.starts)
    },
  ]

  private static let file = URL(fileURLWithPath: "/proc/self/comm")

  private static let uploads = [
    Factory(testDescription: "upload of data", takesFileManager: true) { session, given in
      session.upload(
        Data("body".utf8), to: url, method: .patch, headers: headers, interceptor: given.interceptor,
        shouldAutomaticallyResume: given.starts, fileManager: given.fileManager, requestModifier: modify)
    },
    Factory(
      testDescription: "upload of data with a convertible", describesRequest: false, takesFileManager: true
    ) {
      session, given in
      session.upload(
        Data("body".utf8), with: try convertible, interceptor: given.interceptor,
        shouldAutomaticallyResume: given.starts, fileManager: given.fileManager)
    },
    Factory(testDescription: "upload of a file", takesFileManager: true) { session, given in
      session.upload(
        file, to: url, method: .patch, headers: headers, interceptor: given.interceptor,
        shouldAutomaticallyResume: given.starts, fileManager: given.fileManager, requestModifier: modify)
    },
    Factory(
      testDescription: "upload of a file with a convertible", describesRequest: false, takesFileManager: true
    ) {
      session, given in
      session.upload(
        file, with: try convertible, interceptor: given.interceptor, shouldAutomaticallyResume: given.starts,
        fileManager: given.fileManager)
    },
    Factory(testDescription: "upload of a stream", takesStart: false, takesFileManager: true) {
      session, given in
      session.upload(
        InputStream(data: Data("body".utf8)), to: url, method: .patch, headers: headers,
        interceptor: given.interceptor, fileManager: given.fileManager, requestModifier: modify)
    },
    Factory(testDescription: "upload of a stream that may wait", takesFileManager: true) { session, given in
      session.upload(
        InputStream(data: Data("body".utf8)), to: url, method: .patch, headers: headers,
        interceptor: given.interceptor, shouldAutomaticallyResume: given.starts,
        fileManager: given.fileManager, requestModifier: modify)
    },
    Factory(
      testDescription: "upload of a stream with a convertible", describesRequest: false,
      takesFileManager: true
    ) {
      session, given in
      session.upload(
        InputStream(data: Data("body".utf8)), with: try convertible, interceptor: given.interceptor,
        shouldAutomaticallyResume: given.starts, fileManager: given.fileManager)
    },
    Factory(testDescription: "upload of a sequence") { session, given in
      session.upload(
        AsyncStream<Data> { $0.finish() }, to: url, method: .patch, headers: headers,
        interceptor: given.interceptor, shouldAutomaticallyResume: given.starts, requestModifier: modify)
    },
    Factory(testDescription: "upload of a sequence with a convertible", describesRequest: false) {
      session, given in
      session.upload(
        AsyncStream<Data> { $0.finish() }, with: try convertible, interceptor: given.interceptor,
        shouldAutomaticallyResume: given.starts)
    },
  ]

  private static func fill(_ form: MultipartFormData) { form.append(Data("v".utf8), withName: "k") }

  private static var form: MultipartFormData {
    let form = MultipartFormData()
    fill(form)
    return form
  }

  private static let forms = [
    Factory(testDescription: "form", takesStart: false, takesFileManager: true) { session, given in
      session.upload(
        multipartFormData: fill, to: url, method: .patch, headers: headers, interceptor: given.interceptor,
        fileManager: given.fileManager, requestModifier: modify)
    },
    Factory(testDescription: "form that may wait", takesFileManager: true) { session, given in
      session.upload(
        multipartFormData: fill, to: url, method: .patch, headers: headers, interceptor: given.interceptor,
        shouldAutomaticallyResume: given.starts, fileManager: given.fileManager, requestModifier: modify)
    },
    Factory(
      testDescription: "form with a convertible", describesRequest: false, takesStart: false,
      takesFileManager: true
    ) { session, given in
      session.upload(
        multipartFormData: fill, with: try convertible, interceptor: given.interceptor,
        fileManager: given.fileManager)
    },
    Factory(
      testDescription: "form with a convertible that may wait", describesRequest: false,
      takesFileManager: true
    ) { session, given in
      session.upload(
        multipartFormData: fill, with: try convertible, interceptor: given.interceptor,
        shouldAutomaticallyResume: given.starts, fileManager: given.fileManager)
    },
    Factory(testDescription: "made form", takesFileManager: true) { session, given in
      session.upload(
        multipartFormData: form, to: url, method: .patch, headers: headers, interceptor: given.interceptor,
        shouldAutomaticallyResume: given.starts, fileManager: given.fileManager, requestModifier: modify)
    },
    Factory(testDescription: "made form with a convertible", describesRequest: false, takesFileManager: true)
    {
      session, given in
      session.upload(
        multipartFormData: form, with: try convertible, interceptor: given.interceptor,
        shouldAutomaticallyResume: given.starts, fileManager: given.fileManager)
    },
  ]

  private static let all = requests + uploads + forms

  @Test(
    "The request has the method, the fields and the changes, and its interceptor is called", arguments: all)
  func request(by factory: Factory) async throws {
    let spy = SpyInterceptor()
    let session = Session.retained(fake: FakeTransport(), startRequestsImmediately: false)
    let request = try factory.make(session, Given(interceptor: spy, starts: nil)).resume()
    await request.finished()
    let made = try #require(request.request)
    #expect(made.url?.absoluteString.hasPrefix(Self.url) == true)
    #expect(made.httpMethod == (factory.takesMethod ? "PATCH" : "GET"))
    if factory.describesRequest {
      #expect(made.value(forHTTPHeaderField: "X-Header") == "given")
      #expect(made.value(forHTTPHeaderField: "X-Modifier") == "modified")
    }
    if factory.testDescription.contains("encod") { #expect(made.url?.query == "key=value") }
    if factory.testDescription.contains("form") {
      #expect(made.value(forHTTPHeaderField: "Content-Type")?.hasPrefix("multipart/form-data") == true)
    }
    #expect(spy.adaptCount == 1)
    try removeFile(of: request)
  }

  private func removeFile(of request: Request) throws {
    if let file = (request as? DownloadRequest)?.fileURL { try FileManager.default.removeItem(at: file) }
  }

  @Test("A request starts with its first handler as the factory was told", arguments: all)
  func start(by factory: Factory) async throws {
    for isStartedBySession in [true, false] {
      let session = Session.retained(
        fake: FakeTransport(), startRequestsImmediately: isStartedBySession)
      for starts in factory.takesStart ? [true, false, nil] : [nil] {
        let request = try factory.make(session, Given(interceptor: SpyInterceptor(), starts: starts))
        #expect(request.shouldAutomaticallyResume == starts)
        addHandler(to: request)
        #expect(request.isInitialized == !(starts ?? isStartedBySession), "\(String(describing: starts))")
        guard !request.isInitialized else { continue }
        await request.finished()
        try removeFile(of: request)
      }
    }
  }

  private func addHandler(to request: Request) {
    switch request {
    case let request as DownloadRequest: request.response(queue: .global()) { _ in }
    case let request as DataStreamRequest: request.responseStream(on: .global()) { _ in }
    case let request as WebSocketRequest: request.streamMessages(on: .global()) { _ in }
    case let request as DataRequest: request.response(queue: .global()) { _ in }
    default: Issue.record("unknown kind of request")
    }
  }

  @Test("An eager session makes the request before it starts", arguments: all)
  func eager(factory: Factory) async throws {
    let session = Session.retained(
      fake: FakeTransport(), startRequestsImmediately: false, requestSetup: .eager)
    let request = try factory.make(session, Given(interceptor: SpyInterceptor(), starts: nil))
    var made: URLRequest?
    for await urlRequest in request.urlRequests() {
      made = urlRequest
      break
    }
    #expect(made?.url?.absoluteString.hasPrefix(Self.url) == true)
    #expect(request.isInitialized)
    request.cancel()
  }

  @Test("An upload has the file manager of its factory", arguments: all.filter(\.takesFileManager))
  func fileManager(of factory: Factory) throws {
    let given = Given(interceptor: SpyInterceptor(), starts: false)
    let request = try factory.make(Session.retained(fake: FakeTransport()), given)
    #expect((request as? UploadRequest)?.fileManager === given.fileManager)
  }

  @Test(
    "A continued transfer has the interceptor of its factory, and starts as it was told",
    arguments: [true, false])
  func continued(starts: Bool) {
    let session = Session.retained(fake: FakeTransport(), startRequestsImmediately: !starts)
    let spy = SpyInterceptor()
    let continued: [Request] = [
      session.download(resumingWith: Data(), interceptor: spy, shouldAutomaticallyResume: starts),
      session.upload(
        resumingWith: Data(), file: Self.file, interceptor: spy, shouldAutomaticallyResume: starts),
    ]
    for request in continued {
      #expect(request.shouldAutomaticallyResume == starts)
      #expect(request.interceptor as? SpyInterceptor === spy)
    }
    let removal = session.removeUpload(Data(), interceptor: spy)
    #expect(removal.interceptor as? SpyInterceptor === spy && removal.shouldAutomaticallyResume == nil)
  }

  @Test("A stream is cancelled by an error of its reader as the factory was told", arguments: [true, false])
  func streamErrors(cancels: Bool) throws {
    let session = Session.retained(fake: FakeTransport(), startRequestsImmediately: false)
    let streams = [
      session.streamRequest(
        Self.url, parameters: Self.parameters, automaticallyCancelOnStreamError: cancels),
      session.streamRequest(Self.url, automaticallyCancelOnStreamError: cancels),
      session.streamRequest(try Self.convertible, automaticallyCancelOnStreamError: cancels),
    ]
    #expect(streams.map(\.automaticallyCancelOnStreamError) == [cancels, cancels, cancels])
  }

  @Test("The modifier changes a request before its parameters are encoded") func order() async throws {
    let session = Session.retained(fake: FakeTransport())
    let modify: Session.RequestModifier = { $0.url = URL(string: "http://b.test/?first=1") }
    let request = session.request(
      Self.url, parameters: Self.parameters, requestModifier: modify)
    await request.resume().finished()
    #expect(request.request?.url?.absoluteString == "http://b.test/?first=1&key=value")
  }
}
