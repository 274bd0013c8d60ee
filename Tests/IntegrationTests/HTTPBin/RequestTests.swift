import Alamofire
import Testing

/// Sent requests, as httpbin echoes them.
@Suite(.needsHTTPBin, .timeLimit(.minutes(5))) struct RequestTests {
  @Test("Each method is received with its query", arguments: ["get", "post", "put", "patch", "delete"])
  func query(name: String) async throws {
    let server = try await HTTPBinServer.shared
    let response = await AF.request(
      server.url("/\(name)"), method: HTTPMethod(rawValue: name.uppercased()),
      parameters: ["a": "1 & 2", "ü": "é"],
      encoding: URLEncoding.queryString
    ).validate().serializingDecodable(Echo.self).response
    #expect(response.response?.statusCode == 200)
    #expect(try response.result.get().args == ["a": "1 & 2", "ü": "é"])
  }

  @Test(
    "The method is sent unchanged",
    arguments: [HTTPMethod.get, .post, .put, .patch, .delete, .options, HTTPMethod(rawValue: "TRACE")])
  func method(method: HTTPMethod) async throws {
    let server = try await HTTPBinServer.shared
    let path = method == .options ? "/get" : "/anything"
    let response = await AF.request(server.url(path), method: method).serializingData(
      emptyResponseCodes: [200]
    ).response
    if method == .options {
      #expect(response.response?.headers["Allow"]?.contains("OPTIONS") == true)
    } else {
      let echo = try JSONDecoder().decode(Echo.self, from: try response.result.get())
      #expect(echo.method == method.rawValue)
    }
  }

  @Test("A response to HEAD has no body") func head() async throws {
    let server = try await HTTPBinServer.shared
    let response = await AF.request(server.url("/get"), method: .head).serializingData().response
    #expect(response.response?.statusCode == 200)
    #expect(response.value == Data())
    #expect(Int(response.response?.headers["Content-Length"] ?? "") ?? 0 > 0)
  }

  @Test("Header fields are sent unchanged") func headers() async throws {
    let server = try await HTTPBinServer.shared
    let headers: HTTPHeaders = [
      "X-One": "first, second", "Accept": "application/json", "X-Empty": "", "X-Quoted": "a=\"b;c\"; d",
    ]
    let echo = try await AF.request(server.url("/headers"), headers: headers)
      .serializingDecodable([String: [String: String]].self).value["headers"]
    #expect(echo?["X-One"] == "first, second")
    #expect(echo?["Accept"] == "application/json")
    #expect(echo?["X-Empty"] == "")
    #expect(echo?["X-Quoted"] == "a=\"b;c\"; d")
    #expect(echo?["User-Agent"]?.contains("Alamofire/") == true)
    #expect(echo?["Accept-Encoding"] == HTTPHeader.defaultAcceptEncoding.value)
  }

  @Test("Cookies of a header field are sent") func cookies() async throws {
    let server = try await HTTPBinServer.shared
    let cookies = try await AF.request(server.url("/cookies"), headers: ["Cookie": "session=abc; theme=dark"])
      .serializingDecodable([String: [String: String]].self).value
    #expect(cookies["cookies"] == ["session": "abc", "theme": "dark"])
  }

  @Test("A body is sent with its length") func body() async throws {
    let server = try await HTTPBinServer.shared
    var request = URLRequest(url: try #require(URL(string: server.url("/post"))))
    request.method = .post
    request.headers = [.contentType("application/octet-stream")]
    request.httpBody = Data(repeating: 0x61, count: 300_000)
    let echo = try await AF.request(request).serializingDecodable(Echo.self).value
    #expect(echo.data == String(repeating: "a", count: 300_000))
    #expect(echo.header("Content-Length") == "300000")
  }

  @Test("Basic credentials are sent after the challenge") func basic() async throws {
    let server = try await HTTPBinServer.shared
    let url = server.url("/basic-auth/anna/s%C3%A9same")
    let response = await AF.request(url).authenticate(username: "anna", password: "sésame")
      .validate().serializingDecodable(Permit.self).response
    #expect(try response.result.get() == Permit(authenticated: true, user: "anna"))
    #expect(response.metrics?.transactionMetrics.count == 2)
  }

  @Test("Wrong and missing credentials end with a status that validation refuses") func wrongCredentials()
    async throws
  {
    let server = try await HTTPBinServer.shared
    let url = server.url("/basic-auth/anna/secret")
    let wrong = await AF.request(url).authenticate(username: "anna", password: "guess")
      .validate().serializingData().response
    #expect(wrong.error?.responseCode == 401)
    let missing = await AF.request(url).validate().serializingData().response
    #expect(missing.error?.responseCode == 401)
    let written = await AF.request(url, headers: [.authorization(username: "anna", password: "secret")])
      .validate().serializingData().response
    #expect(written.response?.statusCode == 200)
    let bearer = try await AF.request(server.url("/bearer"), headers: [.authorization(bearerToken: "t0ken")])
      .serializingDecodable([String: JSONValue].self).value
    #expect(bearer["token"] == .string("t0ken"))
  }

  private struct Permit: Decodable, Equatable {
    let authenticated: Bool
    let user: String
  }
}
