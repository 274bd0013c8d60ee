import CVips
public import Foundation

/// A format of image files.
///
/// Other formats that libvips or ImageMagick can read are refused, because their decoders were not written for files of
/// strangers.
public enum ImageFormat: String, Sendable, CaseIterable {
  /// JPEG (ISO 10918). It has neither transparency nor frames.
  case jpeg
  /// PNG (ISO 15948). It is lossless.
  case png
  /// WebP (RFC 9649). It can be animated.
  case webp
  /// AVIF: AV1 in HEIF.
  case avif
  /// HEIC: HEVC in HEIF.
  case heic
  /// GIF. It can be animated, and has 256 colours per frame.
  case gif
  /// TIFF 6.0. It is written losslessly.
  case tiff

  /// Finds the format by the first bytes of a file; `nil` if it is none of these.
  public init?(data: Data) {
    guard let format = data.prefix(32).withUnsafeBytes({ ImageFormat(head: $0) }) else { return nil }
    self = format
  }

  /// The media type (RFC 9110 §8.3.1).
  public var mediaType: String { "image/\(rawValue)" }

  /// Whether the installed libvips can write the format.
  public var canBeWritten: Bool {
    guard (try? Vips.load()) != nil else { return false }
    guard self == .avif || self == .heic else { return cvips_has_operation("\(rawValue)save_buffer") }
    return Self.encoders.contains(self)
  }

  /// The formats in HEIF that can be written: their encoders are plug-ins, which are known only when they are used.
  private static let encoders: Set<ImageFormat> = Set(
    [ImageFormat.avif, .heic].filter { format in
      let layout = PixelLayout(width: 64, height: 64, frames: 1, bands: 3)
      guard let pixels = try? PixelBuffer(layout, fill: { _ in }) else { return false }
      let result = try? pixels.withImage(ImageWork(limit: .seconds(60))) { image throws(ImageError) in
        var count = 0
        let file = cvips_encode(image.reference, format.encoder, 50, false, &count)
        cvips_free(file)
        return file != nil
      }
      return result == true
    })

  var name: String { self == .webp ? "WebP" : rawValue.uppercased() }

  /// Whether a file can have several frames that are shown one after the other.
  var canBeAnimated: Bool { self == .gif || self == .webp }

  /// The beginning of the names of the loaders that may read the format.
  var loader: String {
    switch self {
    case .jpeg: "VipsForeignLoadJpeg"
    case .png: "VipsForeignLoadPng"
    case .webp: "VipsForeignLoadWebp"
    case .avif, .heic: "VipsForeignLoadHeif"
    case .gif: "VipsForeignLoadNsgif"
    case .tiff: "VipsForeignLoadTiff"
    }
  }

  var encoder: cvips_file_format {
    switch self {
    case .jpeg: cvips_jpeg
    case .png: cvips_png
    case .webp: cvips_webp
    case .avif: cvips_avif
    case .heic: cvips_heic
    case .gif: cvips_gif
    case .tiff: cvips_tiff
    }
  }

  private init?(head: UnsafeRawBufferPointer) {
    func has(_ signature: [UInt8], at offset: Int = 0) -> Bool {
      head.count >= offset + signature.count
        && head[offset..<offset + signature.count].elementsEqual(signature)
    }
    func has(_ text: StaticString, at offset: Int = 0) -> Bool {
      text.withUTF8Buffer { has(Array($0), at: offset) }
    }
    if has([0xff, 0xd8, 0xff]) {
      self = .jpeg
    } else if has([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]) {
      self = .png
    } else if has("GIF87a") || has("GIF89a") {
      self = .gif
    } else if has("RIFF"), has("WEBP", at: 8) {
      self = .webp
    } else if has([0x49, 0x49, 0x2a, 0]) || has([0x4d, 0x4d, 0, 0x2a]) {
      self = .tiff
    } else if has("ftyp", at: 4) {
      // The major brand decides, if it names a codec. The compatible ones come after it and a version.
      let compatible = Array(stride(from: 16, to: 32, by: 4))
      func isAny(_ brands: [StaticString], _ places: [Int]) -> Bool {
        places.contains { place in brands.contains { has($0, at: place) } }
      }
      let major = isAny(Self.brandsOfAVIF, [8]) || isAny(Self.brandsOfHEVC, [8])
      let places = major ? [8] : compatible
      if isAny(Self.brandsOfHEVC, places) {
        self = .heic
      } else if isAny(Self.brandsOfAVIF, places) {
        self = .avif
      } else if isAny(["mif1"], [8] + compatible) {
        self = .heic
      } else {
        return nil
      }
    } else {
      return nil
    }
  }

  /// The brands of files in HEIF whose images are in AV1.
  private static let brandsOfAVIF: [StaticString] = ["avif", "avis"]
  /// The brands of files in HEIF whose images are in HEVC (ISO 23008-12 §B.4).
  private static let brandsOfHEVC: [StaticString] = [
    "heic", "heix", "heim", "heis", "hevc", "hevx", "hevm", "hevs",
  ]
}
