import Alamofire
import HTTPTestServer
import Testing

#if IMPORTS_FOUNDATION
  import Foundation
#endif
#if IMPORTS_FOUNDATION_NETWORKING
  import FoundationNetworking
#endif

/// Runs code of this folder, which otherwise is only compiled.
@Suite("Code of users", .timeLimit(.minutes(5))) struct SmokeTests {
  struct Echo: Decodable, Sendable {
    let args: [String: String]
  }

  @Test("A request with parameters is decoded") func decoded() async throws {
    let server = try HTTPTestServer()
    let echo = try await AF.request(server.url("/get"), parameters: ["q": "袜子"])
      .validate()
      .serializingDecodable(Echo.self).value
    #expect(echo.args == ["q": "袜子"])
  }

  @Test("A completion handler receives the metrics under Apple's name") func handler() async throws {
    let server = try HTTPTestServer()
    let response = await withCheckedContinuation { continuation in
      AF.request(server.url("/status/418")).validate().responseData(queue: .global()) { response in
        continuation.resume(returning: response)
      }
    }
    let metrics: URLSessionTaskMetrics? = response.metrics
    #expect(response.error?.responseCode == 418)
    #expect(metrics?.transactionMetrics.count == 1)
  }

  @Test("A subclass of the session sends requests") func subclass() async throws {
    let server = try HTTPTestServer()
    let session = Backend(base: server.url("/get"))
    let response = await session.request(session.base).serializingData().response
    #expect(response.response?.statusCode == 200)
    #expect(session.base == server.url("/get"))
    #expect(session.session.configuration.headers["User-Agent"]?.contains("Alamofire/") == true)
  }
}
