import CVips
import Foundation

/// The bytes of a file with an image.
enum ImageSource: Sendable {
  case memory(Data)
  /// A file that is decoded row by row, without its bytes in memory.
  case file(ImageFile)

  /// Opens the image for a piece of work, calls a function with it, and releases it.
  func withImage<Value>(
    _ options: LoaderOptions, _ work: ImageWork, _ limits: ImageLimits,
    _ body: (borrowing VipsImage) throws(ImageError) -> Value
  ) throws(ImageError) -> Value {
    try Vips.call { () throws(ImageError) -> Value in
      switch self {
      case .memory(let data):
        return try data.withBytes { bytes throws(ImageError) in
          var image = try VipsImage(bytes, options: options.text)
          image.watch(work)
          return try body(image)
        }
      case .file(let file):
        return try file.withImage(shrink: options.shrink, limits) { image throws(ImageError) in
          guard !image.isInterlaced else { throw .fileFailed("it has changed") }
          image.watch(work)
          return try body(image)
        }
      }
    }
  }
}

/// An open file with an image.
final class ImageFile: Sendable {
  private struct Descriptor: ~Copyable {
    let number: CInt
    deinit { close(number) }
  }

  // A lock, because all readers share the place in the file.
  private let descriptor: Mutex<Descriptor>
  let format: ImageFormat

  /// Opens a regular file, and reads its format.
  init(_ url: URL, _ limits: ImageLimits) throws(ImageError) {
    guard url.isFileURL else { throw .fileFailed("its URL is not the URL of a file") }
    // A pipe without a writer would block.
    let opened = open(url.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard opened >= 0 else { throw .fileFailed(String(cString: strerror(errno))) }
    descriptor = Mutex(Descriptor(number: opened))
    var status = stat()
    guard fstat(opened, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      throw .fileFailed("it is not a regular file")
    }
    try limits.check(.bytes, Int(status.st_size), limit: limits.bytes)
    guard let format = ImageFormat(data: try Self.read(opened, count: 32)) else { throw .unknownFormat }
    self.format = format
  }

  /// Reads the file into memory: one byte more than the limit at most.
  func bytes(_ limits: ImageLimits) throws(ImageError) -> Data {
    try descriptor.withLock { descriptor throws(ImageError) in
      var status = stat()
      guard fstat(descriptor.number, &status) == 0 else {
        throw .fileFailed(String(cString: strerror(errno)))
      }
      return try Self.read(descriptor.number, count: min(Int(status.st_size), max(1, limits.bytes)) + 1)
    }
  }

  /// Whether the image can be decoded row by row. Others are read into memory by libvips, or mapped, so that a program
  /// would end if the file were made shorter.
  var hasRows: Bool { format == .jpeg || format == .png }

  /// Reads the head of a file that has rows. Returns `nil` if the rows come several times, with more and more details.
  func facts(_ limits: ImageLimits) throws(ImageError) -> ImageFacts? {
    guard limits.formats.contains(format) else { throw .unsupportedFormat(format) }
    return try Vips.call { () throws(ImageError) -> ImageFacts? in
      try withImage(shrink: 1, limits) { image in image.isInterlaced ? nil : ImageFacts(image.facts, format) }
    }
  }

  /// Opens the image, calls a function with it, and releases it. The file may have changed since it was opened before.
  func withImage<Value>(
    shrink: Int, _ limits: ImageLimits, _ body: (inout VipsImage) throws(ImageError) -> Value
  ) throws(ImageError) -> Value {
    try descriptor.withLock { descriptor throws(ImageError) in
      let number = descriptor.number
      let read = { (place: Int, count: Int) throws(ImageError) -> [UInt8] in
        try Array(Self.read(number, count: count, at: place))
      }
      switch format {
      case .png: try limits.checkText(read)
      // What follows the first scan is not read: a file with several is not decoded row by row.
      case .jpeg: try limits.checkParts(endsAtScan: true, read)
      default: break
      }
      var image = try VipsImage(cvips_open_file(number, format.encoder, Int32(shrink)))
      let facts = image.facts
      try limits.check(.samples, Int(facts.bands), limit: 5)
      try limits.check(width: Int(facts.width), height: Int(facts.height), frames: 1)
      return try body(&image)
    }
  }

  /// Reads up to a number of bytes of a file.
  private static func read(_ descriptor: CInt, count: Int, at start: Int = 0) throws(ImageError) -> Data {
    var data = Data(count: count)
    var place = 0
    while place < count {
      let result = data.withUnsafeMutableBytes {
        pread(descriptor, $0.baseAddress?.advanced(by: place), count - place, off_t(start + place))
      }
      if result == 0 { break }
      if result > 0 {
        place += result
      } else if errno != EINTR {
        throw .fileFailed(String(cString: strerror(errno)))
      }
    }
    data.count = place
    return data
  }
}
