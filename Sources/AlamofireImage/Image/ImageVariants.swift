public import Foundation

/// Several sizes of an image, for which it is decoded only once.
///
/// The largest size is made from the image, and the others from that.
///
/// ```swift
/// let sizes = ImageVariants(
///   .init("large", longestSide: 1_600), .init("list", longestSide: 400),
///   .init("avatar", width: 64, height: 64))
/// let photo = try Image(data: data)
/// let files = try await sizes.files(of: photo, as: .jpeg)
/// print(files["avatar"]?.count ?? 0)
/// ```
public struct ImageVariants: Sendable, Equatable {
  /// One size.
  public struct Variant: Sendable, Hashable {
    /// The name of the result.
    public let name: String
    /// The size in pixels that the result fills, or the longest side of it.
    let target: Target

    enum Target: Hashable {
      case inside(Int)
      case filling(Int, Int)
    }

    /// Makes a size with the proportions of the image.
    ///
    /// - Parameters:
    ///   - name: The name of the result.
    ///   - longestSide: In pixels, at least 1. Images that are smaller keep their size.
    public init(_ name: String, longestSide: Int) {
      self.name = name
      target = .inside(max(1, longestSide))
    }

    /// Makes an exact size, which the image fills; what is too much is cut off on both sides.
    ///
    /// - Parameters:
    ///   - name: The name of the result.
    ///   - width: In pixels, at least 1.
    ///   - height: In pixels, at least 1.
    public init(_ name: String, width: Int, height: Int) {
      self.name = name
      target = .filling(max(1, width), max(1, height))
    }

    func plan(width: Int, height: Int) -> ScalingPlan {
      switch target {
      case .inside(let side):
        let size = ScalingPlan.shrinking(width: width, height: height, toSide: side)
        return ScalingPlan(
          .stretch, fromWidth: width, height: height, toWidth: size.width, height: size.height)
      case .filling(let toWidth, let toHeight):
        return ScalingPlan(.fill, fromWidth: width, height: height, toWidth: toWidth, height: toHeight)
      }
    }
  }

  /// The sizes.
  public let variants: [Variant]

  /// Makes the list. Of two variants with the same name, the last one counts.
  public init(_ variants: [Variant]) { self.variants = variants }
  /// Makes the list. Of two variants with the same name, the last one counts.
  public init(_ variants: Variant...) { self.init(variants) }

  /// Returns the image in all sizes, by name. It is decoded on the calling thread.
  ///
  /// - Throws: ``ImageError``.
  public func make(of image: Image) throws(ImageError) -> [String: Image] {
    // A plan for a shape that is much longer than the image would make the source too large for the others.
    let plans = variants.map { ($0.name, $0.plan(width: image.pixelWidth, height: image.pixelHeight)) }
    guard let width = plans.map(\.1.width).max(), let height = plans.map(\.1.height).max() else { return [:] }
    for (_, plan) in plans {
      try image.limits.check(width: plan.canvasWidth, height: plan.canvasHeight, frames: image.frameCount)
    }
    let source = ImageContent(
      try image.content.stretched(
        width: min(width, image.pixelWidth), height: min(height, image.pixelHeight)),
      image.limits)
    var results: [String: Image] = [:]
    for (name, plan) in plans {
      results[name] = Image(try Image.scaled(source, plan), like: image, scale: 1)
    }
    return results
  }

  /// Returns the image in all sizes, by name, made on a thread for images. Ends early if the task is cancelled.
  ///
  /// - Throws: ``ImageError``.
  public func images(of image: Image) async throws -> [String: Image] {
    try await ImageQueue.shared.run(limit: image.limits.time) { try make(of: image) }
  }

  /// Returns the bytes of a file for each size, by name, made on a thread for images. Ends early if the task is
  /// cancelled.
  ///
  /// - Parameters:
  ///   - image: The image.
  ///   - format: The format of the files.
  ///   - quality: From 0 to 1, for formats that lose details. Default: 0.8.
  /// - Throws: ``ImageError``.
  public func files(
    of image: Image, as format: ImageFormat, quality: Double = 0.8
  ) async throws -> [String: Data] {
    try await ImageQueue.shared.run(limit: image.limits.time) {
      try make(of: image).mapValues { try $0.encode(as: format, quality: quality) }
    }
  }

  /// Returns a file's image in all sizes, by name, made on a thread for images.
  ///
  /// JPEG and PNG files are decoded row by row, so that the memory does not grow with the file. Progressive and
  /// interlaced ones are read into memory, and so are files of other formats. Ends early if the task is cancelled.
  ///
  /// - Parameters:
  ///   - url: The URL of a regular file. It is open until the function returns. If it changes during that time, the
  ///     result is a mixture or an error.
  ///   - limits: What the image may cost.
  /// - Throws: ``ImageError``.
  public func images(ofFile url: URL, limits: ImageLimits = .default) async throws -> [String: Image] {
    try await ImageQueue.shared.run(limit: limits.time) { try make(of: Image(streaming: url, limits)) }
  }

  /// Returns the bytes of a file for each size of another file's image, by name. It is read as
  /// ``images(ofFile:limits:)`` does.
  ///
  /// ```swift
  /// let sizes = ImageVariants(.init("list", longestSide: 400))
  /// let photo = URL(fileURLWithPath: "photo.jpeg")
  /// if let thumbnail = try? await sizes.files(ofFile: photo, as: .webp)["list"] {
  ///   print(thumbnail.count)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - url: The URL of a regular file.
  ///   - format: The format of the files.
  ///   - quality: From 0 to 1, for formats that lose details. Default: 0.8.
  ///   - limits: What the image may cost.
  /// - Throws: ``ImageError``.
  public func files(
    ofFile url: URL, as format: ImageFormat, quality: Double = 0.8, limits: ImageLimits = .default
  ) async throws -> [String: Data] {
    try await ImageQueue.shared.run(limit: limits.time) {
      try make(of: Image(streaming: url, limits)).mapValues { try $0.encode(as: format, quality: quality) }
    }
  }
}
