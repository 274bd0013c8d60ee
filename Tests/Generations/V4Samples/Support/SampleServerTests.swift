import AlamofireV4
import HTTPTestServer
import SampleServers
import Testing

/// Checks the sample servers.
extension Samples {
  @Suite struct SampleServerTests {
    let environment: SampleEnvironment
    init() throws { environment = try SampleEnvironment.set() }

    /// Records the sample server of each run. Skipped if the samples run with the test server only.
    @Test(.needsHTTPBin) func aSampleRunsOnceWithEachSampleServer() async throws {
      let runs = SampleRuns()
      let test = try #require(Test.current)
      let trait: EverySampleServer = .onEverySampleServer
      try await trait.provideScope(for: test, testCase: nil) { await runs.add(SampleServer.current) }
      let servers = await runs.servers
      #expect(servers.map(\.isReal) == [false, true])
    }

    /// Recognizes httpbin by the `Server` field of gunicorn, which the test server does not send.
    @Test(arguments: SampleEnvironment.hosts) func httpbinAnswersForItsHostAlone(host: String) async {
      Alamofire.request("https://\(host)/get").responseJSON { response in
        print(response.response?.allHeaderFields["Server"] ?? "nobody")
        print((response.result.value as? [String: Any])?["url"])
      }
      let lines = await printed(2)
      let isReal = SampleServer.current.isReal && host == "httpbin.org"
      #expect(isReal == lines[0].hasPrefix("gunicorn"))
      #expect(host != "httpbin.org" || lines[1] == "https://httpbin.org/get")
    }

    /// Compares the request that httpbin echoes with the one that the server in front has recorded.
    @Test func requestsAreLedOnAsTheyAre() async throws {
      let body = Data((0..<70_000).map { UInt8(truncatingIfNeeded: $0 * 7) })
      let fields = ["X-Case": "AbC", "Content-Type": "application/x-own"]
      Alamofire.upload(
        body, to: "https://httpbin.org/anything/a%20b?x=1&y=%2F", method: .patch, headers: fields
      )
      .responseJSON { response in
        let echo = response.result.value as? [String: Any]
        let headers = echo?["headers"] as? [String: String]
        print(echo?["method"])
        print(echo?["args"] as? [String: String] == ["x": "1", "y": "/"])
        print((echo?["data"] as? String)?.hasSuffix(";base64," + body.base64EncodedString()))
        print(headers?["X-Case"])
        print(headers?["Content-Type"])
        print(headers?["Content-Length"])
      }
      #expect(await printed(6) == ["PATCH", "true", "true", "AbC", "application/x-own", "70000"])
      let request = try await environment.request()
      #expect(request.body == Array(body))
      #expect(request.target == "/anything/a%20b?x=1&y=%2F")
    }
  }
}

private actor SampleRuns {
  var servers: [SampleServer] = []
  func add(_ server: SampleServer) { servers.append(server) }
}
