import Foundation
import FoundationNetworking
import HTTPWire

/// The parts from which the factories make a request, anew for each attempt.
struct RequestDescription: URLRequestConvertible {
  let url: any URLConvertible
  let method: HTTPMethod
  let headers: HTTPHeaders?
  let modifier: Session.RequestModifier?
  var encode: (@Sendable (URLRequest) throws -> URLRequest)?

  func asURLRequest() throws -> URLRequest {
    var request = try URLRequest(url: url, method: method, headers: headers)
    try modifier?(&request)
    return try encode?(request) ?? request
  }

  /// Parameters may be of any size and any type, so encoding them counts as code of a user.
  var runsUserCode: Bool {
    guard modifier == nil, encode == nil else { return true }
    // The exact type: a look-up of a cast would cost more than the rest.
    let type = ObjectIdentifier(type(of: url))
    return
      !(type == ObjectIdentifier(URL.self) || type == ObjectIdentifier(String.self)
      || type == ObjectIdentifier(URLComponents.self))
  }
}
