import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Synchronization
import Testing

@Suite("Streams as bodies that are sent again", .timeLimit(.minutes(5)))
struct ConsumedStreamTests {
  private let server: HTTPTestServer

  init() throws {
    server = try HTTPTestServer(routes: .none)
  }

  /// A delegate that returns the given streams in order, then the upload's.
  private final class StreamProvider: SessionDelegate, @unchecked Sendable {
    // The test hands the streams over.
    private let streams: Mutex<[UploadRequest.Uploadable]>
    let calls = Recorder<Int>()

    init(_ texts: String?...) {
      streams = Mutex(
        texts.map { text in
          text.map { .stream(InputStream(data: Data($0.utf8))) } ?? .data(Data())
        })
      super.init()
    }

    override func urlSession(
      _ session: URLSession, task: URLSessionTask,
      needNewBodyStream completionHandler: @escaping (InputStream?) -> Void
    ) {
      calls.add(1)
      let next = streams.withLock { $0.isEmpty ? nil : $0.removeFirst() }
      switch next {
      case .stream(let stream): completionHandler(stream)
      case .data: completionHandler(nil)
      case .file, nil: super.urlSession(session, task: task, needNewBodyStream: completionHandler)
      }
    }
  }

  private func code(_ response: AFDataResponse<Data?>) -> URLError.Code? {
    (response.error?.underlyingError as? URLError)?.code
  }

  private func mine() -> InputStream { InputStream(data: Data("mine".utf8)) }

  @Test("A redirect after a consumed stream is an error that names the remedy", arguments: [307, 308])
  func redirect(status: Int) async throws {
    for delegate in [SessionDelegate(), StreamProvider()] {
      server.enqueue(.redirect(to: "/there", status: status))
      let session = Session(delegate: delegate)
      let response = await session.upload(mine(), to: server.url("/")).end()
      #expect(code(response) == .requestBodyStreamExhausted)
      #expect(response.error?.localizedDescription.contains("can be read once") == true)
      #expect(try await server.takeRequest().bodyText == "mine")
    }
    #expect(server.requestCount == 2, "no request is sent there")
  }

  @Test("A delegate can provide another stream for a redirect", arguments: [307, 308]) func delegate(
    status: Int
  ) async throws {
    server.enqueue(.redirect(to: "/there", status: status), .ok)
    let provider = StreamProvider("mine", "mine again")
    let session = Session(delegate: provider)
    let response = await session.upload(mine(), to: server.url("/")).end()
    #expect(response.error == nil)
    #expect(server.recordedRequests.map(\.bodyText) == ["mine", "mine again"])
    #expect(provider.calls.count == 2)
  }

  @Test("A delegate without a stream ends the request") func delegateWithoutStream() async throws {
    server.enqueue(.redirect(to: "/there", status: 307), .ok)
    let session = Session(delegate: StreamProvider("mine", nil))
    let response = await session.upload(mine(), to: server.url("/")).end()
    #expect(code(response) == .requestBodyStreamExhausted)
    #expect(response.error?.localizedDescription.contains("delegate") == true)
    #expect(server.requestCount == 1)
  }

  @Test("Another stream answers a challenge") func challenge() async throws {
    server.enqueue(
      Reply(
        status: 401, headers: [HTTPHeader(name: "WWW-Authenticate", value: #"Basic realm="r""#)]), .ok)
    let session = Session(delegate: StreamProvider("mine", "mine again"))
    let response = await session.upload(mine(), to: server.url("/"))
      .authenticate(username: "u", password: "p").end()
    #expect(response.error == nil)
    #expect(server.recordedRequests.map(\.bodyText) == ["mine", "mine again"])
    #expect(server.recordedRequests.last?.header("Authorization") != nil)
  }

  @Test("A redirect that drops the body needs no stream") func redirectWithoutBody() async throws {
    server.enqueue(.redirect(to: "/there", status: 303), .ok)
    let provider = StreamProvider()
    let session = Session(delegate: provider)
    #expect(await session.upload(mine(), to: server.url("/")).end().error == nil)
    #expect(provider.calls.count == 1)
  }

  @Test("A retry does not send the rest of a stream") func retry() async throws {
    server.enqueue(.status(503), .ok)
    let session = Session.real(interceptor: SpyInterceptor(retries: 1))
    let response = await session.upload(mine(), to: server.url("/")).validate().end()
    #expect(code(response) == .requestBodyStreamExhausted)
    #expect(server.recordedRequests.map(\.bodyText) == ["mine"])
  }

  @Test("A stream of a URL without a file is an error") func streamOfURL() async throws {
    let url = try #require(URL(string: "http://a.test/"))
    let empty = try #require(InputStream(url: url))
    server.enqueue(.ok)
    let response = await Session.real().upload(empty, to: server.url("/")).end()
    #expect(code(response) == .requestBodyStreamExhausted)
  }

  @Test("A closed stream is an error") func closedStream() async throws {
    let closed = mine()
    closed.open()
    closed.close()
    server.enqueue(.ok)
    let response = await Session.real().upload(closed, to: server.url("/")).end()
    #expect(code(response) == .requestBodyStreamExhausted)
  }

  @Test("A stream that returns an impossible count is an error") func invalidCount() async throws {
    final class InvalidCountStream: InputStream {
      override var streamStatus: Stream.Status { .open }
      override func open() {}
      override func close() {}
      override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength length: Int) -> Int { length + 1 }
      override var hasBytesAvailable: Bool { true }
    }
    server.enqueue(.ok)
    let response = await Session.real().upload(InvalidCountStream(data: Data()), to: server.url("/")).end()
    #expect(code(response) == .requestBodyStreamExhausted)
  }

  @Test("The stream of a cancelled upload is closed") func cancelledUpload() async throws {
    final class Endless: InputStream {
      var onClose: (() -> Void)?
      override var streamStatus: Stream.Status { .open }
      override func open() {}
      override func close() { onClose?() }
      override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength length: Int) -> Int {
        memset(buffer, 7, length)
        return length
      }
      override var hasBytesAvailable: Bool { true }
    }
    let idle = try StreamTestServer { connection in try connection.stall() }
    let isClosed = Latch()
    let stream = Endless(data: Data())
    stream.onClose = { isClosed.open() }
    let moved = Recorder<Int64>()
    let request = Session.real().upload(stream, to: "http://localhost:\(idle.port)/")
      .uploadProgress(queue: .global()) { moved.add($0.completedUnitCount) }
    async let response = request.end()
    await moved.wait(for: 1)
    request.cancel()
    #expect(await response.error?.isExplicitlyCancelledError == true)
    await isClosed.wait()
  }

  @Test("A retry sends the whole stream if it was not read") func unreadStream() async throws {
    let closed = try HTTPTestServer(routes: .none)
    let url = closed.url("/")
    closed.stop()
    server.enqueue(.ok)
    let here = server.url("/")
    let rescue = SpyInterceptor(
      adapt: { request, count in
        var request = request
        request.url = URL(string: count == 1 ? url : here)
        return .success(request)
      }, retry: { _, _, count in count == 1 ? .retry : .doNotRetry })
    let stream = InputStream(data: Data(repeating: 9, count: 3_000_000))
    let response = await Session.real(interceptor: rescue).upload(stream, to: url).end()
    #expect(response.error == nil)
    #expect(try await server.takeRequest().body.count == 3_000_000)
  }
}
