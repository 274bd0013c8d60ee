import Foundation
public import FoundationNetworking
public import HTTPWire
import Synchronization

/// A response whose `HTTPURLResponse` is created on first access.
final class LazyResponse: Sendable {
  private let url: URL?
  private let head: ResponseHead?
  /// The response once it was asked for, by any thread.
  private let made: Mutex<HTTPURLResponse?>

  init(url: URL?, head: ResponseHead?) {
    self.url = url
    self.head = head
    made = Mutex(nil)
  }

  init(_ response: HTTPURLResponse) {
    url = nil
    head = nil
    made = Mutex(response)
  }

  var value: HTTPURLResponse? {
    made.withLock { made in
      if let response = made { return response }
      guard let url, let head else { return nil }
      let response = ReceivedHTTPURLResponse(
        url: url, statusCode: head.status, httpVersion: head.version.text,
        headerFields: Self.dictionary(of: head.block.fields))
      response?.head = head
      made = response
      return response
    }
  }

  /// Returns the fields by name. Values of repeated fields are joined by `, ` (RFC 9110 §5.3), under the spelling that
  /// was received first. This holds for `Set-Cookie` too, as in Foundation; cookies are read from the head.
  private static func dictionary(of fields: [HTTPHeader]) -> [String: String] {
    var result: [String: String] = [:]
    result.reserveCapacity(fields.count)
    var names: [String: String] = [:]
    names.reserveCapacity(fields.count)
    for field in fields {
      let key = field.name.lowercased()
      if let name = names[key] {
        // Appended in place, because a server may repeat a name thousands of times.
        result[name]?.append(", \(field.value)")
      } else {
        names[key] = field.name
        result[field.name] = field.value
      }
    }
    return result
  }
}

/// A response with its head, and the file name that Apple's systems suggest.
///
/// Foundation on Linux knows only `filename` of `Content-Disposition`, and calls every other file `Unknown`. A property
/// of an extension would be ambiguous in files that import FoundationNetworking.
final class ReceivedHTTPURLResponse: HTTPURLResponse, @unchecked Sendable {
  // Unchecked, as its superclass is: the head is set before the response is shared.

  /// The head as received; `nil` for a response that did not come over HTTP.
  fileprivate(set) var head: ResponseHead?

  override var suggestedFilename: String? {
    SuggestedFilename.name(
      contentDisposition: value(forHTTPHeaderField: "Content-Disposition"),
      path: url?.path(percentEncoded: true) ?? "", host: url?.host(percentEncoded: false))
  }
}

extension HTTPURLResponse: AlamofireExtended {}

extension AlamofireExtension where ExtendedType: HTTPURLResponse {
  /// The version of HTTP as in a status line: `HTTP/1.0`, `HTTP/1.1`, `HTTP/2` or `HTTP/3`; `nil` if the response did
  /// not come from a server.
  public var httpVersion: String? { (type as? ReceivedHTTPURLResponse)?.head?.version.text }

  /// The header fields in the order and the spelling in which they were received; repeated fields such as `Set-Cookie`
  /// are not joined. If the response did not come from a server, its fields are sorted by name.
  public var headerFields: [HTTPHeader] {
    (type as? ReceivedHTTPURLResponse)?.head?.block.fields ?? type.headers.sorted().map { $0 }
  }
}

extension AlamofireExtension where ExtendedType: HTTPURLResponse {
  /// The part of the resource that the response has, by its field `Content-Range` (RFC 9110 §14.4). `nil` without the
  /// field, and for a value that is not one range of bytes, contradicts itself or occurs twice.
  public var contentRange: ContentRange? { ContentRange(type.receivedHead) }

  /// The field by which the version of the resource is recognized: a strong `ETag`, or a strong `Last-Modified`. Send
  /// its value as `If-Range` to continue a download (RFC 9110 §13.1.5).
  ///
  /// `nil` if two versions could have the same validator. A weak entity tag is not one, and neither is a date next to
  /// it. A date is strong if the response was generated at least a second later, by its `Date` field (RFC 9110
  /// §8.8.2.2).
  public var strongValidator: HTTPHeader? {
    guard let validator = Representation.validator(of: type.receivedHead, now: .now) else { return nil }
    return HTTPHeader(name: Representation.isTag(validator) ? "ETag" : "Last-Modified", value: validator)
  }
}

extension HTTPURLResponse {
  /// The head as received, or one with the fields of a response that did not come from a server.
  var receivedHead: ResponseHead {
    (self as? ReceivedHTTPURLResponse)?.head ?? ResponseHead(status: statusCode, fields: af.headerFields)
  }
}
