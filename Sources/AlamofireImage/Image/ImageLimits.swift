public import Foundation

/// Limits for an image. The head of a file is checked before memory is taken for its pixels.
///
/// ```swift
/// var limits = ImageLimits.default
/// limits.pixels = 20_000_000
/// limits.frames = 1
/// ```
public struct ImageLimits: Sendable, Equatable {
  /// The most pixels of all frames together, in a file or in the result of a filter, and of a tile in a TIFF file.
  /// Default: 100 million, which take 400 megabytes of memory when they are decoded.
  ///
  /// Until an image is decoded, it can take up to 20 bytes per pixel. Examples are samples of 16 bits, a progressive
  /// JPEG and an interlaced PNG. If a pixel of a TIFF file has more than eight bytes, each eight of them count as one.
  public var pixels: Int
  /// The most frames of an animated image, at most 4,096. Default: 1,000.
  public var frames: Int
  /// The most bytes of a file. Default: 64 MiB. The texts and the colour profile in a PNG file may take as much after
  /// their decompression, and at least 64 MiB. So may the values of the tags in a TIFF file, which can share bytes.
  /// A colour profile of more than 8 MiB is ignored, and so is one with more than 100 tags, an incomplete table of
  /// colours, or multi-process elements, which take very long.
  public var bytes: Int
  /// The formats that are read. Default: all but AVIF and HEIC. These can contain a larger image than their heads say,
  /// which no other limit notices before memory is taken; allow them for files that you trust.
  public var formats: Set<ImageFormat>
  /// The most time for decoding, for one filter, or for encoding. Work ends with the next rows of the image. The
  /// frames of some formats are decoded as a whole, so that it can end later there. Default: 20 seconds.
  public var time: Duration

  /// Makes limits. Each parameter that is not given has its default.
  public init(
    pixels: Int = 100_000_000, frames: Int = 1_000, bytes: Int = 64 << 20,
    formats: Set<ImageFormat> = [.jpeg, .png, .webp, .gif, .tiff], time: Duration = .seconds(20)
  ) {
    self.pixels = pixels
    self.frames = frames
    self.bytes = bytes
    self.formats = formats
    self.time = time
  }

  /// Limits that a server can live with.
  public static let `default` = ImageLimits()

  /// A limited value.
  public enum Kind: String, Sendable {
    /// ``ImageLimits/pixels``.
    case pixels
    /// ``ImageLimits/frames``.
    case frames
    /// ``ImageLimits/bytes``.
    case bytes
    /// The scans of a JPEG file, which may have 100.
    case scans
    /// The segments of a JPEG file for applications and comments, of which there may be 1,000.
    case segments
    /// The tags of the first image in a TIFF file, of which there may be 1,000.
    case tags
    /// The samples of a pixel, of which there may be five: four colours and alpha.
    case samples
    /// ``ImageLimits/time``, in milliseconds.
    case time

    var unit: String {
      switch self {
      case .time: "milliseconds of work"
      case .samples: "samples per pixel"
      default: rawValue
      }
    }

    /// Whether no property of the limits changes it.
    var isFixed: Bool {
      switch self {
      case .scans, .segments, .tags, .samples: true
      case .pixels, .frames, .bytes, .time: false
      }
    }
  }

  /// Throws if an image would exceed the limits.
  ///
  /// - Parameter pixelBytes: The bytes of a pixel while the file is decoded. Each eight count as a pixel.
  func check(width: Int, height: Int, frames count: Int, pixelBytes: Int = 8) throws(ImageError) {
    // libvips does not read more frames of a GIF file.
    try check(.frames, count, limit: min(frames, 4_096))
    let (area, areaOverflows) = width.multipliedReportingOverflow(by: height)
    let (total, totalOverflows) = area.multipliedReportingOverflow(by: count)
    // Eight bytes per pixel can always be counted.
    let limit = min(pixels, .max / 8)
    try check(.pixels, areaOverflows || totalOverflows ? .max : total, limit: limit)
    let (bytes, bytesOverflow) = total.multipliedReportingOverflow(by: max(8, pixelBytes))
    try check(.pixels, bytesOverflow ? .max : bytes / 8 + (bytes % 8 > 0 ? 1 : 0), limit: limit)
  }

  /// Throws if a JPEG file has too many scans or segments.
  func checkParts(
    endsAtScan: Bool = false, _ read: (_ place: Int, _ count: Int) throws(ImageError) -> [UInt8]
  ) throws(ImageError) {
    let parts = try FileStructure.parts(ofJPEG: read, endsAtScan: endsAtScan)
    try check(.scans, parts.scans, limit: 100)
    try check(.segments, parts.segments, limit: 1_000)
  }

  /// Throws if the texts of a PNG file could take too much memory.
  func checkText(
    _ read: (_ place: Int, _ count: Int) throws(ImageError) -> [UInt8]
  ) throws(ImageError) {
    try check(.bytes, FileStructure.textSize(ofPNG: read), limit: max(bytes, 64 << 20))
  }

  /// Throws if the values of the tags in a TIFF file could take too much memory, or if there are too many.
  func checkTags(_ file: UnsafeRawBufferPointer) throws(ImageError) {
    try check(.bytes, FileStructure.valueSize(ofTIFF: file), limit: max(bytes, 64 << 20))
  }

  /// Throws if a value exceeds its limit.
  func check(_ kind: Kind, _ actual: Int, limit: Int) throws(ImageError) {
    guard actual <= limit else { throw .limitExceeded(kind, limit: limit, actual: actual) }
  }
}

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
      "The image has \(actual) \(kind.unit), and the limit is \(limit)."
        + (kind.isFixed || kind == .frames && limit >= 4_096 ? "" : " To accept it, pass larger ImageLimits.")
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
