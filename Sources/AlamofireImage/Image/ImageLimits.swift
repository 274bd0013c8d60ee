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
  /// their decompression, and at least 64 MiB.
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

  /// Throws if the texts of a PNG file could take too much memory.
  func checkText(
    _ read: (_ place: Int, _ count: Int) throws(ImageError) -> [UInt8]
  ) throws(ImageError) {
    try check(.bytes, FileStructure.textSize(ofPNG: read), limit: max(bytes, 64 << 20))
  }

  /// Throws if a value exceeds its limit.
  func check(_ kind: Kind, _ actual: Int, limit: Int) throws(ImageError) {
    guard actual <= limit else { throw .limitExceeded(kind, limit: limit, actual: actual) }
  }
}
