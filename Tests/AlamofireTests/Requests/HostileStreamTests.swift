import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

/// Bodies from `InputStream`s that violate the contract of the class.
@Suite(.timeLimit(.minutes(5))) struct HostileStreamTests {
  private let server: HTTPTestServer
  private let session = Session.real()

  init() throws { server = try HTTPTestServer() }

  private func code(_ response: AFDataResponse<Data?>) -> URLError.Code? {
    (response.error?.underlyingError as? URLError)?.code
  }

  @Test(
    "A stream that returns an impossible count is an error", arguments: [Int.max, 1 << 40, 65_537, -5, .min])
  func counts(count: Int) async {
    let response = await session.upload(InvalidCountStream(count), to: server.url("/post")).end()
    #expect(code(response) == .requestBodyStreamExhausted)
  }

  /// Sends streams of a URL without a file. The first call of such a stream of Foundation's ends the process.
  @Test("A stream of a URL without a file is an error") func streamOfURL() async throws {
    let url = try #require(URL(string: "http://127.0.0.1/body"))
    let stream = try #require(InputStream(url: url))
    #expect(code(await session.upload(stream, to: server.url("/post")).end()) == .requestBodyStreamExhausted)
    var request = try URLRequest(url: server.url("/post"), method: .post)
    request.httpBodyStream = InputStream(url: url)
    #expect(code(await session.request(request).end()) == .requestBodyStreamExhausted)
    #expect(server.recordedRequests.isEmpty)
  }

  @Test("A URLProtocol does not receive such a stream") func urlProtocol() async throws {
    let script = ProtocolScript { loader, client in
      loader.respond(client)
      loader.finish(client)
    }
    let stream = try #require(InputStream(url: try script.url.asURL()))
    let response = await Session.scripted().upload(stream, to: script.url).end()
    #expect(code(response) == .requestBodyStreamExhausted)
    #expect(script.started.values.isEmpty)
  }
}

/// Returns a count of bytes that it has not read.
private final class InvalidCountStream: InputStream {
  private let count: Int

  init(_ count: Int) {
    self.count = count
    super.init(data: Data())
  }

  override func open() {}
  override func close() {}
  override var streamStatus: Stream.Status { .notOpen }
  override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int { count }
}
