import Alamofire

// Samples of Responses.md; see `SampleTests`.

private struct User: Codable, Sendable {
  var name: String
  var born: Int
}

private let url = "https://example.com/users/1"

private func show(_ value: Any) {}

private func response() async {
  let response = await AF.request(url).validate().serializingDecodable(User.self).response
  print(response.response?.statusCode ?? 0)
  print(response.response?.headers["Content-Type"] ?? "no content type")
  print(response.metrics?.taskInterval.duration ?? 0)

  switch response.result {
  case .success(let user): print(user.name)
  case .failure(let error): print(error.localizedDescription)
  }
}

private func decoding() async throws {
  let decoder = JSONDecoder()
  decoder.keyDecodingStrategy = .convertFromSnakeCase
  decoder.dateDecodingStrategy = .iso8601

  let user = try await AF.request(url)
    .validate()
    .serializingDecodable(User.self, decoder: decoder)
    .value
  show(user)
}

private struct LinesDecoder: DataDecoder {
  func decode<D: Decodable>(_ type: D.Type, from data: Data) throws -> D {
    let lines = String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
    return try JSONDecoder().decode(type, from: JSONEncoder().encode(lines))
  }
}

private func text() async throws {
  let text = try await AF.request(url).serializingString(encoding: .utf8).value
  show(text)
}

private func empty() async throws {
  _ = try await AF.request(url, method: .delete).validate().serializingDecodable(Empty.self).value

  let created = try await AF.request(url, method: .put)
    .validate()
    .serializingData(emptyResponseCodes: [200, 201, 204])
    .value
  show(created)
}

private func preprocessing() async throws {
  let user = try await AF.request(url)
    .serializingDecodable(User.self, dataPreprocessor: .googleXSSI)
    .value
  show(user)
}

private struct Matrix: Sendable {
  init(_ text: String) throws {}
}
private struct MatrixSerializer: ResponseSerializer {
  func serialize(
    request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: (any Error)?
  ) throws -> Matrix {
    let text = try StringResponseSerializer(encoding: .utf8)
      .serialize(request: request, response: response, data: data, error: error)
    return try Matrix(text)
  }
}

private func matrix() async throws {
  let matrix = try await AF.request(url).serializingResponse(using: MatrixSerializer()).value
  show(matrix)
}

private func heads() {
  let request = AF.request("https://example.com/large.json")
    .onHTTPResponse { response, completionHandler in
      completionHandler(response.expectedContentLength > 1_000_000 ? .cancel : .allow)
    }
  show(request)
}

private func contentDigest(of data: Data) -> String { "sha-256=:\(data.base64EncodedString()):" }

private func trailers() async {
  let response = await AF.request("https://example.com/data", headers: ["TE": "trailers"])
    .validate()
    .serializingData()
    .response
  if let digest = response.trailers?["Content-Digest"], let data = response.data {
    print(digest == contentDigest(of: data) ? "intact" : "damaged on its way")
  }
}
