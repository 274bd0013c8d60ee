import Foundation

@testable import AlamofireImage

/// Returns a function that reads bytes in the way of a file: up to so many at a place.
func reading(_ bytes: [UInt8]) -> (_ place: Int, _ count: Int) throws(ImageError) -> [UInt8] {
  { place, count in Array(bytes.dropFirst(place).prefix(count)) }
}

/// A way to open the bytes of a file: all of them in memory, or written to a file that stays open.
enum Opening: CaseIterable {
  case memory
  case file

  /// Opens an image, and calls a function with it.
  func with<Value>(
    _ data: Data, limits: ImageLimits = .default, _ body: (Image) throws -> Value
  ) throws -> Value {
    guard self == .file else { return try body(Image(data: data, limits: limits)) }
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("raw-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: url) }
    try data.write(to: url)
    return try body(Image(streaming: url, limits))
  }

  /// Opens an image, and returns its width.
  func width(_ data: Data, limits: ImageLimits = .default) throws -> Int {
    try with(data, limits: limits) { $0.pixelWidth }
  }
}

/// Makes a chunk of a PNG file (PNG §5.3).
func pngChunk(_ kind: String, _ content: [UInt8]) -> [UInt8] {
  func number(_ value: UInt32) -> [UInt8] { withUnsafeBytes(of: value.bigEndian) { Array($0) } }
  let body = Array(kind.utf8) + content
  let crc = body.reduce(UInt32.max) { crc, byte in
    (0..<8).reduce(crc ^ UInt32(byte)) { value, _ in
      value & 1 == 1 ? value >> 1 ^ 0xedb8_8320 : value >> 1
    }
  }
  return number(UInt32(content.count)) + body + number(~crc)
}
