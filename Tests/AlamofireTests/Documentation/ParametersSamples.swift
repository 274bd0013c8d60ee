import Alamofire

// Samples of Parameters.md; see `SampleTests`.

private struct Search: Codable, Sendable {
  var query: String
  var tags: [String]
  var exact: Bool
}

private struct Filter: Codable, Sendable {
  var maximumPrice: Double
  var since: Date
}

private let url = "https://example.com/items"

private func show(_ value: Any) {}

private func forms() {
  let search = Search(query: "a b", tags: ["x"], exact: true)

  let query = AF.request(url, parameters: search)
  let json = AF.request(url, method: .post, parameters: search, encoder: .json)
  let form = AF.request(url, method: .post, parameters: search, encoder: .urlEncodedForm)
  show((query, json, form))
}

private func destinations(search: Search) {
  let first = AF.request(
    url, method: .post, parameters: search, encoder: .urlEncodedForm(destination: .queryString))

  let encoder = URLEncodedFormParameterEncoder(
    encoder: URLEncodedFormEncoder(arrayEncoding: .noBrackets), destination: .httpBody)
  let second = AF.request(url, method: .patch, parameters: search, encoder: encoder)
  show((first, second))
}

private func strategies() throws {
  let encoder = URLEncodedFormEncoder(
    arrayEncoding: .noBrackets,
    boolEncoding: .literal,
    dataEncoding: .custom { $0.map { String($0, radix: 16) }.joined() },
    dateEncoding: .iso8601,
    keyEncoding: .convertToSnakeCase,
    keyPathEncoding: .dots,
    nilEncoding: .null,
    spaceEncoding: .plusReplaced,
    alphabetizeArrayItems: false)
  let query: String = try encoder.encode(Filter(maximumPrice: 9.5, since: .now))
  show(query)
}

private func jsonEncoders(filter: Filter) {
  let sorted = AF.request(
    url, method: .post, parameters: filter, encoder: JSONParameterEncoder.sortedKeys)

  let encoder = JSONEncoder()
  encoder.dateEncodingStrategy = .iso8601
  encoder.keyEncodingStrategy = .convertToSnakeCase
  let request = AF.request(
    url, method: .post, parameters: filter, encoder: .json(encoder: encoder))
  show((sorted, request))
}

private func dictionaries() {
  let parameters: Parameters = ["name": "Ada", "born": 1815, "tags": ["a", "b"]]

  let list = AF.request(url, parameters: parameters)
  let created = AF.request(
    url, method: .post, parameters: parameters, encoding: JSONEncoding.default)
  show((list, created))
}

private struct PropertyListParameterEncoder: ParameterEncoder {
  func encode<Value: Encodable & Sendable>(
    _ parameters: Value?, into request: URLRequest
  ) throws -> URLRequest {
    guard let parameters else { return request }
    var request = request
    request.httpBody = try PropertyListEncoder().encode(parameters)
    request.headers.update(.contentType("application/x-plist"))
    return request
  }
}

private func compression(search: Search) {
  let compressor = GzipRequestCompressor { $0.count > 1024 }
  let request = AF.request(
    url, method: .post, parameters: search, encoder: .json, interceptor: compressor)
  show(request)
}
