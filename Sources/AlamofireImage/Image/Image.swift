import CVips
public import Foundation

/// A picture, or an animation of several frames.
///
/// A copy costs nothing, because all copies share the pixels, which never change. An image that is made from a file
/// keeps its bytes and reads only its head. The pixels are decoded when they are needed, and a filter that makes the
/// image smaller decodes only what it needs. Pixels are in sRGB with 8 bits per sample, and the orientation of the
/// camera is applied.
///
/// ```swift
/// let red = Data(repeating: 200, count: 40 * 30 * 3)
/// let image = try Image(pixels: red, width: 40, height: 30, format: .rgb)
/// let thumbnail = image.af.imageAspectScaled(toFit: CGSize(width: 20, height: 20))
/// print(thumbnail.size, try thumbnail.encode(as: .png).count)
/// ```
public struct Image: Sendable {
  let content: ImageContent
  /// Pixels per point. It changes ``size``, and no pixel.
  public let scale: CGFloat

  init(_ content: ImageContent, scale: CGFloat) {
    self.content = content
    self.scale = scale > 0 ? scale : 1
  }

  init(_ pixels: PixelBuffer, like image: Image, scale: CGFloat? = nil) {
    self.init(ImageContent(pixels, image.content.limits), scale: scale ?? image.scale)
  }

  /// Reads the head of the bytes of a file. Nothing is decoded yet, so that damage behind the head is found later.
  ///
  /// - Parameters:
  ///   - data: A file of a format in ``ImageFormat``.
  ///   - scale: Pixels per point. Default: 1, which also stands for values that are not positive.
  ///   - limits: What the image may cost, now and in all that is made from it.
  /// - Throws: ``ImageError``.
  public init(data: Data, scale: CGFloat = 1, limits: ImageLimits = .default) throws(ImageError) {
    self.init(try ImageContent(data, limits), scale: scale)
  }

  /// Reads a file into memory, and its head.
  ///
  /// - Parameters:
  ///   - url: The URL of a regular file.
  ///   - scale: Pixels per point. Default: 1.
  ///   - limits: What the image may cost. A file with more bytes is not read.
  /// - Throws: ``ImageError``.
  public init(contentsOf url: URL, scale: CGFloat = 1, limits: ImageLimits = .default) throws(ImageError) {
    let data = try ImageFile(url, limits).bytes(limits)
    try self.init(data: data, scale: scale, limits: limits)
  }

  /// Reads the head of a file, which stays open if it can be decoded row by row.
  init(streaming url: URL, _ limits: ImageLimits) throws(ImageError) {
    self.init(try ImageContent(streaming: ImageFile(url, limits), limits), scale: 1)
  }

  /// The order of the samples of raw pixels: 8 bits each, in sRGB, row by row without gaps.
  public enum PixelFormat: Sendable {
    /// One sample of grey per pixel.
    case grey
    /// Red, green, blue.
    case rgb
    /// Red, green, blue, alpha; the colours are not multiplied by alpha.
    case rgba

    var bytes: Int { self == .grey ? 1 : self == .rgb ? 3 : 4 }
  }

  /// Makes an image from raw pixels, which are copied.
  ///
  /// - Parameters:
  ///   - pixels: Rows from top to bottom.
  ///   - width: Pixels of a row, at least 1.
  ///   - height: Rows, at least 1.
  ///   - format: The samples of a pixel.
  ///   - scale: Pixels per point. Default: 1.
  ///   - limits: What the image may cost.
  /// - Throws: ``ImageError/invalidPixels`` if the count of bytes does not fit the width, the height and the format.
  public init(
    pixels: Data, width: Int, height: Int, format: PixelFormat, scale: CGFloat = 1,
    limits: ImageLimits = .default
  ) throws(ImageError) {
    guard width > 0, height > 0 else { throw .invalidPixels }
    try limits.check(width: width, height: height, frames: 1)
    guard pixels.count == width * height * format.bytes else { throw .invalidPixels }
    let layout = PixelLayout(width: width, height: height, frames: 1, bands: format == .rgba ? 4 : 3)
    let buffer = try PixelBuffer(layout) { target in
      guard format == .grey else { return target.copyBytes(from: pixels) }
      for (index, value) in pixels.enumerated() {
        for band in 0..<3 { target[index * 3 + band] = value }
      }
    }
    self.init(ImageContent(buffer, limits), scale: scale)
  }

  /// The size in points: the pixels divided by ``scale``.
  public var size: CGSize {
    CGSize(width: CGFloat(pixelWidth) / scale, height: CGFloat(pixelHeight) / scale)
  }

  /// The number of pixels of a row.
  public var pixelWidth: Int { content.facts.width }
  /// The number of rows of one frame.
  public var pixelHeight: Int { content.facts.height }
  /// The number of frames: 1, unless the image is animated.
  public var frameCount: Int { content.facts.frames }
  /// The number of times that the frames are shown; 0 means without end.
  public var loopCount: Int { content.facts.loop }
  /// The format of the file that the image was made from, or `nil` for pixels and the results of filters.
  public var format: ImageFormat? { content.facts.format }
  /// The limits of the image and of all that is made from it.
  public var limits: ImageLimits { content.limits }

  /// The time for which each frame is shown. Frames without a duration in the file have 100 milliseconds, as in
  /// browsers.
  public var frameDurations: [Duration] {
    guard frameCount > 1 else { return [] }
    let delays = content.facts.delays
    return (0..<frameCount).map { index in
      .milliseconds(index < delays.count && delays[index] > 0 ? Int(delays[index]) : 100)
    }
  }

  /// Makes an animated image from frames.
  ///
  /// - Parameters:
  ///   - frames: At least one. All have the size of the first, which also gives the scale and the limits. Animations
  ///     contribute their first frames.
  ///   - durations: How long each frame is shown, in milliseconds at least. Frames without one have 100 milliseconds.
  ///   - loopCount: How often the frames are shown; 0, the default, means without end.
  /// - Throws: ``ImageError/invalidPixels`` if there is no frame, or if one has another size.
  public init(frames: [Image], durations: [Duration] = [], loopCount: Int = 0) throws(ImageError) {
    guard let first = frames.first else { throw .invalidPixels }
    var layout = PixelLayout(width: first.pixelWidth, height: first.pixelHeight, frames: 1, bands: 4)
    try first.limits.check(width: layout.width, height: layout.height, frames: frames.count)
    var buffers: [PixelBuffer] = []
    for frame in frames {
      guard let pixels = try (frame.frame(0) ?? frame).content.decoded().withAlpha() as PixelBuffer?,
        pixels.layout == layout
      else { throw .invalidPixels }
      buffers.append(pixels)
    }
    layout.frames = frames.count
    let delays = durations.prefix(frames.count).map {
      Int32(min(max(0, ($0 / .milliseconds(1)).rounded()), Double(Int32.max)))
    }
    let buffer = try PixelBuffer(layout, delays: delays, loop: max(0, loopCount)) { target in
      for (index, pixels) in buffers.enumerated() {
        pixels.copy(to: target, at: index * layout.frameBytes)
      }
    }
    self.init(ImageContent(buffer, first.limits), scale: first.scale)
  }

  /// Returns one frame as an image, which is decoded with all others.
  ///
  /// - Parameter index: At least 0, and less than ``frameCount``.
  /// - Returns: `nil` if there is no such frame.
  /// - Throws: ``ImageError``.
  public func frame(_ index: Int) throws(ImageError) -> Image? {
    guard index >= 0, index < frameCount else { return nil }
    return Image(try content.decoded().frame(index), like: self)
  }

  /// Returns the raw pixels of all frames, one below the other. The image is decoded if it was not.
  ///
  /// - Parameter format: `.rgb` drops the alpha; `.grey` is the luma of Rec. 601.
  /// - Throws: ``ImageError``.
  public func pixels(as format: PixelFormat) throws(ImageError) -> Data {
    let pixels = try content.decoded()
    if format == .rgba { return try pixels.withAlpha().data }
    if format == .rgb, !pixels.layout.hasAlpha { return pixels.data }
    let bands = pixels.layout.bands
    var result = Data(capacity: pixels.layout.byteCount / bands * format.bytes)
    pixels.withBytes { source in
      for pixel in stride(from: 0, to: source.count, by: bands) {
        let (red, green, blue) = (source[pixel], source[pixel + 1], source[pixel + 2])
        if format == .rgb {
          result.append(contentsOf: [red, green, blue])
        } else {
          let luma: Int = 299 * Int(red) + 587 * Int(green) + 114 * Int(blue)
          result.append(UInt8((luma + 500) / 1_000))
        }
      }
    }
    return result
  }

  /// The most bytes that the decoded image takes.
  var decodedByteCount: Int { pixelWidth * pixelHeight * frameCount * 4 }
}

extension Image: Equatable {
  /// Whether two images show the same: the same pixels of all frames, and the same scale.
  ///
  /// Both are decoded, unless they are copies or have the same file. An image that cannot be decoded equals only those.
  public static func == (first: Image, second: Image) -> Bool {
    guard first.scale == second.scale else { return false }
    if first.content === second.content { return true }
    guard
      (first.pixelWidth, first.pixelHeight, first.frameCount)
        == (second.pixelWidth, second.pixelHeight, second.frameCount)
    else { return false }
    if let data = first.content.data, data == second.content.data { return true }
    guard let left = try? first.content.decoded(), let right = try? second.content.decoded() else {
      return false
    }
    return left.isEqual(to: right)
  }
}

extension Image: CustomStringConvertible {
  /// The size, the scale, the frames and the format, such as `Image 400 × 300 JPEG`.
  public var description: String {
    var text = "Image \(pixelWidth) × \(pixelHeight)"
    if scale != 1 { text += " at \(scale)" }
    if frameCount > 1 { text += ", \(frameCount) frames" }
    if let format { text += " \(format.name)" }
    return text
  }
}

extension Image {
  /// Returns the bytes of a file with the image, without metadata: no place, camera, thumbnail or profile.
  ///
  /// Where the format has no transparency, the background is black. Where it has no frames, only the first is written.
  ///
  /// - Parameters:
  ///   - format: The format of the file.
  ///   - quality: From 0 to 1, for formats that lose details. Default: 0.8.
  ///   - isLossless: Whether WebP, AVIF and HEIC keep each pixel. Default: `false`.
  /// - Throws: ``ImageError/unsupportedFormat(_:)`` if the system's libvips cannot write the format, and other
  ///   errors of decoding and encoding.
  public func encode(
    as format: ImageFormat, quality: Double = 0.8, isLossless: Bool = false
  ) throws(ImageError) -> Data {
    guard format.canBeWritten else {
      try Vips.load()
      throw .unsupportedFormat(format)
    }
    let image = format.canBeAnimated || frameCount == 1 ? self : try frame(0) ?? self
    let work = image.content.work
    let percent = quality > 0 ? Int32(min(1, quality) * 99 + 1) : 1
    return try image.content.decoded().withImage(work) { source throws(ImageError) in
      var count = 0
      let memory = cvips_encode(source.reference, format.encoder, percent, isLossless, &count)
      guard let memory else {
        throw work.failure ?? .encodingFailed(Vips.takeError())
      }
      defer { cvips_free(memory) }
      return Data(bytes: memory, count: count)
    }
  }

  /// Writes a file with the image. The file appears in full or not at all.
  ///
  /// - Parameters:
  ///   - url: The URL of the file, which is replaced if it exists.
  ///   - format: The format of the file.
  ///   - quality: From 0 to 1, for formats that lose details. Default: 0.8.
  ///   - isLossless: Whether WebP, AVIF and HEIC keep each pixel. Default: `false`.
  /// - Throws: ``ImageError``.
  public func write(
    to url: URL, as format: ImageFormat, quality: Double = 0.8, isLossless: Bool = false
  ) throws(ImageError) {
    let data = try encode(as: format, quality: quality, isLossless: isLossless)
    do {
      try data.write(to: url, options: .atomic)
    } catch {
      throw .fileFailed(error.localizedDescription)
    }
  }

  /// Calls ``encode(as:quality:isLossless:)`` on a thread for images. Ends early if the task is cancelled.
  public func encoded(
    as format: ImageFormat, quality: Double = 0.8, isLossless: Bool = false
  ) async throws -> Data {
    try await ImageQueue.shared.run(limit: limits.time) {
      try encode(as: format, quality: quality, isLossless: isLossless)
    }
  }
}
