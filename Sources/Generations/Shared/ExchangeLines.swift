import Alamofire
import Foundation
import FoundationNetworking

// The lines of debug descriptions of responses. Secrets are left out, because logs keep them.
extension URLRequest {
  /// The method and the URL.
  var debugLine: String {
    let method = ReadableText.line(httpMethod ?? "GET")
    return url.map { "\(method) \($0.textWithoutPassword)" } ?? "\(method) without a URL"
  }
}

extension HTTPURLResponse {
  /// The status, the URL and the header fields, which are sorted by name.
  var debugLine: String {
    let fields = allHeaderFields.map { name, value in
      let name = "\(name)"
      return "\(name): \(Redaction.standard.value("\(value)", ofHeaderField: name))"
    }
    let shown = fields.sorted().joined(separator: ", ")
    let location = url.map { "\($0.textWithoutPassword) " } ?? ""
    return ReadableText.line("\(statusCode) \(location){\(shown.isEmpty ? "" : " \(shown) ")}")
  }
}
