package import Alamofire
import Foundation

/// Makes the request that an invocation describes.
package struct RequestBuilder {
  private let invocation: Invocation
  private let input: () throws -> Data

  /// `input` is called when the body is to be read from the standard input.
  package init(_ invocation: Invocation, input: @escaping () throws -> Data) {
    self.invocation = invocation
    self.input = input
  }

  /// The request. Throws `UsageError` when the URL does not take the query, or the input cannot be read.
  package func request() throws -> URLRequest {
    var request = try URLRequest(
      url: url(), method: HTTPMethod(rawValue: invocation.effectiveMethod), headers: headers())
    request.httpBody = try body()
    return request
  }

  // MARK: URL

  private func url() throws -> URL {
    guard var components = URLComponents(string: invocation.url) else {
      throw UsageError("'\(invocation.url)' is not a URL.")
    }
    let pairs = invocation.items.compactMap { item in
      if case .query(let name, let value) = item { Self.pair(name, value) } else { nil }
    }
    if !pairs.isEmpty {
      let typed = components.percentEncodedQuery.map { [$0] } ?? []
      components.percentEncodedQuery = (typed.filter { !$0.isEmpty } + pairs).joined(separator: "&")
    }
    guard let url = components.url else { throw UsageError("'\(invocation.url)' is not a URL.") }
    return url
  }

  /// `name=value`, percent-encoded. Everything encodes as UTF-8, so the fallbacks are never needed.
  private static func pair(_ name: String, _ value: String) -> String {
    [name, value].map { $0.addingPercentEncoding(withAllowedCharacters: .afURLQueryAllowed) ?? $0 }
      .joined(separator: "=")
  }

  // MARK: Header fields

  private func headers() -> HTTPHeaders {
    var headers = HTTPHeaders()
    if let type = contentType { headers.add(.contentType(type)) }
    if (invocation.bodyKind ?? (hasDataItems ? .json : .form)) == .json {
      headers.add(.accept("application/json, */*;q=0.5"))
    }
    if let credentials = invocation.credentials {
      headers.add(.authorization(username: credentials.user, password: credentials.password))
    }
    var own = HTTPHeaders()
    for case .header(let name, let value) in invocation.items {
      // A name that comes twice is a list (RFC 9110 §5.3), and cookies have their own separator.
      let separator = name.lowercased() == "cookie" ? "; " : ", "
      own.update(name: name, value: own[name].map { $0 + separator + value } ?? value)
    }
    for header in own { headers.update(header) }
    return headers
  }

  private var hasDataItems: Bool { invocation.items.contains(where: \.isData) }

  private var contentType: String? {
    guard invocation.hasBody else { return nil }
    switch invocation.bodyKind ?? .json {
    case .json: return "application/json"
    case .form: return "application/x-www-form-urlencoded; charset=utf-8"
    }
  }

  // MARK: Body

  private func body() throws -> Data? {
    switch invocation.rawBody {
    case .text(let text): return Data(text.utf8)
    case .standardInput: return try input()
    case nil: break
    }
    guard hasDataItems else { return nil }
    switch invocation.bodyKind ?? .json {
    case .json: return Data(try jsonObject().utf8)
    case .form: return Data(form().utf8)
    }
  }

  private func form() -> String {
    invocation.items.compactMap { item in
      if case .string(let name, let value) = item { Self.pair(name, value) } else { nil }
    }.joined(separator: "&")
  }

  /// Returns an object with the members in the order of the arguments. If a name occurs twice, the last value is
  /// used, because duplicate names are undefined in JSON (RFC 8259 §4).
  private func jsonObject() throws -> String {
    var members: [(name: String, json: String)] = []
    for item in invocation.items {
      let member: (name: String, json: String)
      switch item {
      case .string(let name, let value): member = (name, try Self.quoted(value))
      case .json(let name, let text): member = (name, text)
      case .query, .header: continue
      }
      members.removeAll { $0.name == member.name }
      members.append(member)
    }
    let texts = try members.map { "\(try Self.quoted($0.name)): \($0.json)" }
    return "{\(texts.joined(separator: ", "))}"
  }

  private static func quoted(_ text: String) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    return String(decoding: try encoder.encode(text), as: UTF8.self)
  }
}
