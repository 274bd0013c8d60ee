import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

/// `InputStream`s with bodies that do not keep the rules.
@Suite(.timeLimit(.minutes(5))) struct HostileStreamTests {
  private let server: HTTPTestServer
  private let session = Session.real()

  init() throws { server = try HTTPTestServer() }

  private func code(_ response: AFDataResponse<Data?>) -> URLError.Code? {
    (response.error?.underlyingError as? URLError)?.code
  }

  @Test(arguments: [Int.max, 1 << 40, 65_537, -5, .min])
  func aStreamThatSaysItReadWhatItCannotIsAnError(count: Int) async {
    let response = await session.upload(LyingStream(count), to: server.url("/post")).end()
    #expect(code(response) == .requestBodyStreamExhausted)
  }

  /// Foundation makes a stream of such a URL that ends the process at its first call.
  @Test func aStreamOfAURLThatIsNoFileIsAnError() async throws {
    let url = try #require(URL(string: "http://127.0.0.1/body"))
    let stream = try #require(InputStream(url: url))
    #expect(code(await session.upload(stream, to: server.url("/post")).end()) == .requestBodyStreamExhausted)
    var request = try URLRequest(url: server.url("/post"), method: .post)
    request.httpBodyStream = InputStream(url: url)
    #expect(code(await session.request(request).end()) == .requestBodyStreamExhausted)
    #expect(server.recordedRequests.isEmpty)
  }

  @Test func aURLProtocolDoesNotGetSuchAStream() async throws {
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

/// Says that it has read so many bytes, and has not.
private final class LyingStream: InputStream {
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
