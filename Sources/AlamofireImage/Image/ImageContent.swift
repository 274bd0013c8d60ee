import CVips
import Foundation

/// The facts about an image in the head of its file, with the orientation applied.
struct ImageFacts: Sendable {
  /// The format of the file; `nil` for pixels.
  var format: ImageFormat?
  var width: Int
  var height: Int
  var frames: Int
  var hasAlpha: Bool
  var delays: [Int32] = []
  var loop = 0
}

extension ImageFacts {
  /// Reads the facts from the head of a file.
  init(_ head: cvips_facts, _ format: ImageFormat, frames: Int = 1) {
    // libvips would turn all frames of an animation as one image.
    let isTurned = head.orientation >= 5 && frames == 1
    self.init(
      format: format, width: Int(isTurned ? head.height : head.width),
      height: Int(isTurned ? head.width : head.height), frames: frames, hasAlpha: head.has_alpha)
  }
}

/// An image as all its copies share it: the bytes of a file until its pixels were needed, then these.
final class ImageContent: Sendable {
  private enum Form {
    case encoded(ImageSource)
    case decoded(PixelBuffer)
  }

  let facts: ImageFacts
  let limits: ImageLimits
  // A lock, because copies of an image are used on any thread. It changes once, from encoded to decoded.
  private let form: Mutex<Form>

  /// Reads the head of a file.
  init(_ data: Data, _ limits: ImageLimits) throws(ImageError) {
    var data = data
    facts = try Self.readHead(&data, limits)
    self.limits = limits
    form = Mutex(.encoded(.memory(data)))
  }

  /// Reads the head of a file. If the file can be decoded row by row, it stays open, and its bytes are not read.
  init(streaming file: ImageFile, _ limits: ImageLimits) throws(ImageError) {
    self.limits = limits
    if file.hasRows, let head = try file.facts(limits) {
      facts = head
      form = Mutex(.encoded(.file(file)))
    } else {
      var data = try file.bytes(limits)
      facts = try Self.readHead(&data, limits)
      form = Mutex(.encoded(.memory(data)))
    }
  }

  init(_ pixels: PixelBuffer, _ limits: ImageLimits) {
    let layout = pixels.layout
    facts = ImageFacts(
      format: nil, width: layout.width, height: layout.height, frames: layout.frames,
      hasAlpha: layout.hasAlpha,
      delays: pixels.delays, loop: pixels.loop)
    self.limits = limits
    form = Mutex(.decoded(pixels))
  }

  var isDecoded: Bool { form.withLock { if case .decoded = $0 { true } else { false } } }

  /// The bytes of the file in memory, until it was decoded.
  var data: Data? { form.withLock { if case .encoded(.memory(let data)) = $0 { data } else { nil } } }

  /// Decodes all pixels. They replace the bytes of the file; two threads that need them at once both decode.
  func decoded() throws(ImageError) -> PixelBuffer {
    let source: ImageSource
    switch form.withLock({ $0 }) {
    case .decoded(let pixels): return pixels
    case .encoded(let encoded): source = encoded
    }
    let pixels = try checked(decode(source, width: 0, height: 0), width: facts.width, height: facts.height)
    form.withLock { $0 = .decoded(pixels) }
    return pixels
  }

  /// Returns the frames in another size. Of a file, only what this size needs is decoded, and its bytes stay.
  func stretched(width: Int, height: Int) throws(ImageError) -> PixelBuffer {
    try limits.check(width: width, height: height, frames: facts.frames)
    let work = work
    let source: PixelBuffer
    switch form.withLock({ $0 }) {
    case .encoded(let encoded) where facts.frames == 1:
      return try checked(decode(encoded, width: width, height: height), width: width, height: height)
    case .encoded(let encoded):
      source = try checked(decode(encoded, width: 0, height: 0), width: facts.width, height: facts.height)
    case .decoded(let pixels): source = pixels
    }
    if (source.layout.width, source.layout.height) == (width, height) { return source }
    // One after the other, because the edges of neighbours would be mixed.
    let result = try source.mapFrames { frame throws(ImageError) in
      try frame.withImage(work) { image throws(ImageError) in
        try image.scaled(width: width, height: height, work).pixels(work)
      }
    }
    return try checked(result, width: width, height: height)
  }

  /// Returns pixels if they have this size and as many frames as the head of the file says. Everything else relies on
  /// that.
  func checked(_ pixels: PixelBuffer, width: Int, height: Int) throws(ImageError) -> PixelBuffer {
    let layout = pixels.layout
    guard (layout.width, layout.height, layout.frames) == (width, height, facts.frames) else {
      throw .damaged("its pixels have another size than its head says")
    }
    return pixels
  }

  /// The limits of the work that the code runs in, or of this image.
  var work: ImageWork { ImageWork.current ?? ImageWork(limit: limits.time) }

  private func decode(_ source: ImageSource, width: Int, height: Int) throws(ImageError) -> PixelBuffer {
    let work = work
    return try source.withImage(LoaderOptions(facts, width: width, height: height), work, limits) {
      image throws(ImageError) in
      try image.scaled(width: width, height: height, work).pixels(work)
    }
  }

  /// Reads the head of a file, and removes all images but the first from a TIFF file.
  private static func readHead(_ data: inout Data, _ limits: ImageLimits) throws(ImageError) -> ImageFacts {
    guard let format = ImageFormat(data: data) else { throw .unknownFormat }
    guard limits.formats.contains(format) else { throw .unsupportedFormat(format) }
    try limits.check(.bytes, data.count, limit: limits.bytes)
    if format == .tiff { try FileStructure.removeLaterImages(ofTIFF: &data) }
    return try Vips.call { () throws(ImageError) -> ImageFacts in
      try data.withBytes { bytes throws(ImageError) in
        // Before a loader is looked for, because the library opens a TIFF file to do so.
        let structure = try checkedStructure(bytes, format, limits)
        // A decoder of another format could be one that is not meant for files of strangers.
        guard let loader = cvips_loader(bytes.baseAddress, bytes.count) else {
          _ = Vips.takeError()
          throw .unsupportedFormat(format)
        }
        guard String(cString: loader).hasPrefix(format.loader) else { throw .unsupportedFormat(format) }
        return try readFacts(bytes, format, limits, structure)
      }
    }
  }

  /// The facts about a file that are known before the library reads it.
  private struct Structure {
    var frames: Int
    var tile: (width: Int, height: Int)?
  }

  /// Throws if the library would take too long to open a file, or too much memory.
  private static func checkedStructure(
    _ bytes: UnsafeRawBufferPointer, _ format: ImageFormat, _ limits: ImageLimits
  ) throws(ImageError) -> Structure {
    var structure = Structure(frames: format == .webp ? FileStructure.frames(ofWebP: bytes) : 1)
    try limits.check(width: 1, height: 1, frames: structure.frames)
    switch format {
    case .jpeg: try limits.checkParts { place, count in Array(bytes.dropFirst(place).prefix(count)) }
    case .png: try limits.checkText { place, count in Array(bytes.dropFirst(place).prefix(count)) }
    case .tiff:
      try limits.checkTags(bytes)
      structure.tile = try FileStructure.tile(ofTIFF: bytes)
      if let tile = structure.tile { try limits.check(width: tile.width, height: tile.height, frames: 1) }
    default: break
    }
    return structure
  }

  private static func readFacts(
    _ bytes: UnsafeRawBufferPointer, _ format: ImageFormat, _ limits: ImageLimits, _ structure: Structure
  ) throws(ImageError) -> ImageFacts {
    let first = try VipsImage(bytes, options: "").facts
    let frames = format == .gif ? max(1, Int(first.pages)) : max(1, structure.frames)
    try limits.check(.samples, Int(first.bands), limit: 5)
    let pixelBytes = Int(first.pixel_bytes)
    try limits.check(
      width: Int(first.width), height: Int(first.height), frames: frames, pixelBytes: pixelBytes)
    if let tile = structure.tile {
      try limits.check(width: tile.width, height: tile.height, frames: 1, pixelBytes: pixelBytes)
    }
    var facts = ImageFacts(first, format, frames: frames)
    if frames > 1 {
      let all = try VipsImage(bytes, options: "[n=\(frames)]")
      facts.hasAlpha = all.facts.has_alpha
      facts.delays = all.delays(atMost: frames)
      facts.loop = Int(cvips_loop(all.reference))
    }
    return facts
  }
}

/// The options of a loader: the number of frames, and how much smaller it decodes.
struct LoaderOptions {
  private var options: [String] = []
  /// By how much a JPEG file is shrunk when it is loaded: 1, 2, 4 or 8.
  private(set) var shrink = 1

  /// Options to decode an image of which a size is needed; 0 by 0 stands for its own.
  init(_ facts: ImageFacts, width: Int, height: Int) {
    if facts.frames > 1 { options.append("n=\(facts.frames)") }
    guard width > 0, height > 0 else { return }
    let factor = min(Double(facts.width) / Double(width), Double(facts.height) / Double(height))
    // The rest of the way, a factor of two at least, is scaled with a better filter than the loader has.
    guard factor >= 4 else { return }
    switch facts.format {
    case .jpeg:
      shrink = factor >= 16 ? 8 : factor >= 8 ? 4 : 2
      options.append("shrink=\(shrink)")
    case .webp: options.append("scale=\(2 / factor)")
    default: break
    }
  }

  var text: String { options.isEmpty ? "" : "[\(options.joined(separator: ","))]" }
}

extension Data {
  /// Calls a function with the bytes, which throws only errors of images.
  func withBytes<Value>(
    _ body: (UnsafeRawBufferPointer) throws(ImageError) -> Value
  ) throws(ImageError) -> Value {
    let result: Result<Value, ImageError> = withUnsafeBytes { bytes in
      Result { () throws(ImageError) -> Value in try body(bytes) }
    }
    return try result.get()
  }
}
