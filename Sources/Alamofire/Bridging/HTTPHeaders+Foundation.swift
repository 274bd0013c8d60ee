public import FoundationNetworking
public import HTTPWire

extension URLRequest {
  /// The header fields. Reading gives them in no particular order, since a `URLRequest` keeps none;
  /// writing replaces all of them.
  public var headers: HTTPHeaders {
    get { allHTTPHeaderFields.map(HTTPHeaders.init) ?? HTTPHeaders() }
    set { allHTTPHeaderFields = newValue.dictionary }
  }
}

extension HTTPURLResponse {
  /// The header fields, in no particular order; empty when they are not all text.
  public var headers: HTTPHeaders {
    (allHeaderFields as? [String: String]).map(HTTPHeaders.init) ?? HTTPHeaders()
  }
}

extension URLSessionConfiguration {
  /// The header fields that every request of a session gets, unless the request has them itself
  /// (`httpAdditionalHeaders`). Reading gives them in no particular order, and none when they are not
  /// all text; writing replaces all of them.
  public var headers: HTTPHeaders {
    get { (httpAdditionalHeaders as? [String: String]).map(HTTPHeaders.init) ?? HTTPHeaders() }
    set { httpAdditionalHeaders = newValue.dictionary }
  }
}
