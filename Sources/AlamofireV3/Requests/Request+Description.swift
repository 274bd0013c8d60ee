import Alamofire
import AlamofireGenerations
import Foundation

extension Request: CustomStringConvertible, CustomDebugStringConvertible {
  /// `METHOD URL (status)`, as far as they are known; `HOST:PORT` for a stream. The URL is shown without its password.
  public var description: String {
    if let stream { return "\(stream.host):\(stream.port)" }
    guard let request else { return "" }
    var parts = [request.httpMethod ?? "GET"]
    if let url = request.url { parts.append(url.textWithoutPassword) }
    if let response { parts.append("(\(response.statusCode))") }
    return parts.joined(separator: " ")
  }

  /// The request as a cURL command, which begins with `$ curl -i`; the method is named unless it is `GET`. The text
  /// holds the secrets of the request. `HOST:PORT` for a stream.
  public var debugDescription: String {
    guard let core else { return description }
    let separator = " \\\n\t"
    let (current, get) = ("$ curl -v" + separator, "-X GET" + separator)
    let text = core.cURLDescription()
    guard text.hasPrefix(current) else { return text }
    let rest = text.dropFirst(current.count)
    return "$ curl -i" + separator + (rest.hasPrefix(get) ? rest.dropFirst(get.count) : rest)
  }
}
