import CVips
import Foundation

/// The library: loading it, and its errors.
enum Vips {
  /// Loads the library, once for all.
  static func load() throws(ImageError) {
    if let problem = cvips_load() { throw .libraryMissing(String(cString: problem)) }
  }

  /// Calls the library, and frees afterwards what it stores for the thread.
  static func call<Value>(_ body: () throws(ImageError) -> Value) throws(ImageError) -> Value {
    try load()
    defer { cvips_end_of_work() }
    return try body()
  }

  /// Takes the text of the last errors, on one line without the final full stop. The library has one list for all
  /// threads, so that it can contain the error of another image.
  static func takeError() -> String {
    guard let text = cvips_take_error() else { return "libvips gives no reason" }
    defer { cvips_free(text) }
    let lines = String(cString: text).split(whereSeparator: \.isNewline)
    let joined = lines.map { $0.trimmingCharacters(in: .whitespaces) }.joined(separator: "; ")
    return joined.isEmpty ? "libvips gives no reason" : String(joined.prefix(300))
  }
}

/// A reference to an image of libvips. It is not `Sendable`: each stays within one call.
struct VipsImage: ~Copyable {
  let reference: VipsImageReference

  /// Takes over a reference, which is `nil` if the library failed.
  init(_ reference: VipsImageReference?, error: (String) -> ImageError = ImageError.damaged)
    throws(ImageError)
  {
    guard let reference else { throw error(Vips.takeError()) }
    self.reference = reference
  }

  private var isWatched = false

  deinit {
    if isWatched { ImageWatch.shared.end(reference) }
    cvips_release(reference)
  }

  /// Opens a file. The bytes must stay valid until all that was made from it is released.
  init(_ bytes: UnsafeRawBufferPointer, options: String) throws(ImageError) {
    try self.init(cvips_open(bytes.baseAddress, bytes.count, options))
  }

  var facts: cvips_facts {
    var facts = cvips_facts()
    cvips_read_facts(reference, &facts)
    return facts
  }

  /// Whether the rows of a JPEG or PNG file come several times, each time with more details.
  var isInterlaced: Bool { cvips_is_interlaced(reference) }

  /// Reads the durations of the frames, in milliseconds. The file may have more or fewer than it has frames.
  func delays(atMost limit: Int) -> [Int32] {
    guard limit > 0 else { return [] }
    return [Int32](unsafeUninitializedCapacity: limit) { buffer, count in
      count = min(limit, max(0, Int(cvips_delays(reference, buffer.baseAddress, Int32(clamping: limit)))))
    }
  }

  /// Lets a piece of work end what is computed from the image.
  mutating func watch(_ work: ImageWork) {
    isWatched = true
    ImageWatch.shared.begin(reference, work)
  }

  /// Returns the image in another size, with its orientation applied; 0 by 0 stands for its own size.
  func scaled(width: Int, height: Int, _ work: ImageWork) throws(ImageError) -> VipsImage {
    // An image that has to be turned is computed here, so that the work can end here.
    try VipsImage(
      cvips_scaled(reference, Int32(clamping: width), Int32(clamping: height), hasUsableProfile),
      error: { work.failure ?? .damaged($0) })
  }

  /// Whether the colour profile of the image fits its samples, and is read quickly.
  private var hasUsableProfile: Bool {
    var count = 0
    guard let profile = cvips_profile(reference, &count) else { return false }
    return FileStructure.profile(UnsafeRawBufferPointer(start: profile, count: count), fits: Int(facts.bands))
  }

  /// Computes the pixels, which become 8-bit sRGB, on the calling thread.
  func pixels(_ work: ImageWork) throws(ImageError) -> PixelBuffer {
    let plain = try VipsImage(cvips_plain(reference))
    let facts = plain.facts
    let (height, pageHeight) = (Int(facts.height), Int(facts.page_height))
    let hasPages = pageHeight > 0 && height % pageHeight == 0
    let layout = PixelLayout(
      width: Int(facts.width), height: hasPages ? pageHeight : height,
      frames: hasPages ? height / pageHeight : 1,
      bands: Int(facts.bands))
    guard layout.bands == 3 || layout.bands == 4 else {
      throw .damaged("the library returned \(layout.bands) samples per pixel")
    }
    let delays = delays(atMost: layout.frames)
    return try PixelBuffer(layout, delays: delays, loop: Int(cvips_loop(reference))) {
      target throws(ImageError) in
      try plain.compute(layout.width, height, to: target, work)
    }
  }

  /// Computes all rows, some at a time, because the library would compute all at once with threads of its own.
  private func compute(
    _ width: Int, _ height: Int, to target: UnsafeMutableRawBufferPointer, _ work: ImageWork
  ) throws(ImageError) {
    guard let region = cvips_region(reference) else { throw .damaged(Vips.takeError()) }
    defer { cvips_release_region(region) }
    var place = 0
    for top in stride(from: 0, to: height, by: 16) {
      let rows = min(16, height - top)
      var count = 0
      let memory = cvips_compute(region, Int32(clamping: width), Int32(clamping: top), Int32(rows), &count)
      defer { cvips_free(memory) }
      if let failure = work.failure { throw failure }
      guard let memory else { throw .damaged(Vips.takeError()) }
      let bytes = UnsafeRawBufferPointer(start: memory, count: count)
      guard count <= target.count - place else { throw .damaged("the library returned too many bytes") }
      target[place...].copyBytes(from: bytes)
      place += count
    }
    guard place == target.count else {
      throw .damaged("the library returned \(place) bytes in place of \(target.count)")
    }
  }
}
