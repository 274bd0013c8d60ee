import Alamofire

// Samples of the comments on encoders and serializers; see `SampleTests`.

private struct User: Decodable, Sendable {
  var name: String
}

private struct Event: Encodable, Sendable {
  var date: Date
}

private func show(_ value: Any) {}

/// Named as in the samples.
private let url = "https://example.com/user"

private func parameterEncoders() {
  struct Search: Encodable {
    var query: String
    var page: Int
  }
  let search = Search(query: "a b", page: 1)

  let query = AF.request(url, parameters: search)
  let json = AF.request(url, method: .post, parameters: search, encoder: .json)
  let form = AF.request(url, method: .post, parameters: search, encoder: .urlEncodedForm)
  show([query, json, form])
}

private func jsonParameterEncoders(event: Event) {
  let encoder = JSONEncoder()
  encoder.dateEncodingStrategy = .iso8601
  let request = AF.request(
    url, method: .post, parameters: event, encoder: JSONParameterEncoder(encoder: encoder))
  show(request)
}

private func formParameterEncoders(search: [String: [String]]) {
  let encoder = URLEncodedFormParameterEncoder(
    encoder: URLEncodedFormEncoder(arrayEncoding: .noBrackets), destination: .httpBody)
  let request = AF.request(url, method: .post, parameters: search, encoder: encoder)
  show(request)
}

private func formEncoders() throws {
  struct Search: Encodable {
    var query: String
    var tags: [String]
    var exact: Bool
  }

  let form: String = try URLEncodedFormEncoder().encode(Search(query: "a b", tags: ["x"], exact: true))
  // exact=1&query=a%20b&tags%5B%5D=x

  let encoder = URLEncodedFormEncoder(
    arrayEncoding: .noBrackets, boolEncoding: .literal, keyEncoding: .convertToSnakeCase)
  show((form, encoder))
}

private func formEncoderChoices() {
  do {
    let encoder = URLEncodedFormEncoder(nilEncoding: URLEncodedFormEncoder.NilEncoding { "none" })
    show(encoder)
  }
  do {
    let encoder = URLEncodedFormEncoder(
      keyPathEncoding: URLEncodedFormEncoder.KeyPathEncoding { "-\($0)" })  // outer-inner=…
    show(encoder)
  }
}

private func parameterEncodings() {
  let request = AF.request("https://example.com/search", parameters: ["q": "a b", "tags": ["x", "y"]])
  // …/search?q=a%20b&tags%5B%5D=x&tags%5B%5D=y

  let encoding = URLEncoding(arrayEncoding: .noBrackets, boolEncoding: .literal)
  show((request, encoding))

  let pairs = URLEncoding().queryComponents(fromKey: "a", value: ["x": 1])  // [("a%5Bx%5D", "1")]
  show(pairs)

  let parameters: Parameters = ["name": "Ada", "tags": ["a", "b"], "page": 1]
  show(parameters)
}

private func jsonEncoding() {
  let request = AF.request(
    url, method: .post, parameters: ["name": "Ada", "age": 36], encoding: JSONEncoding.default)
  show(request)
}

private struct CommaSeparated: ParameterEncoding {
  func encode(
    _ urlRequest: any URLRequestConvertible, with parameters: Parameters?
  ) throws -> URLRequest {
    var request = try urlRequest.asURLRequest()
    request.httpBody = parameters.map { Data($0.keys.sorted().joined(separator: ",").utf8) }
    return request
  }
}

private struct LineSerializer: ResponseSerializer {
  func serialize(
    request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: (any Error)?
  ) throws -> [Substring] {
    let text = try StringResponseSerializer()
      .serialize(request: request, response: response, data: data, error: error)
    return text.split(separator: "\n")
  }
}

private func serializers(file: URL) async throws {
  AF.request(url).response(responseSerializer: .data(emptyResponseCodes: [200, 204])) { response in
    print(response.result)
  }

  let text = try await AF.request(url).serializingString(encoding: .utf8).value
  show(text)

  let decoder = JSONDecoder()
  decoder.keyDecodingStrategy = .convertFromSnakeCase
  let serializer = DecodableResponseSerializer<User>(decoder: decoder)
  show(serializer)

  let place = try URLResponseSerializer()
    .serializeDownload(request: nil, response: nil, fileURL: file, error: nil)
  show(place)
}

private func preprocessors() {
  do {
    let serializer = DataResponseSerializer(dataPreprocessor: .passthrough)
    show(serializer)
  }
  do {
    let serializer = DecodableResponseSerializer<User>(dataPreprocessor: .googleXSSI)
    show(serializer)
  }
}

private struct Reply: Sendable {
  var items: [String]
}

extension Reply: EmptyResponse {
  static func emptyValue() -> Reply { Reply(items: []) }
}

private func emptyResponses() async throws {
  _ = try await AF.request(url, method: .delete).serializingDecodable(Empty.self).value
}

private func absentValues() throws {
  struct Patch: Encodable {
    enum CodingKeys: CodingKey { case name, phone }
    var name: String?  // Left out if there is none.
    var phone: String?  // Removed on the server if there is none.

    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encodeIfPresent(name, forKey: .name)
      try container.encode(phone, forKey: .phone)
    }
  }

  let encoder = URLEncodedFormEncoder(nilEncoding: .null, absentEncoding: .dropKey)
  let text: String = try encoder.encode(Patch())  // phone=null
  show(text)
}
