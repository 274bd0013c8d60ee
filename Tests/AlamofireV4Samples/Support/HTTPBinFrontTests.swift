import AlamofireV4
import HTTPTestServer
import SampleStages
import Testing

/// The front of httpbin, with test servers in its place.
@Suite(.timeLimit(.minutes(5))) struct HTTPBinFrontTests {
  private let front = HTTPBinFront()
  private let others: HTTPTestServer
  private let server: HTTPTestServer
  private let manager = SessionManager(configuration: .ephemeral, transportOptions: TransportOptions())

  init() throws {
    others = try HTTPTestServer()
    server = try HTTPTestServer(routes: front.routes(others: others.port))
  }

  private func status(_ host: String = "httpbin.org") async -> Int? {
    await withCheckedContinuation { continuation in
      manager.request(server.url("/post"), method: .post, parameters: ["a": "b"], headers: ["Host": host])
        .response { continuation.resume(returning: $0.response?.statusCode) }
    }
  }

  @Test func twoThatUnderstandTheSameDoNotDiffer() async throws {
    let httpbin = try HTTPTestServer()
    front.lead(to: UInt16(httpbin.port))
    #expect(await status() == 200)
    #expect(await front.verdict() == [])
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
    front.lead(to: UInt16(httpbin.port))
    #expect(await status() == 200)
    let differences = await front.verdict()
    #expect(differences.count == 1)
    #expect(differences.first?.hasPrefix("POST /post: ") == true)
    #expect(await front.verdict() == [], "told once")
  }

  @Test func anotherStatusIsADifferenceAndSoIsNobody() async throws {
    let httpbin = try HTTPTestServer(routes: .none)
    front.lead(to: UInt16(httpbin.port))
    #expect(await status() == 404)
    #expect(await front.verdict() == ["POST /post: answered with 404, expected 200"])
    front.lead(to: UInt16(try HTTPTestServer.refusedPort()))
    #expect(await status() == 502)
    #expect(await front.verdict().first?.hasPrefix("POST /post went nowhere: ") == true)
  }
}
