import Alamofire
import Foundation
import FoundationNetworking

/// The `URLRequest` that users' routers and encodings have created: once, and not again for a retry.
enum OriginalRequest: Sendable {
  case made(URLRequest)
  /// An error, because the request could not be created.
  case refused(any Error)
  /// The core knows it.
  case unknown

  init(_ make: () throws -> URLRequest) {
    do { self = .made(try make()) } catch { self = .refused(error) }
  }

  /// The request, if it was created.
  var request: URLRequest? { if case .made(let request) = self { request } else { nil } }

  /// The error of the conversion.
  var refusal: (any Error)? { if case .refused(let error) = self { error } else { nil } }

  /// The value to hand to the core.
  var convertible: any Alamofire::URLRequestConvertible {
    request ?? Refusal(error: refusal ?? URLError(.badURL))
  }
}

/// A request that could not be created; it throws its error when the core converts it.
private struct Refusal: Alamofire::URLRequestConvertible {
  let error: any Error

  func asURLRequest() throws -> URLRequest { throw error }
}
