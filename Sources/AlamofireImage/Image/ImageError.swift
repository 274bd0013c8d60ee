public import Foundation

/// The reason why an image could not be read, changed or written.
public enum ImageError: Error, Sendable, Equatable {
  /// The bytes are of none of the formats in ``ImageFormat``.
  case unknownFormat
  /// The system's libvips cannot read or write this format, or ``ImageLimits/formats`` does not contain it. Also, a
  /// TIFF file has a compression whose decoder was not written for files of strangers.
  case unsupportedFormat(ImageFormat)
  /// The image, or what a filter would make of it, exceeds one of its ``ImageLimits``.
  case limitExceeded(ImageLimits.Kind, limit: Int, actual: Int)
  /// The file is damaged or truncated. The text is what libvips says about it.
  case damaged(String)
  /// The pixels do not fit the width, height and format that were given for them.
  case invalidPixels
  /// A file could not be read or written. The text says why.
  case fileFailed(String)
  /// The image could not be written in the format. The text is what libvips says about it.
  case encodingFailed(String)
  /// The task that waited for the result was cancelled.
  case cancelled
  /// libvips cannot be loaded. The text is what the system says about it.
  case libraryMissing(String)
}

extension ImageError: CustomStringConvertible, LocalizedError {
  /// The text of ``description``.
  public var errorDescription: String? { description }

  /// The reason and, where there is one, the remedy.
  public var description: String {
    switch self {
    case .unknownFormat: "The data is not an image of a known format."
    case .unsupportedFormat(let format):
      "The installed libvips cannot read or write \(format.name) images, or their limits do not allow the format."
    case .limitExceeded(let kind, let limit, let actual):
      "The image has \(actual) \(kind.unit), and the limit is \(limit). To accept it, pass larger ImageLimits."
    case .damaged(let text): "The image is damaged: \(text)."
    case .invalidPixels: "The number of bytes does not fit the width, height and format of the pixels."
    case .fileFailed(let text): "The file of the image could not be used: \(text)"
    case .encodingFailed(let text): "The image could not be encoded: \(text)."
    case .cancelled: "The work on the image was cancelled."
    case .libraryMissing(let text):
      "libvips cannot be loaded: \(text). Install it, on Debian with: apt-get install libvips42"
    }
  }
}
