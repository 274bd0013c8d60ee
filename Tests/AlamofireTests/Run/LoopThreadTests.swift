import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Scenarios
import Testing

/// The caller's code never runs on the engine's thread, because it would delay every other transfer.
@Suite("Threads of the caller's code", .timeLimit(.minutes(5)))
struct LoopThreadTests {
  static let names = Recorder<(String, String)>()

  static func note(_ place: String, in names: Recorder<(String, String)>) { names.add((place, threadName())) }

  struct Noting: Decodable, Sendable {
    @TaskLocal static var unused = 0
    init(from decoder: any Decoder) throws {
      LoopThreadTests.note("Decodable.init", in: LoopThreadTests.names)
    }
  }

  struct NotingSerializer: ResponseSerializer {
    let names: Recorder<(String, String)>
    func serialize(
      request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: (any Error)?
    ) throws -> Int {
      LoopThreadTests.note("serializer", in: names)
      return 1
    }
  }

  struct NotingPreprocessor: DataPreprocessor {
    let names: Recorder<(String, String)>
    func preprocess(_ data: Data) throws -> Data {
      LoopThreadTests.note("preprocessor", in: names)
      return data
    }
  }

  struct NotingRouter: URLRequestConvertible {
    let url: String
    let names: Recorder<(String, String)>
    func asURLRequest() throws -> URLRequest {
      LoopThreadTests.note("router", in: names)
      return try URLRequest(url: url, method: .get)
    }
  }

  struct NotingParameters: Encodable, Sendable {
    let names: Recorder<(String, String)>
    func encode(to encoder: any Encoder) throws {
      LoopThreadTests.note("Encodable.encode", in: names)
      var container = encoder.container(keyedBy: Key.self)
      try container.encode(1, forKey: .one)
    }
    enum Key: CodingKey { case one }
  }

  private func exercise(_ request: DataRequest, _ names: Recorder<(String, String)>) async {
    request.validate { _, _, _ in
      Self.note("validator", in: names)
      return .success(())
    }
    .validate(
      contentType: {
        Self.note("content types", in: names)
        return ["*/*"]
      }()
    )
    .onHTTPResponse(on: .global()) { (_: HTTPURLResponse) in Self.note("onHTTPResponse", in: names) }
    .onURLRequestCreation(on: .global()) { _ in Self.note("onURLRequestCreation", in: names) }
    .cURLDescription(on: .global()) { _ in Self.note("cURLDescription", in: names) }
    .downloadProgress(queue: .global()) { _ in Self.note("progress", in: names) }
    request.response(queue: .global(), responseSerializer: NotingSerializer(names: names)) { _ in
      Self.note("handler", in: names)
    }
    request.responseDecodable(of: Noting.self, queue: .global()) { _ in Self.note("handler", in: names) }
    request.responseData(queue: .global(), dataPreprocessor: NotingPreprocessor(names: names)) { _ in
      Self.note("handler", in: names)
    }
    _ = await request.serializingDecodable(Noting.self).response
    _ = await request.end()
  }

  @Test("The caller's code does not run on the engine's thread", .steps, arguments: [false, true])
  func places(withInterceptor: Bool) async throws {
    let server = try HTTPTestServer()
    let names = Recorder<(String, String)>()
    let spy = SpyInterceptor(
      adapt: { request, _ in
        Self.note("adapter", in: names)
        return .success(request)
      },
      retry: { _, _, count in
        Self.note("retrier", in: names)
        return count == 1 ? .retryWithDelay(0.001) : .doNotRetry
      })
    server.enqueue(.json("not JSON"))
    let session = Session.real(interceptor: withInterceptor ? spy : nil)
    step("plain request")
    await exercise(session.request(server.url("/json")), names)
    step("router")
    await exercise(session.request(NotingRouter(url: server.url("/json"), names: names)), names)
    step("parameters")
    await exercise(session.request(server.url("/get"), parameters: NotingParameters(names: names)), names)
    step("modifier")
    await exercise(
      session.request(
        server.url("/json"),
        requestModifier: { _ in Self.note("modifier", in: names) }), names)
    step("places of all code")
    let places = Set(names.values.map(\.0))
    let expected: Set = [
      "validator", "content types", "onHTTPResponse", "onURLRequestCreation", "cURLDescription", "progress",
      "serializer", "handler", "preprocessor", "router", "Encodable.encode", "modifier",
    ]
    #expect(places.isSuperset(of: expected))
    if withInterceptor { #expect(places.isSuperset(of: ["adapter", "retrier"])) }
    let wrong = (names.values + Self.names.values).filter { $0.1 == "http-engine" }.map(\.0)
    #expect(wrong.isEmpty)
    #expect(Self.names.count > 0)
  }

  /// The caller's file manager.
  private final class NotingFileManager: FileManager, @unchecked Sendable {
    let names = Recorder<(String, String)>()
    override func removeItem(at url: URL) throws {
      LoopThreadTests.note("removeItem", in: names)
      try super.removeItem(at: url)
    }
  }

  @Test(
    "The file of a body is removed by the caller's file manager, off the engine's thread",
    arguments: [[Reply.text("ok")], [.status(500), .text("ok")], [.closeBeforeReply]])
  func uploadedFile(replies: [Reply]) async throws {
    let server = try HTTPTestServer(routes: .none)
    for reply in replies { server.enqueue(reply) }
    let manager = NotingFileManager()
    let retries = replies.count > 1
    let retrier = Retrier { request, _, _, completion in
      completion(retries && request.retryCount == 0 ? .retry : .doNotRetry)
    }
    // Monitors of notifications become active while any test observes one.
    let session = Session.real(configuration: .isolated, eventMonitors: [])
    let request = session.upload(
      multipartFormData: { $0.append(Data("value".utf8), withName: "name") }, to: server.url("/"),
      usingThreshold: 0, interceptor: retries ? retrier : nil, fileManager: manager)
    _ = await request.validate().serializingData().response
    #expect(await eventually { manager.names.count >= replies.count }, "a file for each attempt")
    #expect(manager.names.values.filter { $0.1 == "http-engine" }.isEmpty)
  }

  private enum Kind: CaseIterable, Sendable { case data, download, stream, events, webSocket }

  @Test("A router is asked off the engine's thread", arguments: Kind.allCases)
  private func router(kind: Kind) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.status(204))
    let names = Recorder<(String, String)>()
    let router = NotingRouter(url: server.url("/"), names: names)
    // Without monitors and interceptors, a request has no task that its router could run in.
    let session = Session.real(configuration: .isolated, eventMonitors: [])
    switch kind {
    case .data: _ = await session.request(router).end()
    case .download:
      let response = await session.download(router).serializingDownloadedFileURL().response
      response.removeFile()
    case .stream: for await _ in session.streamRequest(router).streamTask().streamingData() {}
    case .events: for try await _ in session.eventSourceRequest(router).events() {}
    case .webSocket:
      for await _ in session.webSocketRequest(performing: router).webSocketTask().streamingMessages() {}
    }
    #expect(names.values.map(\.0) == ["router"])
    #expect(names.values.filter { $0.1 == "http-engine" }.isEmpty)
  }

  @Test("The destination of a download is asked off the engine's thread", arguments: [false, true])
  func destination(withAdapter: Bool) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.text("ok"))
    let names = Recorder<(String, String)>()
    let adapter = Adapter { request, _, completion in completion(.success(request)) }
    let session = Session.real(configuration: .isolated, eventMonitors: [])
    let request = session.download(
      server.url("/"), interceptor: withAdapter ? adapter : nil,
      to: { url, _ in
        Self.note("destination", in: names)
        return (url, [])
      })
    let file = try await request.serializingDownloadedFileURL().value
    try FileManager.default.removeItem(at: file)
    #expect(names.values.map(\.0) == ["destination"])
    #expect(names.values.filter { $0.1 == "http-engine" }.isEmpty)
  }
}
