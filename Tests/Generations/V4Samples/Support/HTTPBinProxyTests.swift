import AlamofireV4
import HTTPTestServer
import SampleServers
import Testing

/// The reverse proxy of httpbin, with test servers instead of httpbin.
@Suite(.timeLimit(.minutes(5))) struct HTTPBinProxyTests {
  private let proxy = HTTPBinProxy()
  private let others: HTTPTestServer
  private let server: HTTPTestServer
  private let manager = SessionManager(configuration: .ephemeral, transportOptions: TransportOptions())

  init() throws {
    others = try HTTPTestServer()
    server = try HTTPTestServer(routes: proxy.routes(others: others.port))
  }

  private func status(_ host: String = "httpbin.org") async -> Int? {
    await withCheckedContinuation { continuation in
      manager.request(server.url("/post"), method: .post, parameters: ["a": "b"], headers: ["Host": host])
        .response { continuation.resume(returning: $0.response?.statusCode) }
    }
  }

  @Test func twoThatUnderstandTheSameDoNotDiffer() async throws {
    let httpbin = try HTTPTestServer()
    proxy.forward(to: UInt16(httpbin.port))
    #expect(await status() == 200)
    #expect(await proxy.takeDifferences() == [])
    #expect(httpbin.recordedRequests.map(\.bodyText) == ["a=b"])
    #expect(await status("example.com") == 200)
    #expect(httpbin.requestCount == 1)
    #expect(others.requestCount == 2)
  }

  @Test(arguments: [
    #"{"form": {"a": "c"}}"#, #"{"form": {"a": "b"}, "args": {"a": "b"}}"#,
    #"{"form": {"a": "b"}, "headers": {}}"#,
    "no document",
  ])
  func anotherUnderstandingIsADifference(document: String) async throws {
    let httpbin = try HTTPTestServer(routes: .none.adding("/post") { _, _ in .json(document) })
    proxy.forward(to: UInt16(httpbin.port))
    #expect(await status() == 200)
    let differences = await proxy.takeDifferences()
    #expect(differences.count == 1)
    #expect(differences.first?.hasPrefix("POST /post: ") == true)
    #expect(await proxy.takeDifferences() == [], "reported once")
  }

  @Test func anotherStatusIsADifferenceAndSoIsNobody() async throws {
    let httpbin = try HTTPTestServer(routes: .none)
    proxy.forward(to: UInt16(httpbin.port))
    #expect(await status() == 404)
    #expect(await proxy.takeDifferences() == ["POST /post: answered with 404, expected 200"])
    proxy.forward(to: UInt16(try HTTPTestServer.refusedPort()))
    #expect(await status() == 502)
    #expect(await proxy.takeDifferences().first?.hasPrefix("POST /post went nowhere: ") == true)
  }
}
