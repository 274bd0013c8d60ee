import Foundation

extension EncodingError {
  /// Which value could not be encoded, and why: Foundation's own description says no more than "the data
  /// isn't in the correct format".
  var sentence: String {
    guard case .invalidValue(_, let context) = self, !context.debugDescription.isEmpty else {
      return localizedDescription
    }
    let path = DecodingError.place(context.codingPath)
    let reason = context.debugDescription
    return (reason.hasSuffix(".") ? reason : reason + ".") + " That is \(path)."
  }
}
