import AlamofireV4
import HTTPTestServer
import Testing

// The README of 4.x: making requests, handling responses, validation. Where it prints an optional value within a text,
// `String(describing:)` says so.

extension Samples {
  @Suite struct ReadmeRequests {
    let environment: SampleEnvironment
    init() throws { environment = try SampleEnvironment.set() }

    @Test func makingARequest() async throws {
      Alamofire.request("https://httpbin.org/get")

      let request = try await environment.request()
      #expect(request.method == "GET")
      #expect(request.path == "/get")
    }

    @Test func responseHandling() async throws {
      Alamofire.request("https://httpbin.org/get").responseJSON { response in
        print(response.request)  // original URL request
        print(response.response)  // HTTP URL response
        print(response.data)  // server data
        print(response.result)  // result of response serialization

        if let JSON = response.result.value {
          print("JSON: \(JSON)")
        }
      }

      let lines = await printed(5)
      #expect(lines[0].contains("https://httpbin.org/get"))
      #expect(lines[1].contains("200"))
      #expect(lines[2].contains("bytes"))
      #expect(lines[3] == "SUCCESS")
      #expect(lines[4].hasPrefix("JSON: "))
    }

    @Test func responseHandler() async throws {
      Alamofire.request("https://httpbin.org/get").response { response in
        print("Request: \(String(describing: response.request))")
        print("Response: \(String(describing: response.response))")
        print("Error: \(String(describing: response.error))")

        if let data = response.data, let utf8Text = String(data: data, encoding: .utf8) {
          print("Data: \(utf8Text)")
        }
      }

      let lines = await printed(4)
      #expect(lines[0].contains("https://httpbin.org/get"))
      #expect(lines[2] == "Error: nil")
      #expect(lines[3].contains("\"url\""))
    }

    @Test func responseDataHandler() async throws {
      Alamofire.request("https://httpbin.org/get").responseData { response in
        debugPrint("All Response Info: \(response)")

        if let data = response.result.value, let utf8Text = String(data: data, encoding: .utf8) {
          print("Data: \(utf8Text)")
        }
      }

      let lines = await printed(2)
      #expect(lines[0].contains("All Response Info: SUCCESS"))
      #expect(lines[1].contains("\"url\""))
    }

    @Test func responseStringHandler() async throws {
      Alamofire.request("https://httpbin.org/get").responseString { response in
        print("Success: \(response.result.isSuccess)")
        print("Response String: \(String(describing: response.result.value))")
      }

      let lines = await printed(2)
      #expect(lines[0] == "Success: true")
      #expect(lines[1].contains("https://httpbin.org/get"))
    }

    @Test func responseJSONHandler() async throws {
      Alamofire.request("https://httpbin.org/get").responseJSON { response in
        debugPrint(response)

        if let json = response.result.value {
          print("JSON: \(json)")
        }
      }

      let lines = await printed(2)
      for part in ["[Request]:", "[Response]:", "[Data]:", "[Result]: SUCCESS", "[Timeline]: Timeline"] {
        #expect(lines[0].contains(part))
      }
      #expect(lines[1].hasPrefix("JSON: "))
    }

    @Test func chainedHandlers() async throws {
      Alamofire.request("https://httpbin.org/get")
        .responseString { response in
          print("Response String: \(String(describing: response.result.value))")
        }
        .responseJSON { response in
          print("Response JSON: \(String(describing: response.result.value))")
        }

      let lines = await printed(2)
      #expect(lines[0].hasPrefix("Response String: Optional("))
      #expect(lines[1].hasPrefix("Response JSON: Optional("))
      #expect(environment.server.requestCount == 1)
    }

    @Test func handlersOnAQueue() async throws {
      let utilityQueue = DispatchQueue.global(qos: .utility)

      Alamofire.request("https://httpbin.org/get").responseJSON(queue: utilityQueue) { response in
        print("Executing response handler on utility queue")
        print("\(Thread.isMainThread)")
      }

      #expect(await printed(2) == ["Executing response handler on utility queue", "false"])
    }

    @Test(arguments: ["get", "status/404", "html"])
    func manualValidation(path: String) async throws {
      Alamofire.request("https://httpbin.org/\(path)")
        .validate(statusCode: 200..<300)
        .validate(contentType: ["application/json"])
        .responseData { response in
          switch response.result {
          case .success:
            print("Validation Successful")
          case .failure(let error):
            print(error)
          }
        }

      let line = await printed()[0]
      switch path {
      case "get": #expect(line == "Validation Successful")
      case "html": #expect(line.contains("unacceptableContentType"))
      default: #expect(line.contains("404"))
      }
    }

    @Test(arguments: ["get", "status/500"])
    func automaticValidation(path: String) async throws {
      Alamofire.request("https://httpbin.org/\(path)").validate().responseJSON { response in
        switch response.result {
        case .success:
          print("Validation Successful")
        case .failure(let error):
          print(error)
        }
      }

      let line = await printed()[0]
      #expect(path == "get" ? line == "Validation Successful" : line.contains("500"))
    }

    @Test func methods() async throws {
      Alamofire.request("https://httpbin.org/get")  // method defaults to `.get`
      #expect(try await environment.request().method == "GET")
      Alamofire.request("https://httpbin.org/post", method: .post)
      #expect(try await environment.request().method == "POST")
      Alamofire.request("https://httpbin.org/put", method: .put)
      #expect(try await environment.request().method == "PUT")
      Alamofire.request("https://httpbin.org/delete", method: .delete)
      #expect(try await environment.request().method == "DELETE")
    }

    // The document lists the enum itself.
    @Test func theEnumOfMethods() {
      let methods: [HTTPMethod] = [.options, .get, .head, .post, .put, .patch, .delete, .trace, .connect]
      #expect(
        methods.map(\.rawValue) == [
          "OPTIONS", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT",
        ])
    }
  }
}
