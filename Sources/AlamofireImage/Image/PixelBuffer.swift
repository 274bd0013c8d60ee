import CVips
import Foundation

/// The dimensions of pixels in memory: rows without gaps, frame below frame.
struct PixelLayout: Sendable, Equatable {
  /// Pixels of a row.
  var width: Int
  /// Rows of one frame.
  var height: Int
  var frames: Int
  /// Bytes of a pixel: 3 for red, green and blue, 4 with alpha, which the colours are not multiplied by.
  var bands: Int

  var rowBytes: Int { width * bands }
  var frameBytes: Int { rowBytes * height }
  var byteCount: Int { frameBytes * frames }
  var hasAlpha: Bool { bands == 4 }
}

/// Decoded pixels in sRGB, 8 bits per sample, which never change.
///
/// `@unchecked` because the compiler cannot know that the memory is not written to after the initialiser.
final class PixelBuffer: @unchecked Sendable {
  let layout: PixelLayout
  /// The durations of the frames in milliseconds; empty if the file has none.
  let delays: [Int32]
  /// The number of times that an animation is shown; 0 means without end.
  let loop: Int
  private let memory: UnsafeMutableRawPointer

  /// Takes over memory of libvips.
  init(adopting memory: UnsafeMutableRawPointer, _ layout: PixelLayout, delays: [Int32] = [], loop: Int = 0) {
    self.memory = memory
    self.layout = layout
    self.delays = delays
    self.loop = loop
  }

  /// Makes memory of zeros, which a function fills.
  convenience init(
    _ layout: PixelLayout, delays: [Int32] = [], loop: Int = 0,
    fill: (UnsafeMutableRawBufferPointer) throws(ImageError) -> Void
  ) throws(ImageError) {
    guard let memory = calloc(max(1, layout.byteCount), 1) else {
      throw .damaged("there is no memory for \(layout.byteCount) bytes")
    }
    do {
      try fill(UnsafeMutableRawBufferPointer(start: memory, count: layout.byteCount))
    } catch {
      cvips_free(memory)
      throw error
    }
    self.init(adopting: memory, layout, delays: delays, loop: loop)
  }

  deinit { cvips_free(memory) }

  /// Calls a function with the samples, which stay valid until it returns.
  func withBytes<Value, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    defer { withExtendedLifetime(self) {} }
    return try body(UnsafeRawBufferPointer(start: memory, count: layout.byteCount))
  }

  /// Copies the samples to a place with enough room.
  func copy(to target: UnsafeMutableRawBufferPointer, at offset: Int = 0) {
    withBytes { UnsafeMutableRawBufferPointer(rebasing: target[offset...]).copyMemory(from: $0) }
  }

  /// A copy of the samples.
  var data: Data { withBytes { Data($0) } }

  /// Calls a function with an image of libvips that reads these pixels, as part of a piece of work.
  func withImage<Value>(
    _ work: ImageWork, _ body: (borrowing VipsImage) throws(ImageError) -> Value
  ) throws(ImageError) -> Value {
    defer { withExtendedLifetime(self) {} }
    return try Vips.call { () throws(ImageError) -> Value in
      var image = try VipsImage(
        cvips_wrap(
          memory, layout.byteCount, Int32(clamping: layout.width),
          Int32(clamping: layout.height * layout.frames),
          Int32(layout.bands), Int32(clamping: layout.height), delays, Int32(clamping: delays.count),
          Int32(clamping: loop)))
      image.watch(work)
      return try body(image)
    }
  }

  /// Changes each frame by a function that returns frames of one size, and puts them together again.
  func mapFrames(_ change: (PixelBuffer) throws(ImageError) -> PixelBuffer) throws(ImageError) -> PixelBuffer
  {
    guard layout.frames > 1 else { return try change(self) }
    var changed: [PixelBuffer] = []
    for index in 0..<layout.frames { changed.append(try change(frame(index))) }
    guard var result = changed.first?.layout, changed.allSatisfy({ $0.layout == result }) else {
      throw .damaged("the frames differ in size")
    }
    result.frames = changed.count
    return try PixelBuffer(result, delays: delays, loop: loop) { target in
      for (index, frame) in changed.enumerated() { frame.copy(to: target, at: index * result.frameBytes) }
    }
  }

  /// Returns one of the frames, which must exist.
  func frame(_ index: Int) throws(ImageError) -> PixelBuffer {
    precondition(index >= 0 && index < layout.frames)
    var single = layout
    single.frames = 1
    let start = index * layout.frameBytes
    return try PixelBuffer(single) { target in
      withBytes { target.copyBytes(from: $0[start..<start + layout.frameBytes]) }
    }
  }

  /// Returns the pixels with alpha, which is opaque if it is added.
  ///
  /// - Parameter work: The work that this is part of, which can end it.
  func withAlpha(_ work: ImageWork? = nil) throws(ImageError) -> PixelBuffer {
    if layout.hasAlpha { return self }
    var changed = layout
    changed.bands = 4
    return try PixelBuffer(changed, delays: delays, loop: loop) { target throws(ImageError) in
      try withBytes { source throws(ImageError) in
        for row in 0..<(layout.height * layout.frames) {
          try work?.check(row: row)
          for pixel in row * layout.width..<(row + 1) * layout.width {
            target[pixel * 4] = source[pixel * 3]
            target[pixel * 4 + 1] = source[pixel * 3 + 1]
            target[pixel * 4 + 2] = source[pixel * 3 + 2]
            target[pixel * 4 + 3] = 255
          }
        }
      }
    }
  }

  /// Copies each frame to a place on a canvas of another size. What does not fit is cut off, and what is left of the
  /// canvas is transparent; then the result has alpha.
  ///
  /// - Parameter work: The work that this is part of, which can end it.
  func placed(
    x: Int, y: Int, width: Int, height: Int, _ work: ImageWork? = nil
  ) throws(ImageError) -> PixelBuffer {
    let covers = x <= 0 && y <= 0 && x + layout.width >= width && y + layout.height >= height
    if x == 0, y == 0, width == layout.width, height == layout.height { return self }
    guard covers || layout.hasAlpha else {
      return try withAlpha(work).placed(x: x, y: y, width: width, height: height, work)
    }
    let columns = max(0, x)..<max(max(0, x), min(width, x + layout.width))
    let rows = max(0, y)..<max(max(0, y), min(height, y + layout.height))
    let changed = PixelLayout(width: width, height: height, frames: layout.frames, bands: layout.bands)
    return try PixelBuffer(changed, delays: delays, loop: loop) { target throws(ImageError) in
      guard !columns.isEmpty else { return }
      let count = columns.count * layout.bands
      try withBytes { source throws(ImageError) in
        for frame in 0..<layout.frames {
          for row in rows {
            try work?.check(row: row - rows.lowerBound)
            let from =
              frame * layout.frameBytes + (row - y) * layout.rowBytes + (columns.lowerBound - x)
              * layout.bands
            let to = frame * changed.frameBytes + row * changed.rowBytes + columns.lowerBound * layout.bands
            target[to..<to + count].copyBytes(from: source[from..<from + count])
          }
        }
      }
    }
  }

  /// Multiplies the alpha of each frame with a mask, which gives the coverage of a pixel, 0 to 255, by column and row.
  ///
  /// - Parameter work: The work that this is part of, which can end it.
  func masked(_ mask: RoundedRectangle, _ work: ImageWork? = nil) throws(ImageError) -> PixelBuffer {
    let opaque = try withAlpha(work)
    let layout = opaque.layout
    return try PixelBuffer(layout, delays: delays, loop: loop) { target throws(ImageError) in
      opaque.copy(to: target)
      for row in 0..<layout.height {
        try work?.check(row: row)
        for column in mask.partialColumns(ofRow: row) {
          let coverage = mask.coverage(column: column, row: row)
          for frame in 0..<layout.frames {
            let alpha = frame * layout.frameBytes + row * layout.rowBytes + column * 4 + 3
            target[alpha] = UInt8((Int(target[alpha]) * coverage + 127) / 255)
          }
        }
      }
    }
  }

  /// Whether both show the same: transparency of 255 counts as none.
  func isEqual(to other: PixelBuffer) -> Bool {
    if layout == other.layout {
      return withBytes { first in other.withBytes { first.elementsEqual($0) } }
    }
    guard
      (layout.width, layout.height, layout.frames) == (
        other.layout.width, other.layout.height, other.layout.frames
      ),
      let first = try? withAlpha(), let second = try? other.withAlpha()
    else { return false }
    return first.isEqual(to: second)
  }
}
