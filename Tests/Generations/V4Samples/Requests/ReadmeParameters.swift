import AlamofireV4
import Foundation
import HTTPTestServer
import Testing

// The README of 4.x: parameter encoding, header fields, authentication.

private struct JSONStringArrayEncoding: ParameterEncoding {
  private let array: [String]

  init(array: [String]) {
    self.array = array
  }

  func encode(_ urlRequest: URLRequestConvertible, with parameters: Parameters?) throws -> URLRequest {
    // The document writes `urlRequest.urlRequest`, as if it were not optional; that never compiled.
    var urlRequest = try urlRequest.asURLRequest()

    let data = try JSONSerialization.data(withJSONObject: array, options: [])

    if urlRequest.value(forHTTPHeaderField: "Content-Type") == nil {
      urlRequest.setValue("application/json", forHTTPHeaderField: "Content-Type")
    }

    urlRequest.httpBody = data

    return urlRequest
  }
}

extension Samples {
  @Suite struct ReadmeParameters {
    let environment: SampleEnvironment
    init() throws { environment = try SampleEnvironment.set() }

    @Test func getRequestWithURLEncodedParameters() async throws {
      let parameters: Parameters = ["foo": "bar"]

      // All three of these calls are equivalent
      // encoding defaults to `URLEncoding.default`
      Alamofire.request("https://httpbin.org/get", parameters: parameters)
      Alamofire.request("https://httpbin.org/get", parameters: parameters, encoding: URLEncoding.default)
      Alamofire.request(
        "https://httpbin.org/get", parameters: parameters,
        encoding: URLEncoding(destination: .methodDependent))

      // https://httpbin.org/get?foo=bar
      #expect(try await environment.requests(3).map(\.target) == Array(repeating: "/get?foo=bar", count: 3))
    }

    @Test func postRequestWithURLEncodedParameters() async throws {
      let parameters: Parameters = [
        "foo": "bar",
        "baz": ["a", 1],
        "qux": [
          "x": 1,
          "y": 2,
          "z": 3,
        ],
      ]

      // All three of these calls are equivalent. The document omits `method: .post`, without which they are not a POST.
      Alamofire.request("https://httpbin.org/post", method: .post, parameters: parameters)
      Alamofire.request(
        "https://httpbin.org/post", method: .post, parameters: parameters, encoding: URLEncoding.default)
      Alamofire.request(
        "https://httpbin.org/post", method: .post, parameters: parameters, encoding: URLEncoding.httpBody)

      // HTTP body: foo=bar&baz[]=a&baz[]=1&qux[x]=1&qux[y]=2&qux[z]=3, in the order of the keys, escaped.
      for request in try await environment.requests(3) {
        #expect(
          request.bodyText.removingPercentEncoding
            == "baz[]=a&baz[]=1&foo=bar&qux[x]=1&qux[y]=2&qux[z]=3")
        #expect(request.header("Content-Type") == "application/x-www-form-urlencoded; charset=utf-8")
      }
    }

    @Test func postRequestWithJSONEncodedParameters() async throws {
      let parameters: Parameters = [
        "foo": [1, 2, 3],
        "bar": [
          "baz": "qux"
        ],
      ]

      // Both calls are equivalent
      Alamofire.request(
        "https://httpbin.org/post", method: .post, parameters: parameters, encoding: JSONEncoding.default)
      Alamofire.request(
        "https://httpbin.org/post", method: .post, parameters: parameters, encoding: JSONEncoding(options: [])
      )

      // HTTP body: {"foo": [1, 2, 3], "bar": {"baz": "qux"}}
      for request in try await environment.requests(2) {
        #expect(request.json == ["foo": [1, 2, 3], "bar": ["baz": "qux"]] as NSDictionary)
        #expect(request.header("Content-Type") == "application/json")
      }
    }

    @Test func customEncoding() async throws {
      Alamofire.request(
        "https://httpbin.org/post", method: .post, encoding: JSONStringArrayEncoding(array: ["a", "b"]))

      let request = try await environment.request()
      #expect(request.bodyText == #"["a","b"]"#)
      #expect(request.header("Content-Type") == "application/json")
    }

    @Test func manualParameterEncoding() throws {
      let url = URL(string: "https://httpbin.org/get")!
      let urlRequest = URLRequest(url: url)

      let parameters: Parameters = ["foo": "bar"]
      let encodedURLRequest = try URLEncoding.queryString.encode(urlRequest, with: parameters)

      #expect(encodedURLRequest.url?.absoluteString == "https://httpbin.org/get?foo=bar")
    }

    @Test func headers() async throws {
      let headers: HTTPHeaders = [
        "Authorization": "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
        "Accept": "application/json",
      ]

      Alamofire.request("https://httpbin.org/headers", headers: headers).responseJSON { response in
        debugPrint(response)
      }

      #expect(await printed()[0].contains("SUCCESS"))
      let request = try await environment.request()
      #expect(request.header("Authorization") == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
      #expect(request.header("Accept") == "application/json")
      // What the document lists as the default header fields.
      #expect(request.header("Accept-Encoding") == "gzip;q=1.0, compress;q=0.5")
      #expect(request.header("Accept-Language")?.hasSuffix("q=1.0") == true)
      #expect(request.header("User-Agent")?.contains("Alamofire") == true)
    }

    @Test func basicAuthentication() async throws {
      let user = "user"
      let password = "password"

      Alamofire.request("https://httpbin.org/basic-auth/\(user)/\(password)")
        .authenticate(user: user, password: password)
        .responseJSON { response in
          debugPrint(response)
        }

      #expect(await printed()[0].contains("authenticated"))
      // The first request goes without, and the challenge of the server is answered.
      let requests = try await environment.requests(2)
      #expect(requests[0].header("Authorization") == nil)
      #expect(requests[1].header("Authorization") == "Basic dXNlcjpwYXNzd29yZA==")
    }

    @Test func authorizationHeader() async throws {
      let user = "user"
      let password = "password"

      var headers: HTTPHeaders = [:]

      if let authorizationHeader = Request.authorizationHeader(user: user, password: password) {
        headers[authorizationHeader.key] = authorizationHeader.value
      }

      Alamofire.request("https://httpbin.org/basic-auth/user/password", headers: headers)
        .responseJSON { response in
          debugPrint(response)
        }

      #expect(await printed()[0].contains("authenticated"))
      #expect(try await environment.request().header("Authorization") == "Basic dXNlcjpwYXNzd29yZA==")
      #expect(environment.server.requestCount == 1)
    }

    @Test func authenticationWithACredential() async throws {
      let user = "user"
      let password = "password"

      let credential = URLCredential(user: user, password: password, persistence: .forSession)

      Alamofire.request("https://httpbin.org/basic-auth/\(user)/\(password)")
        .authenticate(usingCredential: credential)
        .responseJSON { response in
          debugPrint(response)
        }

      #expect(await printed()[0].contains("authenticated"))
    }
  }
}
