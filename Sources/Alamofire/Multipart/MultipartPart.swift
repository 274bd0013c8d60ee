import Foundation

/// One part of a form, ready to be written.
struct MultipartPart {
  enum Content {
    case data(Data)
    /// Opened anew for each encoding.
    case file(URL)
    /// A stream that nobody has read yet.
    case stream(InputStream)
    /// A stream that was read, and what there is to say when it should be read again.
    case spent(AFError)
  }

  /// The fields and the empty line behind them.
  let head: [UInt8]
  /// The bytes that the content must have.
  let length: UInt64
  var content: Content
}
