import AlamofireV4
import HTTPTestServer
import SampleStages
import Testing

/// That the stages are what the samples take them for.
extension Samples {
  @Suite struct Stages {
    let scene: Scene
    init() throws { scene = try Scene.set() }

    /// Skipped where the samples are played before the test server alone.
    @Test(.needsHTTPBin) func aSampleIsPlayedOnceOnEachStage() async throws {
      let played = Plays()
      let test = try #require(Test.current)
      let trait: EveryStage = .onEveryStage
      try await trait.provideScope(for: test, testCase: nil) { await played.add(Stage.current) }
      let stages = await played.stages
      #expect(stages.map(\.isReal) == [false, true])
    }

    /// gunicorn says who it is, the test server says nothing.
    @Test(arguments: Scene.hosts) func httpbinAnswersForItsHostAlone(host: String) async {
      Alamofire.request("https://\(host)/get").responseJSON { response in
        print(response.response?.allHeaderFields["Server"] ?? "nobody")
        print((response.result.value as? [String: Any])?["url"])
      }
      let lines = await printed(2)
      let isReal = Stage.current.isReal && host == "httpbin.org"
      #expect(isReal == lines[0].hasPrefix("gunicorn"))
      #expect(host != "httpbin.org" || lines[1] == "https://httpbin.org/get")
    }

    /// httpbin echoes what the server in front has recorded.
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
      let request = try await scene.request()
      #expect(request.body == Array(body))
      #expect(request.target == "/anything/a%20b?x=1&y=%2F")
    }
  }
}

private actor Plays {
  var stages: [Stage] = []
  func add(_ stage: Stage) { stages.append(stage) }
}
