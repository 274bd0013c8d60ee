import Alamofire
import AlamofireImage
import Foundation
import Testing

@Suite("Images")
struct ImageTests {
  @Test("The size in points is that in pixels, divided by the scale")
  func size() throws {
    let image = try Drawing(gradientOf: 40, 30).image(scale: 2)
    #expect(image.size == CGSize(width: 20, height: 15))
    #expect((image.pixelWidth, image.pixelHeight) == (40, 30))
    #expect(image.scale == 2)
    #expect("\(image)" == "Image 40 × 30 at 2.0")
  }

  @Test("A scale that is not positive counts as 1", arguments: [0, -2, CGFloat.nan])
  func badScale(scale: CGFloat) throws {
    #expect(try Drawing(gradientOf: 4, 4).image(scale: scale).scale == 1)
  }

  @Test("Raw pixels come back as they were given")
  func rawPixels() throws {
    let rgba = Drawing(5, 3, bands: 4) { x, y in [UInt8(x), UInt8(y), 7, UInt8(x * y)] }
    #expect(try rgba.image().pixels(as: .rgba) == Data(rgba.samples))
    let grey = Drawing(3, 2, bands: 1) { x, y in [UInt8(10 * x + y)] }
    #expect(try grey.image().pixels(as: .grey) == Data(grey.samples))
    #expect(try grey.image().pixel(2, 1) == [21, 21, 21, 255])
    #expect(try Drawing(of: [100, 150, 200], 1, 1).image().pixels(as: .grey) == Data([141]))
  }

  @Test("Pixels of the wrong count are refused")
  func invalidPixels() {
    for (count, width, height) in [(11, 2, 2), (13, 2, 2), (0, 0, 0), (12, -2, -2), (0, 0, 4)] {
      #expect(throws: ImageError.invalidPixels, "\(count) bytes for \(width) × \(height)") {
        try Image(pixels: Data(count: count), width: width, height: height, format: .rgb)
      }
    }
    #expect(throws: ImageError.limitExceeded(.pixels, limit: 100_000_000, actual: .max)) {
      try Image(pixels: Data(), width: .max, height: .max, format: .rgb)
    }
  }

  @Test("A file is decoded only when its pixels are needed")
  func laziness() throws {
    let image = try Image(data: Drawing(gradientOf: 64, 32).file(.png))
    #expect(image.format == .png)
    #expect((image.pixelWidth, image.pixelHeight, image.frameCount) == (64, 32, 1))
    #expect(!image.af.isInflated)
    let copy = image
    _ = image.af.imageScaled(to: CGSize(width: 8, height: 4))
    #expect(!image.af.isInflated)
    image.af.inflate()
    #expect(copy.af.isInflated)
  }

  @Test("Lossless formats return the same pixels", arguments: [ImageFormat.png, .tiff, .webp])
  func lossless(format: ImageFormat) throws {
    let original = try Drawing(gradientOf: 33, 21, bands: 4).image()
    let read = try Image(data: original.encode(as: format, isLossless: true))
    #expect(read.format == format)
    #expect(read == original)
  }

  @Test("JPEG and WebP with losses stay close", arguments: [ImageFormat.jpeg, .webp])
  func lossy(format: ImageFormat) throws {
    let original = try Drawing(gradientOf: 64, 48).image()
    let fine = try original.encode(as: format, quality: 0.95)
    let coarse = try original.encode(as: format, quality: 0.1)
    #expect(coarse.count < fine.count)
    #expect(try Image(data: fine).greatestDifference(to: original) <= 12)
  }

  @Test("Each format that can be written can be read", arguments: ImageFormat.allCases)
  func formats(format: ImageFormat) throws {
    let original = try Drawing(gradientOf: 64, 64).image()
    let result = Result { try original.encode(as: format) }
    if case .failure(let error) = result, error as? ImageError == .unsupportedFormat(format) {
      // The encoder is a package of its own: of HEIC everywhere, of AVIF on some systems.
      #expect(format == .heic || format == .avif)
      return
    }
    let file = try result.get()
    #expect(ImageFormat(data: file) == format)
    if format == .heic || format == .avif {
      #expect(throws: ImageError.unsupportedFormat(format)) { try Image(data: file) }
    }
    let read = try Image(data: file, limits: ImageLimits(formats: Set(ImageFormat.allCases)))
    #expect((read.pixelWidth, read.pixelHeight) == (64, 64))
    #expect(try read.greatestDifference(to: original) <= 70)
  }

  @Test("Equality compares pixels, whatever the file")
  func equality() throws {
    let drawing = Drawing(gradientOf: 16, 16)
    let image = try drawing.image()
    #expect(image == (try Image(data: drawing.file(.png))))
    #expect(image == (try Drawing(gradientOf: 16, 16, bands: 4).image()))
    #expect(image != (try drawing.image(scale: 2)))
    #expect(image != (try Drawing(of: [1, 2, 3], 16, 16).image()))
    #expect(image != (try Drawing(gradientOf: 16, 15).image()))
    let large = try Drawing(gradientOf: 200, 200).file(.png)
    let damaged = try Image(data: large.prefix(large.count / 2))
    let copy = damaged
    #expect(damaged == copy)
    #expect(damaged != image)
  }

  @Test("A file is read from a URL, and written to one as a whole")
  func files() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("images-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let file = folder.appendingPathComponent("picture.png")
    let original = try Drawing(gradientOf: 20, 10).image()
    try original.write(to: file, as: .png)
    #expect(try Image(contentsOf: file) == original)
    let count = try Data(contentsOf: file).count
    #expect(throws: ImageError.limitExceeded(.bytes, limit: 10, actual: count)) {
      try Image(contentsOf: file, limits: ImageLimits(bytes: 10))
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["picture.png"])
    for path in ["/dev/zero", folder.path] {
      #expect { try Image(contentsOf: URL(fileURLWithPath: path)) } throws: { error in
        if case ImageError.fileFailed = error { true } else { false }
      }
    }
    #expect(throws: ImageError.self) {
      try Image(contentsOf: #require(URL(string: "http://127.0.0.1:9/a.png")))
    }
    let missing = folder.appendingPathComponent("none/picture.png")
    #expect { try original.write(to: missing, as: .png) } throws: { error in
      if case ImageError.fileFailed = error { true } else { false }
    }
    #expect { try Image(contentsOf: missing) } throws: { error in
      if case ImageError.fileFailed = error { true } else { false }
    }
  }

  @Test("Metadata are not written")
  func metadata() throws {
    let file = try Drawing(gradientOf: 16, 16).file(.jpeg)
    let secret = Data("Exif\0\0MM\0*\0\0\0\u{8}\0\0".utf8) + Data("at home".utf8)
    let length = UInt16(secret.count + 2)
    let marked =
      file.prefix(2) + Data([0xff, 0xe1, UInt8(length >> 8), UInt8(length & 255)]) + secret
      + file.dropFirst(2)
    let written = try Image(data: marked).encode(as: .jpeg)
    #expect(marked.range(of: Data("at home".utf8)) != nil)
    #expect(written.range(of: Data("at home".utf8)) == nil)
    #expect(written.range(of: Data("Exif".utf8)) == nil)
  }
}

@Suite("Images with several frames")
struct AnimatedImageTests {
  /// Makes a GIF of two frames, red and green, with delays of 70 and 0 milliseconds, that is repeated three times.
  /// The second frame can be clear.
  private func animation(isSecondClear: Bool = false) -> Data {
    var bytes: [UInt8] = Array("GIF89a".utf8) + [2, 0, 2, 0, 0x80, 0, 0, 255, 0, 0, 0, 255, 0]
    bytes += [0x21, 0xff, 11] + Array("NETSCAPE2.0".utf8) + [3, 1, 3, 0, 0]
    for (delay, codes) in [(UInt8(7), [UInt8(0x04), 0, 5]), (0, [0x4c, 0x12, 5])] {
      bytes += [0x21, 0xf9, 4, isSecondClear && delay == 0 ? 1 : 0, delay, 0, 1, 0]
      bytes += [0x2c, 0, 0, 0, 0, 2, 0, 2, 0, 0, 2, 3] + codes + [0]
    }
    return Data(bytes + [0x3b])
  }

  private let red: [UInt8] = [255, 0, 0, 255]
  private let green: [UInt8] = [0, 255, 0, 255]

  @Test("The frames, their durations and the repetitions are read")
  func reading() throws {
    let image = try Image(data: animation())
    #expect((image.pixelWidth, image.pixelHeight, image.frameCount) == (2, 2, 2))
    #expect(image.frameDurations == [.milliseconds(70), .milliseconds(100)])
    #expect(image.loopCount == 4)
    #expect(try image.frame(0)?.pixel(1, 1) == red)
    #expect(try image.frame(1)?.pixel(0, 0) == green)
    #expect(try image.frame(2) == nil)
    #expect(try image.frame(-1) == nil)
    #expect("\(image)" == "Image 2 × 2, 2 frames GIF")
  }

  @Test("An animation has alpha if only its second frame has it, also before it is decoded")
  func alphaOfSecondFrame() throws {
    #expect(try Image(data: animation()).af.isOpaque)
    let image = try Image(data: animation(isSecondClear: true))
    #expect(image.af.containsAlphaComponent)
    #expect(!image.af.isInflated)
    image.af.inflate()
    #expect(image.af.isInflated && image.af.containsAlphaComponent)
  }

  @Test("Filters keep the frames", arguments: [false, true])
  func filters(isInflated: Bool) throws {
    let image = try Image(data: animation())
    if isInflated { image.af.inflate() }
    let size = CGSize(width: 8, height: 6)
    for scaled in [
      image.af.imageScaled(to: size), image.af.imageAspectScaled(toFill: size),
      BlurFilter(blurRadius: 1).filter(image.af.imageScaled(to: size)),
      image.af.imageScaled(to: size).af.imageRounded(withCornerRadius: 2),
      image.af.imageScaled(to: size).af.imageRoundedIntoCircle(),
    ] {
      #expect(scaled.frameCount == 2)
      #expect(scaled.pixelHeight == 6)
      #expect(try scaled.frame(0)?.pixel(3, 3) == red)
      #expect(try scaled.frame(1)?.pixel(3, 3) == green)
      #expect(scaled.frameDurations == image.frameDurations)
      #expect(scaled.loopCount == 4)
    }
  }

  @Test(
    "Formats with frames write all of them, others the first",
    arguments: [ImageFormat.gif, .webp, .png, .jpeg])
  func writing(format: ImageFormat) throws {
    let image = try Image(data: animation())
    let read = try Image(data: image.encode(as: format, isLossless: true))
    #expect((read.pixelWidth, read.pixelHeight) == (2, 2))
    guard format == .gif || format == .webp else {
      #expect(read.frameCount == 1)
      return
    }
    #expect(read.frameCount == 2)
    #expect(read.frameDurations.first == .milliseconds(70))
    #expect(read.loopCount == 4)
    #expect(try read.frame(1)?.pixel(0, 0) == green)
  }

  @Test("Too many frames are refused")
  func limit() {
    #expect(throws: ImageError.limitExceeded(.frames, limit: 1, actual: 2)) {
      try Image(data: animation(), limits: ImageLimits(frames: 1))
    }
    #expect(throws: ImageError.limitExceeded(.pixels, limit: 7, actual: 8)) {
      try Image(data: animation(), limits: ImageLimits(pixels: 7))
    }
  }
}
