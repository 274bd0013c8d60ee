import AlamofireV3
import HTTPTestServer
import SampleServers
import Testing

extension Samples {
  @Suite struct SampleServerTests {
    let site: Site
    init() throws { site = try Site() }

    /// Recognizes httpbin by the `Server` field of gunicorn, which the test server does not send. Skipped if the
    /// samples run with the test server only.
    @Test(.needsHTTPBin, arguments: ["httpbin.org", "example.com"])
    func httpbinAnswersForItsHostAlone(host: String) async throws {
      let server: String? = await waiting { done in
        Alamofire.request(.GET, "https://\(host)/get")
          .response { _, response, _, _ in done(response?.allHeaderFields["Server"] as? String) }
      }
      let isReal = SampleServer.current.isReal && host == "httpbin.org"
      #expect(isReal == (server?.hasPrefix("gunicorn") == true))
      #expect(try await site.request().header("Host") == host)
    }
  }
}
