import Alamofire
@testable import AlamofireImage
import Foundation
import FoundationNetworking
import Testing

@Suite("Formats, limits, colours and texts of images")
struct ImageTextsTests {
  @Test("Each error says what is wrong, with its values")
  func errors() {
    let texts: [(ImageError, String)] = [
      (.unknownFormat, "The data is not an image of a known format."),
      (
        .unsupportedFormat(.webp),
        "The installed libvips cannot read or write WebP images, or their limits do not allow the format."
      ),
      (
        .limitExceeded(.pixels, limit: 7, actual: 9),
        "The image has 9 pixels, and the limit is 7. To accept it, pass larger ImageLimits."
      ),
      (
        .limitExceeded(.frames, limit: 4_096, actual: 4_097),
        "The image has 4097 frames, and the limit is 4096."
      ),
      (.limitExceeded(.scans, limit: 100, actual: 900), "The image has 900 scans, and the limit is 100."),
      (.damaged("half of it is missing"), "The image is damaged: half of it is missing."),
      (.invalidPixels, "The number of bytes does not fit the width, height and format of the pixels."),
      (.fileFailed("No such file"), "The file of the image could not be used: No such file"),
      (.encodingFailed("too wide"), "The image could not be encoded: too wide."),
      (.cancelled, "The work on the image was cancelled."),
      (
        .libraryMissing("not found"),
        "libvips cannot be loaded: not found. Install it, on Debian with: apt-get install libvips42"
      ),
    ]
    for (error, text) in texts {
      #expect(error.description == text)
      #expect(error.errorDescription == text)
      #expect((error as any Error).localizedDescription == text)
    }
  }

  @Test("The errors are cast to NSError, as the errors of requests are")
  func casts() {
    // The compiler reports such a cast of an error as one that always succeeds.
    func cast(_ value: Any) -> NSError? { value as? NSError }
    #expect(cast(ImageError.unknownFormat)?.localizedDescription == ImageError.unknownFormat.description)
    #expect(cast(AFIError.requestCancelled)?.localizedDescription == AFIError.requestCancelled.description)
  }

  @Test("Each limited value has a unit")
  func units() {
    let units: [(ImageLimits.Kind, String)] = [
      (.pixels, "pixels"), (.frames, "frames"), (.bytes, "bytes"), (.scans, "scans"),
      (.segments, "segments"), (.tags, "tags"), (.samples, "samples per pixel"),
      (.time, "milliseconds of work"),
    ]
    for (kind, unit) in units {
      #expect(kind.unit == unit)
      #expect("\(ImageError.limitExceeded(kind, limit: 1, actual: 2))".contains("has 2 \(unit), and"))
    }
  }

  @Test("The errors of downloads say what is wrong, and of which kind they are")
  func errorsOfDownloads() {
    let request = AFError.sessionDeinitialized
    let errors: [(AFIError, String, [Bool])] = [
      (.requestCancelled, "The request for the image was cancelled.", [true, false, false]),
      (
        .imageSerializationFailed(.cancelled),
        "The response cannot be decoded as an image. The work on the image was cancelled.",
        [false, true, false]
      ),
      (.alamofireError(request), String(describing: request), [false, false, true]),
    ]
    for (error, text, kinds) in errors {
      #expect(error.description == text)
      #expect(error.errorDescription == text)
      #expect((error as any Error).localizedDescription == text)
      #expect(
        [error.isRequestCancelledError, error.isImageSerializationFailedError, error.isAlamofireError]
          == kinds)
    }
    let wrapped = AFIError(AFError.invalidURL(url: "?"))
    if case .alamofireError(.invalidURL) = wrapped {} else { Issue.record("\(wrapped)") }
    let cause = AFIError(
      .responseSerializationFailed(reason: .customSerializationFailed(error: AFIError.requestCancelled)))
    #expect(cause.isRequestCancelledError)
  }

  @Test("Each format has its name, its type, its reader, and frames or none")
  func formats() {
    let formats: [(ImageFormat, name: String, type: String, loader: String, isAnimated: Bool)] = [
      (.jpeg, "JPEG", "image/jpeg", "VipsForeignLoadJpeg", false),
      (.png, "PNG", "image/png", "VipsForeignLoadPng", false),
      (.webp, "WebP", "image/webp", "VipsForeignLoadWebp", true),
      (.avif, "AVIF", "image/avif", "VipsForeignLoadHeif", false),
      (.heic, "HEIC", "image/heic", "VipsForeignLoadHeif", false),
      (.gif, "GIF", "image/gif", "VipsForeignLoadNsgif", true),
      (.tiff, "TIFF", "image/tiff", "VipsForeignLoadTiff", false),
    ]
    #expect(formats.map(\.0) == ImageFormat.allCases)
    for (format, name, type, loader, isAnimated) in formats {
      #expect((format.name, format.mediaType, format.loader) == (name, type, loader))
      #expect(format.canBeAnimated == isAnimated, "\(format)")
    }
  }

  @Test("A format is known by all bytes of its signature, and by nothing else")
  func signatures() {
    let signatures: [([UInt8], ImageFormat)] = [
      ([0xff, 0xd8, 0xff], .jpeg), ([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a], .png),
      (Array("GIF87a".utf8), .gif), (Array("GIF89a".utf8), .gif), ([0x49, 0x49, 0x2a, 0], .tiff),
      ([0x4d, 0x4d, 0, 0x2a], .tiff), (Array("RIFF".utf8) + [1, 2, 3, 4] + Array("WEBP".utf8), .webp),
    ]
    for (signature, format) in signatures {
      #expect(ImageFormat(data: Data(signature)) == format, "\(signature)")
      #expect(ImageFormat(data: Data(signature + [9, 9])) == format, "\(signature) and more")
      #expect(ImageFormat(data: Data(signature.dropLast())) == nil, "\(signature) without its end")
      let isLength = { (place: Int) in format == .webp && (4..<8).contains(place) }
      for place in signature.indices where !isLength(place) {
        var other = signature
        other[place] ^= 0x20
        #expect(ImageFormat(data: Data(other + [9, 9])) == nil, "\(signature) with another byte \(place)")
      }
    }
  }

  @Test("A file of HEIF has the format of its brands, at their places")
  func brands() {
    func format(_ brands: [String], box: String = "ftyp") -> ImageFormat? {
      // The version is between the major brand and the compatible ones.
      let text = "\0\0\0\u{20}\(box)\(brands[0])vers" + brands.dropFirst().joined()
      return ImageFormat(data: Data(text.utf8))
    }
    for (brand, expected) in [
      ("avif", ImageFormat.avif), ("avis", .avif), ("heic", .heic), ("heix", .heic), ("mif1", .heic),
      ("heim", .heic), ("heis", .heic), ("hevc", .heic), ("hevx", .heic), ("hevm", .heic), ("hevs", .heic),
    ] {
      #expect(format([brand]) == expected, "\(brand)")
      for place in 1...4 {
        let others = Array(repeating: "xxxx", count: place)
        #expect(format(others + [brand]) == expected, "\(brand) as compatible brand \(place)")
        #expect(format(others + [brand, "yyyy"]) == expected, "\(brand) and another")
      }
      #expect(format(["xxxx", "xxxx", "xxxx", "xxxx", "xxxx", brand]) == nil, "\(brand) is too late")
      #expect(format([brand], box: "moov") == nil, "\(brand) in another box")
      // Between the places of brands.
      #expect(ImageFormat(data: Data("\0\0\0\u{20}ftypxxxx\(brand)xxxx".utf8)) == nil, "\(brand) as version")
      #expect(ImageFormat(data: Data("\0\0\0\u{20}ftypxxxxversxx\(brand)xx".utf8)) == nil, "\(brand) shifted")
    }
    #expect(format(["avif", "mif1", "heic"]) == .avif)
    #expect(format(["mif1", "mif1", "avif"]) == .avif)
    // A file for readers of HEVC must not be taken for AVIF, which may be allowed where HEIC is not.
    for major in ["heic", "heix", "heim", "heis", "hevc", "hevx", "hevm", "hevs"] {
      #expect(format([major, "avif"]) == .heic, "\(major)")
      #expect(format(["mif1", "avif", major]) == .heic, "\(major) and AVIF are compatible")
    }
    #expect(format(["isom", "mp42"]) == nil)
    #expect(format(["msf1", "mif2"]) == nil)
  }

  @Test("Limits keep what is given, and have their defaults for the rest")
  func limits() {
    func expect(
      _ limits: ImageLimits, _ pixels: Int = 100_000_000, _ frames: Int = 1_000, _ bytes: Int = 67_108_864,
      _ formats: Set<ImageFormat> = [.jpeg, .png, .webp, .gif, .tiff], _ time: Duration = .seconds(20)
    ) {
      #expect((limits.pixels, limits.frames, limits.bytes) == (pixels, frames, bytes))
      #expect(limits.formats == formats)
      #expect(limits.time == time)
    }
    expect(.default)
    expect(ImageLimits())
    for value in [1, 200_000_000] {
      expect(ImageLimits(pixels: value), value)
      expect(ImageLimits(frames: value), 100_000_000, value)
      expect(ImageLimits(bytes: value), 100_000_000, 1_000, value)
    }
    expect(ImageLimits(formats: [.avif]), 100_000_000, 1_000, 67_108_864, [.avif])
    for time in [Duration.seconds(1), .seconds(60)] {
      let limits = ImageLimits(time: time)
      expect(limits, 100_000_000, 1_000, 67_108_864, [.jpeg, .png, .webp, .gif, .tiff], time)
    }
  }

  @Test("A value at its limit is allowed, and one more is refused by its kind")
  func bounds() throws {
    let limits = ImageLimits(pixels: 24, frames: 4)
    try limits.check(width: 3, height: 2, frames: 4)
    #expect(throws: ImageError.limitExceeded(.pixels, limit: 24, actual: 28)) {
      try limits.check(width: 7, height: 2, frames: 2)
    }
    #expect(throws: ImageError.limitExceeded(.pixels, limit: 24, actual: 25)) {
      try limits.check(width: 25, height: 1, frames: 1)
    }
    #expect(throws: ImageError.limitExceeded(.frames, limit: 4, actual: 5)) {
      try limits.check(width: 100, height: 100, frames: 5)
    }
    try ImageLimits(frames: 10_000).check(width: 1, height: 1, frames: 4_096)
    for (width, height, frames) in [(Int.max, 2, 1), (2, .max, 1), (.max / 2, 1, 3), (1 << 31, 1 << 31, 3)] {
      #expect(throws: ImageError.limitExceeded(.pixels, limit: 24, actual: .max)) {
        try limits.check(width: width, height: height, frames: frames)
      }
    }
    for kind in [ImageLimits.Kind.bytes, .scans, .segments, .tags, .samples, .time] {
      try limits.check(kind, 8, limit: 8)
      #expect(throws: ImageError.limitExceeded(kind, limit: 8, actual: 9)) {
        try limits.check(kind, 9, limit: 8)
      }
    }
  }

  @Test("A colour has two digits for each sample, and those of its alpha unless it is opaque")
  func colours() {
    let colours: [(ImageColor, String)] = [
      (ImageColor(red: 255, green: 127, blue: 0), "#ff7f00"),
      (ImageColor(red: 0, green: 15, blue: 16), "#000f10"),
      (ImageColor(red: 1, green: 2, blue: 3, alpha: 254), "#010203fe"),
      (ImageColor(red: 1, green: 2, blue: 3, alpha: 0), "#01020300"),
      (ImageColor(red: 1, green: 2, blue: 3, alpha: 255), "#010203"),
    ]
    for (colour, hex) in colours { #expect(colour.hex == hex) }
    var colour = ImageColor(red: 1, green: 2, blue: 3)
    #expect((colour.red, colour.green, colour.blue, colour.alpha) == (1, 2, 3, 255))
    let same = colour
    colour.alpha = 4
    #expect(colour != same)
    #expect(Set([colour, same, same]).count == 2)
  }

  @Test("An image is described by its size, its scale, its frames and its format")
  func descriptions() throws {
    let image = try Drawing(gradientOf: 7, 5).image()
    #expect("\(image)" == "Image 7 × 5")
    #expect(try "\(Drawing(gradientOf: 7, 5).image(scale: 0.5))" == "Image 7 × 5 at 0.5")
    #expect(try "\(Drawing(gradientOf: 7, 5).image(scale: 1.5))" == "Image 7 × 5 at 1.5")
    #expect(try "\(Image(frames: [image, image, image]))" == "Image 7 × 5, 3 frames")
    #expect(try "\(Image(data: image.encode(as: .webp), scale: 2))" == "Image 7 × 5 at 2.0 WebP")
    #expect(try "\(Image(data: image.encode(as: .png)))" == "Image 7 × 5 PNG")
    let file = try Image(frames: [image, image.blurred(sigma: 9)]).encode(as: .gif)
    #expect(try "\(Image(data: file, scale: 3))" == "Image 7 × 5 at 3.0, 2 frames GIF")
  }
}
