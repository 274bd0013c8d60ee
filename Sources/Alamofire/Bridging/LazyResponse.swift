import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// A response whose `HTTPURLResponse` is made on first access.
final class LazyResponse: Sendable {
  private let url: URL?
  private let head: ResponseHead?
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
      made = ReceivedHTTPURLResponse(
        url: url, statusCode: head.status, httpVersion: head.version.text,
        headerFields: Self.dictionary(of: head.block.fields))
      return made
    }
  }

  /// Fields by name: values of repeated ones are joined by `, ` (RFC 9110 §5.3), under the name that came
  /// first. `Set-Cookie` too, as Foundation does it; cookies are read from the head.
  private static func dictionary(of fields: [HTTPHeader]) -> [String: String] {
    var result: [String: String] = [:]
    result.reserveCapacity(fields.count)
    var names: [String: String] = [:]
    names.reserveCapacity(fields.count)
    for field in fields {
      let key = field.name.lowercased()
      if let name = names[key], let value = result[name] {
        result[name] = value + ", " + field.value
      } else {
        names[key] = field.name
        result[field.name] = field.value
      }
    }
    return result
  }
}

/// A response with the file name that Apple's systems suggest.
///
/// Foundation on Linux knows `filename` of `Content-Disposition` alone, and calls every other file `Unknown`. A property
/// of an extension would be ambiguous in files that import FoundationNetworking.
final class ReceivedHTTPURLResponse: HTTPURLResponse, @unchecked Sendable {
  // Unchecked, as its superclass is: it adds no state.

  override var suggestedFilename: String? {
    SuggestedFilename.name(
      contentDisposition: value(forHTTPHeaderField: "Content-Disposition"),
      path: url?.path(percentEncoded: true) ?? "", host: url?.host(percentEncoded: false))
  }
}
