import Alamofire
import HTTPTestServer
import Testing

#if IMPORTS_FOUNDATION
  import Foundation
#endif
#if IMPORTS_FOUNDATION_NETWORKING
  import FoundationNetworking
#endif

#if swift(<6)
  typealias SearchParameters = [String: Any]
#else
  typealias SearchParameters = [String: any Any & Sendable]
#endif

/// Calls from tutorials for the first releases of this generation, and their printed results.
@Suite("Calls from tutorials", .timeLimit(.minutes(5))) struct WalkthroughTests {
  let server: HTTPTestServer

  init() throws { server = try HTTPTestServer() }

  private func response(_ request: DataRequest) async -> AFDataResponse<Data> {
    await withCheckedContinuation { continuation in
      request.responseData(queue: DispatchQueue.global()) { (responseData) in
        continuation.resume(returning: responseData)
      }
    }
  }

  @Test("A dictionary of any values becomes the query") func search() async throws {
    let url = server.url("/get")
    let parameters: SearchParameters = ["code": "utf-8", "q": "袜子", "page": 2, "all": true]
    let request = AF.request(url, method: .get, parameters: parameters).validate(statusCode: [200])
    let responseData = await response(request)
    switch responseData.result {
    case .success(let data):
      guard let text = String(data: data, encoding: .utf8) else { return }
      #expect(text.contains("/get"))
    case .failure(let error):
      Issue.record("\(error)")
    }
    #expect(request.request?.url?.query == "all=1&code=utf-8&page=2&q=%E8%A2%9C%E5%AD%90")
  }

  @Test("A URL value without parameters is requested") func noParameters() async {
    let url = server.url("/get?code=utf-8&q=%E8%A2%9C%E5%AD%90")
    let request = AF.request(url, method: .get, parameters: nil)
    #expect(await response(request).error == nil)
    // A code in a query may be a secret, such as the code of OAuth 2.0.
    let shown = server.url("/get?code=redacted&q=%E8%A2%9C%E5%AD%90")
    #expect(request.description == "GET \(shown) (200)")
  }

  @Test("An unacceptable status prints its error") func wrongStatus() async {
    let url = server.url("/get")
    let response = await response(AF.request(url).validate(statusCode: [201]))
    guard let error = response.error else {
      Issue.record("201 was acceptable, and 200 came")
      return
    }
    let printed =
      "responseValidationFailed(reason: unacceptableStatusCode(code: 200)): "
      + "The status code of the response is not accepted: 200."
    let exchange = "GET \(url) (200, application/json, \(response.data?.count ?? 0) bytes: \"{"
    #expect("\(error)" == printed)
    #expect(response.description.hasPrefix("failure(AFError.\(printed))\n\(exchange)"))
    #expect(response.debugDescription.hasSuffix("[Result]: failure(AFError.\(printed))"))
    #expect(error.localizedDescription.contains("200"))
  }

  @Test("A response prints its request, status and body") func printing() async {
    let url = server.url("/get")
    let response = await response(AF.request(url, headers: ["X-Walk": "through"]))
    let lines = response.debugDescription.components(separatedBy: "\n")
    #expect(response.description == "success(\(response.data?.count ?? 0) bytes)")
    #expect(lines.first == "[Request]: GET \(url)")
    #expect(lines.contains("        X-Walk: through"))
    #expect(lines.contains("    [Status Code]: 200"))
    #expect(lines.contains { $0.hasPrefix("[Network Duration]: ") && $0 != "[Network Duration]: None" })
    #expect(lines.contains { $0.hasPrefix("[Serialization Duration]: ") && $0.hasSuffix("s") })
  }

  @Test("Parameters are encoded as a form and as JSON in the body") func bodies() async throws {
    let parameters: SearchParameters = ["foo": [1, 2], "bar": ["baz": "qux"]]
    let form = AF.request(server.url("/post"), method: .post, parameters: parameters)
    #expect(await response(form).error == nil)
    #expect(
      form.request?.httpBody == Data("bar%5Bbaz%5D=qux&foo%5B%5D=1&foo%5B%5D=2".utf8))
    #expect(
      form.request?.headers["Content-Type"] == "application/x-www-form-urlencoded; charset=utf-8")
    let json = AF.request(
      server.url("/post"), method: .post, parameters: parameters, encoding: JSONEncoding.default)
    #expect(await response(json).error == nil)
    #expect(json.request?.headers["Content-Type"] == "application/json")
  }

  @Test("A literal is a dictionary of any values; a variable is a value of its type") func overloads() async {
    let typed = ["b": ["y", "a"]]
    let literal = AF.request(server.url("/get"), parameters: ["b": ["y", "a"]])
    let variable = AF.request(server.url("/get"), parameters: typed)
    _ = await response(literal)
    _ = await response(variable)
    #expect(literal.request?.url?.query == "b%5B%5D=y&b%5B%5D=a")
    #expect(variable.request?.url?.query == "b%5B%5D=a&b%5B%5D=y")
  }

  @Test("The default header fields are sent") func defaultHeaders() async throws {
    _ = await response(AF.request(server.url("/headers")))
    let sent = server.recordedRequests.first?.headers.map(\.name) ?? []
    #expect(["Accept", "Accept-Encoding", "Accept-Language", "Host", "User-Agent"].allSatisfy(sent.contains))
    #expect(HTTPHeaders.default.map(\.name) == ["Accept-Encoding", "Accept-Language", "User-Agent"])
  }

  @Test("A request returns its states") func states() async {
    // The delay is longer than the test.
    let request = AF.request(server.url("/delay/60"))
    #expect(request.isInitialized)
    request.suspend()
    #expect(request.isSuspended)
    request.resume()
    #expect(request.isResumed)
    request.cancel()
    #expect(request.isCancelled)
    #expect(await response(request).error?.isExplicitlyCancelledError == true)
  }
}
