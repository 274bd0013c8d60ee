import Foundation

/// Facts about a file that must be known before libvips reads it, because libvips takes too long to find them or does
/// not limit them. Each function reads a file once, from its beginning to its end.
enum FileStructure {
  /// Counts the frames of an animated WebP file (RFC 9649 §2.7.1.1); 0 if it is not animated.
  static func frames(ofWebP bytes: UnsafeRawBufferPointer) -> Int {
    var count = 0
    var place = 12
    while place + 8 <= bytes.count {
      if bytes[place..<place + 4].elementsEqual("ANMF".utf8) { count += 1 }
      let size = (0..<4).reduce(0) { $0 | Int(bytes[place + 4 + $1]) << (8 * $1) }
      place += 8 + size + size % 2
    }
    return count
  }

  /// Counts the scans of a JPEG file. Each is decoded for all pixels, which takes time even if it has few bytes.
  static func scans(ofJPEG bytes: UnsafeRawBufferPointer) -> Int {
    var count = 0
    var place = 2
    while place + 4 <= bytes.count {
      guard bytes[place] == 0xff else {
        place += 1
        continue
      }
      let marker = bytes[place + 1]
      switch marker {
      case 0xd9: return count
      case 0x00, 0x01, 0xd0...0xd8: place += 2
      case 0xff: place += 1
      default:
        if marker == 0xda { count += 1 }
        place += 2 + max(2, Int(bytes[place + 2]) << 8 | Int(bytes[place + 3]))
      }
    }
    return count
  }

  /// Returns whether a colour profile (ICC.1:2010 §7.2.6) is one for samples of this count, with or without alpha.
  static func profile(_ profile: UnsafeRawBufferPointer, fits bands: Int) -> Bool {
    guard profile.count >= 20 else { return false }
    switch String(decoding: profile[16..<20], as: UTF8.self) {
    case "GRAY": return bands <= 2
    case "RGB ": return bands == 3 || bands == 4
    case "CMYK": return bands >= 4
    default: return false
    }
  }
}
