import CVips
public import Foundation

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
