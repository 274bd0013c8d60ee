import AlamofireV4
import Foundation
import HTTPTestServer
import Testing

// The guide for the migration from 3.x to 4.x (seed 003): its samples of 4.x. Some lost arguments in the text.

private let urlString = "https://httpbin.org/get"
private let customError = CocoaError(.coderInvalidValue)
private let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
  "guide-\(UUID().uuidString)")

extension Samples {
  @Suite struct MigrationGuide {
    let environment: SampleEnvironment
    init() throws { environment = try SampleEnvironment.set() }

    @Test func simpleDataRequest() async {
      Alamofire.request(urlString).response { response in  // method defaults to `.get`
        debugPrint(response)
      }

      #expect(await printed()[0].contains(urlString))
    }

    @Test func complexDataRequest() async throws {
      let parameters: Parameters = ["foo": "bar"]

      Alamofire.request(urlString, method: .get, parameters: parameters, encoding: JSONEncoding.default)
        .downloadProgress(queue: DispatchQueue.global(qos: .utility)) { progress in
          _ = progress.fractionCompleted
        }
        .validate { request, response, data in
          // Custom evaluation closure now includes data
          return .success
        }
        .responseJSON { response in
          debugPrint(response)
        }

      #expect(await printed()[0].contains("SUCCESS"))
      // A GET with a body, as 4.x sent it.
      #expect(try await environment.request().bodyText == #"{"foo":"bar"}"#)
    }

    private var destination: DownloadRequest.DownloadFileDestination {
      let fileURL = folder.appendingPathComponent("file")
      return { _, _ in
        return (fileURL, [.createIntermediateDirectories, .removePreviousFile])
      }
    }

    @Test func downloads() async throws {
      let destination = destination
      Alamofire.download(urlString, to: destination).response { response in  // defaults to `.get` method
        print(response.request)
        print(response.response)
        print(response.temporaryURL)
        print(response.destinationURL)
        print(response.error)
      }
      var lines = await printed(5)
      #expect(lines[3].hasSuffix("/file"))
      #expect(lines[4] == "nil")

      let urlRequest = URLRequest(url: URL(string: urlString)!)
      Alamofire.download(urlRequest, to: destination).validate().responseData { response in
        debugPrint(response)
        print(response.temporaryURL)
        print(response.destinationURL)
      }
      lines = await printed(3)
      #expect(lines[0].contains("SUCCESS"))
      #expect(lines[2].hasSuffix("/file"))

      let parameters: Parameters = ["foo": "bar"]
      Alamofire.download(
        urlString, method: .get, parameters: parameters, encoding: JSONEncoding.default, to: destination
      )
      .downloadProgress(queue: DispatchQueue.global(qos: .utility)) { progress in
        _ = progress.fractionCompleted
      }
      .validate { request, response, temporaryURL, destinationURL in
        // Custom evaluation closure now includes file URLs
        return .success
      }
      .responseJSON { response in
        debugPrint(response)
        print(response.temporaryURL)
        print(response.destinationURL)
      }
      lines = await printed(3)
      #expect(lines[0].contains("SUCCESS"))

      let request = Alamofire.download(urlString).responseData { response in
        print("Temporary URL: \(String(describing: response.temporaryURL))")
      }
      #expect(await printed()[0].hasPrefix("Temporary URL: Optional(file:"))
      await removeFile(of: request)
      try FileManager.default.removeItem(at: folder)
    }

    @Test func uploads() async throws {
      let urlString = "https://httpbin.org/post"
      let data = Data("data".utf8)
      Alamofire.upload(data, to: urlString).response { response in  // defaults to `.post` method
        debugPrint(response)
      }
      _ = await printed()
      #expect(try await environment.request().bodyText == "data")

      let fileURL = try file("file", bytes: 3)
      defer { removeFolder(of: fileURL) }
      var urlRequest = URLRequest(url: URL(string: urlString)!)
      urlRequest.httpMethod = "POST"
      Alamofire.upload(fileURL, with: urlRequest).validate().responseData { response in
        debugPrint(response)
      }
      #expect(await printed()[0].contains("SUCCESS"))

      Alamofire.upload(fileURL, to: "https://httpbin.org/put", method: .put)
        .uploadProgress(queue: DispatchQueue.global(qos: .utility)) { progress in
          _ = progress.fractionCompleted
        }
        .downloadProgress { progress in
          _ = progress.fractionCompleted
        }
        .validate { request, response, data in
          return .success
        }
        .responseJSON { response in
          debugPrint(response)
        }
      #expect(await printed()[0].contains("SUCCESS"))
    }

    @Test func urlStrings() {
      let urlRequest = URLRequest(url: URL(string: "https://httpbin.org/get")!)
      let urlString = urlRequest.url?.absoluteString
      #expect(urlString == "https://httpbin.org/get")
    }

    @Test(arguments: ["get", "status/418", "html", "%%"])
    func errors(path: String) async {
      let urlString = path == "%%" ? "" : "https://httpbin.org/\(path)"
      Alamofire.request(urlString).validate(statusCode: 200..<300).responseJSON { response in
        guard case let .failure(error) = response.result else { return print("fine") }

        if let error = error as? AFError {
          switch error {
          case .invalidURL(let url):
            print("Invalid URL: \(url) - \(error.localizedDescription)")
          case .parameterEncodingFailed(let reason):
            print("Parameter encoding failed: \(error.localizedDescription)", "Failure Reason: \(reason)")
          case .multipartEncodingFailed(let reason):
            print("Multipart encoding failed: \(error.localizedDescription)", "Failure Reason: \(reason)")
          case .responseValidationFailed(let reason):
            switch reason {
            case .dataFileNil, .dataFileReadFailed:
              print("Downloaded file could not be read")
            case .missingContentType(let acceptableContentTypes):
              print("Content Type Missing: \(acceptableContentTypes)")
            case .unacceptableContentType(let acceptableContentTypes, let responseContentType):
              print(
                "Response content type: \(responseContentType) was unacceptable: \(acceptableContentTypes)")
            case .unacceptableStatusCode(let code):
              print("Response status code was unacceptable: \(code)")
            }
          case .responseSerializationFailed(let reason):
            print("Response serialization failed: \(error.localizedDescription)", "Failure Reason: \(reason)")
          }
        } else if let error = error as? URLError {
          print("URLError occurred: \(error)")
        } else {
          print("Unknown error: \(error)")
        }
      }

      let line = await printed()[0]
      switch path {
      case "get": #expect(line == "fine")
      case "status/418": #expect(line == "Response status code was unacceptable: 418")
      case "html": #expect(line.contains("jsonSerializationFailed"))
      default: #expect(line.hasPrefix("Invalid URL: "))
      }
    }

    @Test func parameterEncodings() async throws {
      let parameters: Parameters = ["foo": "bar"]
      let urlString = "https://httpbin.org/post"

      // Encoding => URLEncoding(destination: .methodDependent)
      Alamofire.request(urlString, method: .post, parameters: parameters)
      Alamofire.request(
        urlString, method: .post, parameters: parameters, encoding: URLEncoding(destination: .queryString))
      Alamofire.request(
        urlString, method: .post, parameters: parameters, encoding: URLEncoding(destination: .httpBody))

      // Static convenience properties (we'd like to encourage everyone to use this more concise form)
      Alamofire.request(urlString, method: .post, parameters: parameters, encoding: URLEncoding.default)
      Alamofire.request(urlString, method: .post, parameters: parameters, encoding: URLEncoding.queryString)
      Alamofire.request(urlString, method: .post, parameters: parameters, encoding: URLEncoding.httpBody)
      let forms = try await environment.requests(6)
      #expect(forms.filter { $0.target == "/post?foo=bar" && $0.body.isEmpty }.count == 2)
      #expect(forms.filter { $0.target == "/post" && $0.bodyText == "foo=bar" }.count == 4)

      Alamofire.request(urlString, method: .post, parameters: parameters, encoding: JSONEncoding(options: []))
      Alamofire.request(
        urlString, method: .post, parameters: parameters, encoding: JSONEncoding(options: .prettyPrinted))
      Alamofire.request(urlString, method: .post, parameters: parameters, encoding: JSONEncoding.default)
      Alamofire.request(
        urlString, method: .post, parameters: parameters, encoding: JSONEncoding.prettyPrinted)
      for request in try await environment.requests(4) { #expect(request.json == ["foo": "bar"]) }

      Alamofire.request(
        urlString, method: .post, parameters: parameters,
        encoding: PropertyListEncoding(format: .xml, options: 0))
      Alamofire.request(
        urlString, method: .post, parameters: parameters,
        encoding: PropertyListEncoding(format: .binary, options: 0))
      Alamofire.request(urlString, method: .post, parameters: parameters, encoding: PropertyListEncoding.xml)
      Alamofire.request(
        urlString, method: .post, parameters: parameters, encoding: PropertyListEncoding.binary)
      for request in try await environment.requests(4) {
        let list = try PropertyListSerialization.propertyList(from: Data(request.body), format: nil)
        #expect(list as? [String: String] == ["foo": "bar"])
        #expect(request.header("Content-Type") == "application/x-plist")
      }
    }

    @Test func progress() async throws {
      Alamofire.request(urlString)
        .downloadProgress { progress in
          // Called on main dispatch queue by default
          print("Progress: \(progress.fractionCompleted)")
        }
        .responseJSON { response in
          debugPrint(response)
        }
      var lines: [String] = []
      while lines.last?.contains("SUCCESS") != true { lines += await printed() }
      #expect(lines.contains("Progress: 1.0"))

      // The document labels the method `withMethod:`.
      Alamofire.upload(Data("x".utf8), to: "https://httpbin.org/post", method: .post)
        .uploadProgress { progress in
          print("Upload Progress: \(progress.fractionCompleted)")
        }
        .downloadProgress { progress in
          print("Download Progress: \(progress.fractionCompleted)")
        }
        .responseData { response in
          debugPrint(response)
        }
      lines = []
      while lines.last?.contains("SUCCESS") != true { lines += await printed() }
      #expect(lines.contains("Upload Progress: 1.0"))
    }

    @Test func validationClosures() async {
      Alamofire.request(urlString)
        .validate { request, response, data in
          guard let data = data else { return .failure(customError) }

          // 1) Validate the response data to make sure everything lines up
          // 2) If validation fails, you can parse the error message out of the response data and create custom errors

          return data.isEmpty ? .failure(customError) : .success
        }
        .response { response in
          debugPrint(response)
          print(response.error)
        }
      #expect(await printed(2)[1] == "nil")

      let download = Alamofire.download(urlString)
        .validate { request, response, temporaryURL, destinationURL in
          guard let fileURL = temporaryURL else { return .failure(customError) }

          do {
            let _ = try Data(contentsOf: fileURL)
            return .failure(customError)
          } catch {
            return .success
          }
        }
        .response { response in
          debugPrint(response)
          print((response.error as? CocoaError)?.code == .coderInvalidValue)
        }
      #expect(await printed(2)[1] == "true")
      await removeFile(of: download)
    }

    @Test func responses() async throws {
      Alamofire.request(urlString).responseJSON { response in
        debugPrint(response)
        print(response.result.isSuccess)
      }
      #expect(await printed(2)[1] == "true")

      Alamofire.download(urlString, to: destination)
        .responseData { response in
          debugPrint(response)
        }
        .responseString { response in
          debugPrint(response)
        }
        .responseJSON { response in
          debugPrint(response)
        }
        .responsePropertyList { response in
          debugPrint(response)
        }
      let lines = await printed(4)
      #expect(lines.prefix(3).allSatisfy { $0.contains("SUCCESS") })
      #expect(lines[3].contains("FAILURE"))
      try FileManager.default.removeItem(at: folder)
    }

    @Test func taskMetrics() async {
      Alamofire.request(urlString).response { response in
        debugPrint(response.metrics)
      }
      #expect(await printed()[0] != "nil")
    }
  }
}
