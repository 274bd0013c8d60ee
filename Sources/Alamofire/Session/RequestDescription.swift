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
    modifier != nil || encode != nil || !(url is String || url is URL || url is URLComponents)
  }
}
