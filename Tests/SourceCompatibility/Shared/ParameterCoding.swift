import Alamofire

#if IMPORTS_FOUNDATION
  import Foundation
#endif
#if IMPORTS_FOUNDATION_NETWORKING
  import FoundationNetworking
#endif

// Encodings of dictionaries and encoders of values.

private struct Login: Encodable {
  let email: String
  let password: String
}

private let url = "http://localhost"

private func dictionaries() {
  let parameters: Parameters = ["a": 1, "b": [1, 2], "c": ["x": true], "d": "text"]
  AF.request(url, parameters: parameters).response { _ in }
  AF.request(url, parameters: ["a": 1, "b": "c"]).response { _ in }
  AF.request(url, parameters: ["a": "b"]).response { _ in }
  AF.request(url, method: .post, parameters: parameters, encoding: JSONEncoding.default).response { _ in }
  AF.request(url, method: .post, parameters: parameters, encoding: URLEncoding(destination: .queryString))
    .response { _ in }
  AF.request(url, method: .get, parameters: nil as Parameters?).response { _ in }
}

#if swift(<6)
  private func untypedDictionary() {
    let parameters: [String: Any] = ["a": 1, "b": "c"]
    AF.request(url, method: .get, parameters: parameters).response { _ in }
    AF.request(url, method: .post, parameters: parameters, encoding: JSONEncoding.prettyPrinted)
      .response { _ in }
    AF.download(url, parameters: parameters).response { _ in }
  }
#endif

private func values() {
  let login = Login(email: "a", password: "b")
  AF.request(url, method: .post, parameters: login).response { _ in }
  AF.request(url, method: .post, parameters: login, encoder: JSONParameterEncoder.default).response { _ in }
  AF.request(url, method: .post, parameters: login, encoder: .json).response { _ in }
  AF.request(url, method: .post, parameters: login, encoder: .json(encoder: JSONEncoder())).response { _ in }
  AF.request(url, method: .post, parameters: login, encoder: .urlEncodedForm).response { _ in }
  AF.request(
    url, parameters: ["a": [1]],
    encoder: .urlEncodedForm(
      encoder: URLEncodedFormEncoder(arrayEncoding: .noBrackets), destination: .queryString)
  )
  .response { _ in }
  AF.request(
    url, parameters: login, encoder: URLEncodedFormParameterEncoder(destination: .httpBody),
    headers: [.accept("a")]
  ).response { _ in }
}

private func encodings() throws {
  let request = try URLRequest(url: url, method: .get)
  let all: [ParameterEncoding] = [
    URLEncoding.default, URLEncoding.queryString, URLEncoding.httpBody, URLEncoding(),
    URLEncoding(destination: .methodDependent, arrayEncoding: .brackets, boolEncoding: .numeric),
    URLEncoding(arrayEncoding: .noBrackets, boolEncoding: .literal),
    URLEncoding(arrayEncoding: .indexInBrackets),
    URLEncoding(arrayEncoding: .custom { key, index in "\(key).\(index)" }),
    JSONEncoding.default, JSONEncoding.prettyPrinted, JSONEncoding(options: [.sortedKeys]),
  ]
  for encoding in all { _ = try encoding.encode(request, with: ["a": 1]) }
  let components: [(String, String)] = URLEncoding.default.queryComponents(fromKey: "a", value: [1])
  let escaped: String = URLEncoding.default.escape("a b")
  _ = try JSONEncoding.default.encode(request, withJSONObject: ["a", "b"])
  _ = try JSONEncoding.default.encode(request, withJSONObject: nil)
  _ = try JSONEncoding.default.encode(request)
  print(components, escaped, CharacterSet.afURLQueryAllowed, URLEncoding.default.destination)
  print(JSONEncoding.Error.invalidJSONObject, JSONEncoding.default.options)
}

private struct Upper: ParameterEncoding {
  func encode(_ urlRequest: URLRequestConvertible, with parameters: Parameters?) throws -> URLRequest {
    var request = try urlRequest.asURLRequest()
    request.httpBody = Data("\(parameters ?? [:])".uppercased().utf8)
    return request
  }
}

private struct PropertyListParameterEncoder: ParameterEncoder {
  func encode<Parameters: Encodable & Sendable>(
    _ parameters: Parameters?, into request: URLRequest
  ) throws -> URLRequest {
    guard let parameters = parameters else { return request }
    var request = request
    request.httpBody = try PropertyListEncoder().encode(parameters)
    return request
  }
}

private final class DatedEncoder: JSONParameterEncoder, @unchecked Sendable {
  override func encode<Parameters: Encodable>(
    _ parameters: Parameters?, into request: URLRequest
  ) throws -> URLRequest {
    var request = try super.encode(parameters, into: request)
    request.headers.add(name: "X-Encoder", value: "\(encoder.outputFormatting)")
    return request
  }
}

private final class QueryEncoder: URLEncodedFormParameterEncoder, @unchecked Sendable {
  override func encode<Parameters: Encodable>(
    _ parameters: Parameters?, into request: URLRequest
  ) throws -> URLRequest {
    print(destination, encoder)
    return try super.encode(parameters, into: request)
  }
}

private func ownEncoders() throws {
  AF.request(url, method: .post, parameters: ["a": 1], encoding: Upper()).response { _ in }
  AF.request(url, method: .post, parameters: ["a": 1], encoder: PropertyListParameterEncoder())
    .response { _ in }
  AF.request(url, method: .post, parameters: ["a": 1], encoder: DatedEncoder(encoder: JSONEncoder()))
    .response { _ in }
  AF.request(url, parameters: ["a": 1], encoder: QueryEncoder()).response { _ in }
  let request = try JSONParameterEncoder.sortedKeys.encode(
    ["a": 1], into: URLRequest(url: url, method: .post))
  _ = try JSONParameterEncoder.prettyPrinted.encode(["a": 1], into: request)
  _ = try URLEncodedFormParameterEncoder.default.encode(nil as [String: Int]?, into: request)
}

private func formEncoders() throws {
  let formatter = DateFormatter()
  var encoders = [
    URLEncodedFormEncoder(),
    URLEncodedFormEncoder(alphabetizeKeyValuePairs: false),
    URLEncodedFormEncoder(boolEncoding: .literal, nilEncoding: .null, spaceEncoding: .plusReplaced),
    URLEncodedFormEncoder(
      alphabetizeKeyValuePairs: true, arrayEncoding: .brackets, boolEncoding: .numeric,
      dataEncoding: .base64, dateEncoding: .deferredToDate, keyEncoding: .useDefaultKeys,
      keyPathEncoding: .brackets, nilEncoding: .dropKey, spaceEncoding: .percentEscaped,
      allowedCharacters: .afURLQueryAllowed),
    URLEncodedFormEncoder(
      arrayEncoding: .custom { "\($0)\($1)" }, dataEncoding: .custom { "\($0.count)" },
      dateEncoding: .custom { "\($0)" }, keyEncoding: .custom { $0.uppercased() },
      keyPathEncoding: .init(encoding: { "-\($0)" }), nilEncoding: .init(encoding: { "nil" })),
  ]
  for array in [.brackets, .noBrackets, .indexInBrackets] as [URLEncodedFormEncoder.ArrayEncoding] {
    encoders.append(URLEncodedFormEncoder(arrayEncoding: array, dataEncoding: .deferredToData))
  }
  for date in [.secondsSince1970, .millisecondsSince1970, .iso8601, .formatted(formatter)]
    as [URLEncodedFormEncoder.DateEncoding]
  {
    encoders.append(URLEncodedFormEncoder(dateEncoding: date))
  }
  for key in [.convertToSnakeCase, .convertToKebabCase, .capitalized, .uppercased, .lowercased]
    as [URLEncodedFormEncoder.KeyEncoding]
  {
    encoders.append(URLEncodedFormEncoder(keyEncoding: key, keyPathEncoding: .dots, nilEncoding: .dropValue))
  }
  for encoder in encoders {
    let text: String = try encoder.encode(["a": 1])
    let data: Data = try encoder.encode(["a": 1])
    encoder.allowedCharacters = .alphanumerics
    print(text, data, encoder.alphabetizeKeyValuePairs, encoder.arrayEncoding, encoder.boolEncoding)
    print(encoder.dataEncoding, encoder.dateEncoding, encoder.keyEncoding, encoder.keyPathEncoding)
    print(encoder.nilEncoding, encoder.spaceEncoding)
  }
  do {
    let _: String = try URLEncodedFormEncoder().encode([1])
  } catch URLEncodedFormEncoder.Error.invalidRootObject(let root) {
    print(root)
  }
}
