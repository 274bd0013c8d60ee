import AlamofireV3
import HTTPTestServer
import Testing

extension Samples {
  @Suite struct Responses {
    let site: Site

    init() throws { site = try Site() }

    // Built-in Response Methods: the list, as calls.
    @Test func sample03_builtInResponseMethods() async {
      var names: [String] = []
      let all: [String] = await waiting { done in
        Alamofire.request(.GET, "https://httpbin.org/get")
          .response { _, _, _, _ in names.append("response") }
          .responseData { _ in names.append("responseData") }
          .responseString(encoding: .utf8) { _ in names.append("responseString") }
          .responseJSON(options: .allowFragments) { _ in names.append("responseJSON") }
          .responsePropertyList(options: []) { _ in
            names.append("responsePropertyList")
            done(names)
          }
      }
      #expect(
        all == ["response", "responseData", "responseString", "responseJSON", "responsePropertyList"])
    }

    // Response Handler
    @Test func sample04_response() async {
      let (status, count, failed): (Int?, Int?, Bool) = await waiting { done in
        Alamofire.request(.GET, "https://httpbin.org/get", parameters: ["foo": "bar"])
          .response { request, response, data, error in
            print(request as Any)
            print(response as Any)
            print(data as Any)
            print(error as Any)
            done((response?.statusCode, data?.count, error != nil))
          }
      }

      #expect(status == 200 && count != 0 && count != nil && !failed)
    }

    // Response Data Handler
    @Test func sample05_responseData() async {
      let data: Data? = await waiting { done in
        Alamofire.request(.GET, "https://httpbin.org/get", parameters: ["foo": "bar"])
          .responseData { response in
            print(response.request as Any)
            print(response.response as Any)
            print(response.result)
            done(response.result.value)
          }
      }

      #expect(data?.isEmpty == false)
    }

    // Response String Handler
    @Test func sample06_responseString() async {
      let text: String? = await waiting { done in
        Alamofire.request(.GET, "https://httpbin.org/get")
          .responseString { response in
            print("Success: \(response.result.isSuccess)")
            print("Response String: \(response.result.value as Any)")
            done(response.result.isSuccess ? response.result.value : nil)
          }
      }

      #expect(text?.contains("https://httpbin.org/get") == true)
    }

    // Response JSON Handler
    @Test func sample07_responseJSON() async {
      let text: String = await waiting { done in
        Alamofire.request(.GET, "https://httpbin.org/get")
          .responseJSON { response in
            debugPrint(response)
            done(response.debugDescription)
          }
      }

      #expect(text.contains("[Result]: SUCCESS: "))
      #expect(text.contains("\"Total Duration\""))
    }

    // Chained Response Handlers
    @Test func sample08_chainedHandlers() async {
      var order: [String] = []
      let all: [String] = await waiting { done in
        Alamofire.request(.GET, "https://httpbin.org/get")
          .responseString { response in
            print("Response String: \(response.result.value as Any)")
            order.append("string \(response.result.isSuccess)")
          }
          .responseJSON { response in
            print("Response JSON: \(response.result.value as Any)")
            order.append("JSON \(response.result.isSuccess)")
            done(order)
          }
      }

      #expect(all == ["string true", "JSON true"])
    }

    // Manual Validation
    @Test func sample28_manualValidation() async {
      let (status, error): (Int?, NSError?) = await waiting { done in
        Alamofire.request(.GET, "https://httpbin.org/get", parameters: ["foo": "bar"])
          .validate(statusCode: 200..<300)
          .validate(contentType: ["application/json"])
          .response { response in
            print(response)
            done((response.response?.statusCode, response.error))
          }
      }

      #expect(status == 200 && error == nil)
    }

    // Automatic Validation
    @Test func sample29_automaticValidation() async {
      let line: String = await waiting { done in
        Alamofire.request(.GET, "https://httpbin.org/get", parameters: ["foo": "bar"])
          .validate()
          .responseJSON { response in
            switch response.result {
            case .Success:
              print("Validation Successful")
              done("successful")
            case .Failure(let error):
              print(error)
              done("\(error)")
            }
          }
      }

      #expect(line == "successful")
    }

    // Printable
    @Test func sample30_printable() async {
      let request = Alamofire.request(.GET, "https://httpbin.org/ip")

      print(request)
      // GET https://httpbin.org/ip (200)

      let text: String = await waiting { done in request.response { _, _, _, _ in done("\(request)") } }
      #expect(text == "GET https://httpbin.org/ip (200)")
    }

    // DebugPrintable
    @Test func sample31_debugPrintable() async throws {
      let request = Alamofire.request(.GET, "https://httpbin.org/get", parameters: ["foo": "bar"])

      debugPrint(request)

      let lines = request.debugDescription.components(separatedBy: " \\\n\t")
      #expect(lines.first == "$ curl -i")
      #expect(lines.last == "\"https://httpbin.org/get?foo=bar\"")
      let fields = lines.dropFirst().dropLast()
      #expect(fields.contains { $0.hasPrefix("-H \"User-Agent: ") && $0.contains("Alamofire") })
      #expect(fields.contains("-H \"Accept-Encoding: gzip;q=1.0, compress;q=0.5\""))
      #expect(fields.contains { $0.hasPrefix("-H \"Accept-Language: ") })
      #expect(fields.count == 3)
      #expect(try await site.request().target == "/get?foo=bar")
    }
  }
}
