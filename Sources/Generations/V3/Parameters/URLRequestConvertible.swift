import Foundation
public import FoundationNetworking

/// A value that becomes a URL request: `NSURLRequest`, `NSMutableURLRequest`, `URLRequest`, and routers.
///
/// ```swift
/// enum Router: URLRequestConvertible {
///   case ReadUser(String)
///
///   var URLRequest: NSMutableURLRequest {
///     switch self {
///     case .ReadUser(let name):
///       return NSMutableURLRequest(url: URL(string: "https://example.com/users/\(name)")!)
///     }
///   }
/// }
/// ```
///
/// It is read once for each request, on the caller's thread, before the function that makes the request returns.
public protocol URLRequestConvertible {
  /// The request. The returned object is not changed.
  var URLRequest: NSMutableURLRequest { get }
}

extension NSURLRequest: URLRequestConvertible {
  /// A copy of this request; an empty request if this one has no URL, because Foundation cannot copy it.
  public var URLRequest: NSMutableURLRequest {
    guard let url else { return .withoutURL }
    return (mutableCopy() as? NSMutableURLRequest) ?? NSMutableURLRequest(url: url)
  }
}

extension URLRequest: URLRequestConvertible {
  /// The request as an object; an empty request if this one has no URL, because Foundation cannot copy it.
  public var URLRequest: NSMutableURLRequest {
    url == nil ? .withoutURL : (self as NSURLRequest).URLRequest
  }
}

extension NSMutableURLRequest {
  /// A new request without a URL.
  fileprivate static var withoutURL: NSMutableURLRequest {
    let request = NSMutableURLRequest(url: .placeholder)
    request.url = nil
    return request
  }
}

extension NSURLRequest {
  /// The request as a value.
  var value: FoundationNetworking.URLRequest {
    FoundationNetworking.URLRequest._unconditionallyBridgeFromObjectiveC(self)
  }
}

extension URL {
  /// For a request that must have some URL; nothing can be sent there.
  static let placeholder = URL(fileURLWithPath: "/", isDirectory: true)
}
