import Foundation
import FoundationNetworking
import HTTPWire

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
