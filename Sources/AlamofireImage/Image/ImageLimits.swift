/// Limits for an image. The head of a file is checked before memory is taken for its pixels.
///
/// ```swift
/// var limits = ImageLimits.default
/// limits.pixels = 20_000_000
/// limits.frames = 1
/// ```
public struct ImageLimits: Sendable, Equatable {
  /// The most pixels of all frames together, in a file or in the result of a filter. Default: 100 million, which take
  /// 400 megabytes of memory.
  public var pixels: Int
  /// The most frames of an animated image. Default: 1,000.
  public var frames: Int
  /// The most bytes of a file. Default: 64 MiB.
  public var bytes: Int
  /// The most time for decoding, for one filter, or for encoding. It is checked between two parts of an image; some
  /// formats are decoded as one part. Default: 20 seconds.
  public var time: Duration

  /// Makes limits. Each parameter that is not given has its default.
  public init(
    pixels: Int = 100_000_000, frames: Int = 1_000, bytes: Int = 64 << 20, time: Duration = .seconds(20)
  ) {
    self.pixels = pixels
    self.frames = frames
    self.bytes = bytes
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
    /// ``ImageLimits/time``, in milliseconds.
    case time

    var unit: String { self == .time ? "milliseconds of work" : rawValue }
  }

  /// Throws if an image would exceed the limits.
  func check(width: Int, height: Int, frames count: Int) throws(ImageError) {
    try check(.frames, count, limit: frames)
    let (area, areaOverflows) = width.multipliedReportingOverflow(by: height)
    let (total, totalOverflows) = area.multipliedReportingOverflow(by: count)
    // Eight bytes per pixel can always be counted.
    try check(.pixels, areaOverflows || totalOverflows ? .max : total, limit: min(pixels, .max / 8))
  }

  /// Throws if a value exceeds its limit.
  func check(_ kind: Kind, _ actual: Int, limit: Int) throws(ImageError) {
    guard actual <= limit else { throw .limitExceeded(kind, limit: limit, actual: actual) }
  }
}
