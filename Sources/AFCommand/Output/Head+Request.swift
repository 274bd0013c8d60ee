import Alamofire
import Foundation

extension Head {
  /// Makes the head of a request that is not sent, with its secrets masked.
  ///
  /// - Parameters:
  ///   - common:   The fields that the session adds.
  ///   - repeated: Further values of fields, which are fields of their own.
  init(_ request: URLRequest, common: HTTPHeaders, repeated: [HTTPHeader] = [], bodyLength: Int?) {
    let url = request.url.flatMap { URLComponents(url: $0, resolvingAgainstBaseURL: false) }
    let path = url.map { $0.percentEncodedPath.isEmpty ? "/" : $0.percentEncodedPath } ?? "/"
    let query = url?.percentEncodedQuery.map { "?" + $0 } ?? ""
    let host = (url?.encodedHost ?? "") + (url?.port.map { ":\($0)" } ?? "")
    var headers = common
    for header in request.headers { headers.update(header) }
    if headers["Authorization"] == nil, url?.user != nil {
      headers.add(name: "Authorization", value: "Basic <redacted>")
    }
    if headers["Host"] == nil { headers.add(name: "Host", value: host) }
    if headers["Accept"] == nil { headers.add(name: "Accept", value: "*/*") }
    if let bodyLength { headers.update(name: "Content-Length", value: "\(bodyLength)") }
    self.init(
      start: .request(
        method: request.httpMethod ?? "GET", target: Redaction.standard.url(path + query)),
      version: "HTTP/1.1",
      fields: (headers.sorted() + repeated).map {
        ($0.name, Redaction.standard.value($0.value, ofHeaderField: $0.name))
      })
  }
}
