/// The reason why bytes are not a request that the server can answer; each is answered with its status.
enum RequestRefusal: Error, Equatable, Sendable {
  case badRequestLine(String)
  case badField(String)
  case badLength(String)
  case badChunk(String)
  case headTooLarge
  case unsupportedVersion(String)
  case unsupportedCoding(String)

  var status: Int {
    switch self {
    case .badRequestLine, .badField, .badLength, .badChunk: 400
    case .headTooLarge: 431
    case .unsupportedVersion: 505
    case .unsupportedCoding: 501
    }
  }

  var text: String {
    switch self {
    case .badRequestLine(let line): "not a request line: \(line)"
    case .badField(let line): "not a header field: \(line)"
    case .badLength(let value): "not a length: \(value)"
    case .badChunk(let line): "not a chunk: \(line)"
    case .headTooLarge: "the head of the request is too large"
    case .unsupportedVersion(let version): "unsupported version: \(version)"
    case .unsupportedCoding(let coding): "unsupported transfer coding: \(coding)"
    }
  }
}
