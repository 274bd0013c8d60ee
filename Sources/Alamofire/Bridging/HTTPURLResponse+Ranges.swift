import Foundation
public import FoundationNetworking
public import HTTPWire

extension AlamofireExtension where ExtendedType: HTTPURLResponse {
  /// The part of the resource that the response has, by its field `Content-Range` (RFC 9110 §14.4). `nil` without the
  /// field, and for a value that is not one range of bytes, contradicts itself or comes twice.
  public var contentRange: ContentRange? {
    if let head = (type as? ReceivedHTTPURLResponse)?.head { return ContentRange(head) }
    return type.value(forHTTPHeaderField: "Content-Range").flatMap { ContentRange($0) }
  }

  /// The field by which the version of the resource is recognized: a strong `ETag`, or a strong `Last-Modified`. Send
  /// its value as `If-Range` to continue a download (RFC 9110 §13.1.5).
  ///
  /// `nil` if two versions could have the same validator. A weak entity tag is none, and beside it neither is the date.
  /// A date is strong if the response was made at least a second later, by its field `Date` (RFC 9110 §8.8.2.2).
  public var strongValidator: HTTPHeader? {
    let head =
      (type as? ReceivedHTTPURLResponse)?.head
      ?? ResponseHead(status: type.statusCode, fields: headerFields)
    let now = HTTPDate(secondsSince1970: Int64(Date().timeIntervalSince1970))
    guard let validator = RepresentationVersion.validator(of: head, now: now) else { return nil }
    return HTTPHeader(name: validator.hasPrefix("\"") ? "ETag" : "Last-Modified", value: validator)
  }
}
