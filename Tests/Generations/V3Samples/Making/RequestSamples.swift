import AlamofireV3
import HTTPTestServer
import Testing

extension Samples {
  @Suite struct Requests {
    let site: Site

    init() throws { site = try Site() }

    // Making a Request
    @Test func sample01_makingARequest() async throws {
      Alamofire.request(.GET, "https://httpbin.org/get")

      #expect(try await site.request().target == "/get")
    }

    // Response Handling
    @Test func sample02_responseHandling() async throws {
      let json: Any? = await waiting { done in
        Alamofire.request(.GET, "https://httpbin.org/get", parameters: ["foo": "bar"])
          .responseJSON { response in
            print(response.request as Any)  // original URL request
            print(response.response as Any)  // URL response
            print(response.data as Any)  // server data
            print(response.result)  // result of response serialization

            if let JSON = response.result.value {
              print("JSON: \(JSON)")
            }
            done(response.result.value)
          }
      }

      #expect(value("args.foo", of: json) == "bar")
      #expect(value("url", of: json) == "https://httpbin.org/get?foo=bar")
    }

    // HTTP Methods
    @Test func sample09_methods() {
      let all: [Alamofire.Method] = [
        .OPTIONS, .GET, .HEAD, .POST, .PUT, .PATCH, .DELETE, .TRACE, .CONNECT,
      ]
      #expect(
        all.map(\.rawValue).joined(separator: " ")
          == "OPTIONS GET HEAD POST PUT PATCH DELETE TRACE CONNECT")
    }

    @Test func sample10_methodsOfRequests() async throws {
      Alamofire.request(.POST, "https://httpbin.org/post")

      Alamofire.request(.PUT, "https://httpbin.org/put")

      Alamofire.request(.DELETE, "https://httpbin.org/delete")

      var lines: [String] = []
      for _ in 1...3 {
        let request = try await site.request()
        lines.append("\(request.method) \(request.target)")
      }
      #expect(lines.sorted() == ["DELETE /delete", "POST /post", "PUT /put"])
    }

    // Parameters
    @Test func sample11_GETWithParameters() async throws {
      Alamofire.request(.GET, "https://httpbin.org/get", parameters: ["foo": "bar"])
      // https://httpbin.org/get?foo=bar

      #expect(try await site.request().target == "/get?foo=bar")
    }

    @Test func sample12_POSTWithURLEncodedParameters() async throws {
      let parameters: [String: Any] = [
        "foo": "bar",
        "baz": ["a", 1],
        "qux": [
          "x": 1,
          "y": 2,
          "z": 3,
        ],
      ]

      Alamofire.request(.POST, "https://httpbin.org/post", parameters: parameters)
      // HTTP body: foo=bar&baz[]=a&baz[]=1&qux[x]=1&qux[y]=2&qux[z]=3

      // The document shows the body without escapes. Names are sorted in every generation.
      let body = try await site.request().bodyText
      #expect(
        body.removingPercentEncoding == "baz[]=a&baz[]=1&foo=bar&qux[x]=1&qux[y]=2&qux[z]=3")
    }

    // Parameter Encoding: the cases, whose declaration the document prints.
    @Test func sample13_parameterEncodings() {
      let custom: (any URLRequestConvertible, [String: Any]?) -> (NSMutableURLRequest, NSError?) = {
        request, _ in
        (request.URLRequest, nil)
      }
      let all: [ParameterEncoding] = [
        .URL, .URLEncodedInURL, .JSON, .PropertyList(format: .xml, options: 0), .Custom(custom),
      ]
      let request = NSURLRequest(url: URL(string: "https://httpbin.org/post")!)
      let urls = all.map { $0.encode(request, parameters: ["a": 1]).0.url?.query }
      #expect(urls == ["a=1", "a=1", nil, nil, nil])
    }

    @Test func sample14_manualParameterEncoding() {
      let URL = NSURL(string: "https://httpbin.org/get")!
      var request = NSMutableURLRequest(url: URL as Foundation.URL)

      let parameters = ["foo": "bar"]
      let encoding = Alamofire.ParameterEncoding.URL
      (request, _) = encoding.encode(request, parameters: parameters)

      #expect(request.url?.absoluteString == "https://httpbin.org/get?foo=bar")
    }

    @Test func sample15_POSTWithJSONParameters() async throws {
      let parameters: [String: Any] = [
        "foo": [1, 2, 3],
        "bar": [
          "baz": "qux"
        ],
      ]

      Alamofire.request(.POST, "https://httpbin.org/post", parameters: parameters, encoding: .JSON)
      // HTTP body: {"foo": [1, 2, 3], "bar": {"baz": "qux"}}

      let request = try await site.request()
      #expect(request.header("Content-Type") == "application/json")
      let json = try JSONSerialization.jsonObject(with: Data(request.body)) as? [String: Any]
      #expect(json?["foo"] as? [Int] == [1, 2, 3])
      #expect(json?["bar"] as? [String: String] == ["baz": "qux"])
    }

    // HTTP Headers
    @Test func sample16_headers() async throws {
      let json: Any? = await waiting { done in
        let headers = [
          "Authorization": "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
          "Content-Type": "application/x-www-form-urlencoded",
        ]

        Alamofire.request(.GET, "https://httpbin.org/get", headers: headers)
          .responseJSON { response in
            debugPrint(response)
            done(response.result.value)
          }
      }

      #expect(value("headers.Authorization", of: json) == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
      #expect(value("headers.Content-Type", of: json) == "application/x-www-form-urlencoded")
    }
  }
}
