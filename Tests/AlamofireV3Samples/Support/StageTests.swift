import AlamofireV3
import HTTPTestServer
import SampleStages
import Testing

extension Samples {
  @Suite struct Stages {
    let site: Site
    init() throws { site = try Site() }

    /// gunicorn says who it is, the test server says nothing. Skipped where the samples are played before the test
    /// server alone.
    @Test(.needsHTTPBin, arguments: ["httpbin.org", "example.com"])
    func httpbinAnswersForItsHostAlone(host: String) async throws {
      let server: String? = await waiting { done in
        Alamofire.request(.GET, "https://\(host)/get")
          .response { _, response, _, _ in done(response?.allHeaderFields["Server"] as? String) }
      }
      let isReal = Stage.current.isReal && host == "httpbin.org"
      #expect(isReal == (server?.hasPrefix("gunicorn") == true))
      #expect(try await site.request().header("Host") == host)
    }
  }
}
