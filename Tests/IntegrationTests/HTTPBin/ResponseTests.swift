import Alamofire
import Synchronization
import Testing

/// Responses of httpbin and their values.
@Suite(.needsHTTPBin, .timeLimit(.minutes(5))) struct ResponseTests {
  @Test(
    "Validation accepts the statuses of 2xx", arguments: [200, 201, 204, 304, 400, 403, 404, 418, 500, 503])
  func validation(code: Int) async throws {
    let server = try await HTTPBinServer.shared
    let response = await AF.request(server.url("/status/\(code)"))
      .validate().serializingData(emptyResponseCodes: [200, 201, 204]).response
    #expect(response.response?.statusCode == code)
    if (200..<300).contains(code) {
      #expect(response.error == nil)
    } else {
      #expect(response.error?.responseCode == code)
      #expect(response.error?.isResponseValidationError == true)
    }
  }

  @Test("The acceptable status codes can be chosen") func statusCodes() async throws {
    let server = try await HTTPBinServer.shared
    let response = await AF.request(server.url("/status/418")).validate(statusCode: [418])
      .serializingData(emptyResponseCodes: [418]).response
    #expect(response.error == nil)
    #expect(response.data?.isEmpty == false)
  }

  @Test("An encoded body is decoded", arguments: ["gzip", "deflate", "brotli"])
  func contentCodings(coding: String) async throws {
    let server = try await HTTPBinServer.shared
    let response = await AF.request(server.url("/\(coding)"))
      .validate().serializingDecodable([String: JSONValue].self).response
    let value = try response.result.get()
    #expect(value[coding == "gzip" ? "gzipped" : coding == "deflate" ? "deflated" : coding] == .bool(true))
    #expect(response.response?.headers["Content-Encoding"] == (coding == "brotli" ? "br" : coding))
    let transaction = try #require(response.metrics?.transactionMetrics.last)
    #expect(transaction.countOfResponseBodyBytesAfterDecoding == Int64(response.data?.count ?? 0))
    #expect(transaction.countOfResponseBodyBytesReceived < transaction.countOfResponseBodyBytesAfterDecoding)
  }

  @Test(
    "Images are accepted with their content type only",
    arguments: [
      ("png", "image/png"), ("jpeg", "image/jpeg"), ("svg", "image/svg+xml"), ("webp", "image/webp"),
    ])
  func images(path: String, type: String) async throws {
    let server = try await HTTPBinServer.shared
    let url = server.url("/image/\(path)")
    let right = await AF.request(url).validate(contentType: [type]).serializingData().response
    #expect(right.error == nil)
    #expect(right.data?.isEmpty == false)
    let wide = await AF.request(url).validate(contentType: ["image/*"]).serializingData().response
    #expect(wide.error == nil)
    let wrong = await AF.request(url).validate(contentType: ["application/json", "text/*"])
      .serializingData().response
    #expect(wrong.error?.responseContentType == type)
    #expect(wrong.error?.acceptableContentTypes == ["application/json", "text/*"])
  }

  @Test("The Accept field decides about acceptable content types") func accept() async throws {
    let server = try await HTTPBinServer.shared
    let accepted = await AF.request(server.url("/image"), headers: [.accept("image/webp")])
      .validate().serializingData().response
    #expect(accepted.response?.mimeType == "image/webp")
    #expect(accepted.error == nil)
    let refused = await AF.request(server.url("/html"), headers: [.accept("application/json")])
      .validate().serializingData().response
    #expect(refused.error?.responseContentType?.hasPrefix("text/html") == true)
  }

  @Test("Text is decoded by its charset") func text() async throws {
    let server = try await HTTPBinServer.shared
    let text = try await AF.request(server.url("/encoding/utf8")).serializingString().value
    #expect(text.contains("∮ E⋅da = Q"))
    #expect(text.contains("Οὐχὶ ταὐτὰ"))
  }

  @Test("JSON is decoded") func json() async throws {
    struct Show: Decodable { let slideshow: Slides }
    struct Slides: Decodable {
      let author: String
      let slides: [Slide]

      struct Wrong: Decodable { let editor: String }
    }
    struct Slide: Decodable {
      let title: String
      let items: [String]?
    }
    let server = try await HTTPBinServer.shared
    let show = try await AF.request(server.url("/json")).serializingDecodable(Show.self).value.slideshow
    #expect(show.author == "Yours Truly")
    #expect(show.slides.map { $0.items?.count ?? 0 } == [0, 2])
    let wrong = await AF.request(server.url("/json")).serializingDecodable([Int].self).response
    #expect(wrong.error?.isResponseSerializationError == true)
    #expect(wrong.error?.underlyingError is DecodingError)
    #expect(wrong.error?.errorDescription?.contains("Expected an array at the top, found an object.") == true)
    let missing = await AF.request(server.url("/json")).serializingDecodable([String: Slides.Wrong].self)
      .response
    #expect(missing.error?.errorDescription?.contains("key \"editor\" at slideshow") == true)
  }

  @Test("A stream of lines is complete") func lines() async throws {
    let server = try await HTTPBinServer.shared
    let text = try await AF.request(server.url("/stream/50")).serializingString().value
    let lines = try text.split(separator: "\n").map {
      try JSONDecoder().decode([String: JSONValue].self, from: Data($0.utf8))
    }
    #expect(lines.map { $0["id"] } == (0..<50).map { .number(Double($0)) })
  }

  @Test("Bytes are delivered unchanged") func bytes() async throws {
    let server = try await HTTPBinServer.shared
    let whole = try await AF.request(server.url("/bytes/100000?seed=7")).serializingData().value
    #expect(whole.count == 100_000)
    let pieces = try await AF.request(server.url("/stream-bytes/100000?seed=7&chunk_size=777"))
      .serializingData().value
    #expect(pieces.count == 100_000)
    #expect(Set(whole).count == 256)
    let again = try await AF.request(server.url("/bytes/100000?seed=7")).serializingData().value
    #expect(again == whole)
  }

  @Test("A slow body is complete and reports progress") func slowBody() async throws {
    let server = try await HTTPBinServer.shared
    let fractions = Mutex<[Double]>([])
    let response = await AF.request(server.url("/drip?numbytes=20&duration=1&delay=0"))
      .downloadProgress(queue: DispatchQueue(label: "progress")) { progress in
        fractions.withLock { $0.append(progress.fractionCompleted) }
      }
      .serializingData().response
    #expect(response.value == Data(repeating: UInt8(ascii: "*"), count: 20))
    let seen = fractions.withLock { $0 }
    #expect(seen == seen.sorted())
    #expect(seen.count >= 2)
  }
}
