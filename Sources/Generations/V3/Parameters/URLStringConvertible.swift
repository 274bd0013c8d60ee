public import Foundation
public import FoundationNetworking

/// Something that can be the text of a URL.
///
/// `String`, `URL`, `URLComponents` and `URLRequest` are, and their classes `NSString`, `NSURL`, `NSURLComponents` and
/// `NSURLRequest`. A text that is not a URL gives a request whose handlers receive an error.
public protocol URLStringConvertible {
  /// The text of a URL (RFC 3986).
  var URLString: String { get }
}

extension String: URLStringConvertible {
  /// The text itself.
  public var URLString: String { self }
}

extension NSString: URLStringConvertible {
  /// The text itself.
  public var URLString: String { description }
}

extension URL: URLStringConvertible {
  /// The absolute text.
  public var URLString: String { absoluteString }
}

extension NSURL: URLStringConvertible {
  /// The absolute text.
  public var URLString: String { absoluteString }
}

extension URLComponents: URLStringConvertible {
  /// The text of the URL of the components; empty when they do not go together.
  public var URLString: String { url?.absoluteString ?? "" }
}

extension NSURLComponents: URLStringConvertible {
  /// The text of the URL of the components; empty when they do not go together.
  public var URLString: String { url?.absoluteString ?? "" }
}

extension URLRequest: URLStringConvertible {
  /// The text of the URL of the request; empty when it has none.
  public var URLString: String { url?.absoluteString ?? "" }
}

extension NSURLRequest: URLStringConvertible {
  /// The text of the URL of the request; empty when it has none.
  public var URLString: String { url?.absoluteString ?? "" }
}
