import Foundation

extension Error {
  /// What went wrong, for the message of another error. Foundation says of the errors of `Codable` only
  /// that the data is not in the correct format; here they say which value is meant, and why.
  var sentence: String {
    switch self {
    case let error as EncodingError: error.reason
    case let error as DecodingError: error.reason
    default: localizedDescription
    }
  }
}

extension EncodingError {
  fileprivate var reason: String {
    switch self {
    case .invalidValue(_, let context): context.debugDescription + context.codingPath.place
    @unknown default: localizedDescription
    }
  }
}

extension DecodingError {
  fileprivate var reason: String {
    switch self {
    case .keyNotFound(let key, let context):
      "There is no value for the key \"\(key.stringValue)\"" + context.codingPath.place + "."
    case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context):
      context.debugDescription + context.codingPath.place
    @unknown default: localizedDescription
    }
  }
}

extension [any CodingKey] {
  /// Where in the data, for example ` (at owner.tags[2])`; nothing for the root.
  fileprivate var place: String {
    guard !isEmpty else { return "" }
    var path = ""
    for key in self {
      if let index = key.intValue {
        path += "[\(index)]"
      } else {
        path += path.isEmpty ? key.stringValue : ".\(key.stringValue)"
      }
    }
    return " (at \(path))"
  }
}
