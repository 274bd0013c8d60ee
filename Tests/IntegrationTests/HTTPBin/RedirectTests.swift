import Alamofire
import Testing

@Suite(.needsHTTPBin, .timeLimit(.minutes(5))) struct RedirectTests {
  @Test(
    "A chain of redirects is followed", arguments: ["redirect", "relative-redirect", "absolute-redirect"])
  func chain(kind: String) async throws {
    let server = try await HTTPBinServer.shared
    let response = await AF.request(server.url("/\(kind)/4")).validate().serializingDecodable(Echo.self)
      .response
    #expect(try response.result.get().url == server.url("/get"))
    #expect(response.response?.url?.path == "/get")
    #expect(response.metrics?.redirectCount == 4)
    #expect(response.metrics?.transactionMetrics.count == 5)
  }

  @Test(
    "The method after a redirect of a POST depends on the status",
    arguments: [(301, "GET"), (302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")])
  func methods(status: Int, method: String) async throws {
    let server = try await HTTPBinServer.shared
    let target = try #require(
      "/anything?from=\(status)".addingPercentEncoding(withAllowedCharacters: .alphanumerics))
    let echo = try await AF.request(
      server.url("/redirect-to?url=\(target)&status_code=\(status)"), method: .post,
      parameters: ["name": "Zoë"]
    ).validate().serializingDecodable(Echo.self).value
    #expect(echo.method == method)
    #expect(echo.args == ["from": Values(stringLiteral: "\(status)")])
    #expect(echo.form == (method == "POST" ? ["name": "Zoë"] : [:]))
    #expect((echo.header("Content-Type") != nil) == (method == "POST"))
  }

  @Test("A large body is sent again after a redirect") func largeBody() async throws {
    let server = try await HTTPBinServer.shared
    var request = URLRequest(
      url: try #require(URL(string: server.url("/redirect-to?url=%2Fanything&status_code=307"))))
    request.method = .put
    request.httpBody = Data(repeating: 0x7A, count: 200_000)
    request.headers = [.contentType("text/plain")]
    let echo = try await AF.request(request).serializingDecodable(Echo.self).value
    #expect(echo.method == "PUT")
    #expect(echo.data?.utf8.count == 200_000)
  }

  @Test("An endless chain of redirects ends with an error") func endlessChain() async throws {
    let server = try await HTTPBinServer.shared
    let response = await AF.request(server.url("/redirect/21")).serializingData().response
    #expect((response.error?.underlyingError as? URLError)?.code == .httpTooManyRedirects)
    #expect(response.response?.statusCode == 302)
  }
}
