import Alamofire
@testable import AlamofireImage
import Foundation
import Testing

@Suite("The memory of images", .timeLimit(.minutes(2)))
struct ImageMemoryTests {
  /// Returns how many megabytes of the process grow while a function is called many times.
  fileprivate static func growth(_ body: () throws -> Void) rethrows -> Int {
    func megabytes() -> Int {
      let pages = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8))?.split(separator: " ")
      return (pages?.dropFirst().first.flatMap { Int($0) } ?? 0) / 256
    }
    for _ in 0..<10 { try body() }
    let before = megabytes()
    for _ in 0..<50 { try body() }
    return megabytes() - before
  }

  @Test("Pixels, files and what cannot be made are released")
  func released() async {
    // The memory of other tests would be counted, too.
    await #expect(processExitsWith: .success) {
      let samples = Data((0..<640_000).map { UInt8(truncatingIfNeeded: $0 &* $0 / 7) })
      let image = try Image(pixels: samples, width: 400, height: 400, format: .rgba)
      let png = try image.encode(as: .png)
      let url = FileManager.default.temporaryDirectory.appendingPathComponent("memory-\(UUID().uuidString)")
      try png.write(to: url)
      defer { try? FileManager.default.removeItem(at: url) }
      let layout = PixelLayout(width: 400, height: 400, frames: 1, bands: 4)
      let late = ImageWork(limit: .seconds(-1))
      let uses: [(String, () throws -> Void)] = [
        ("decoding", { _ = try Image(data: png).pixels(as: .rgba) }),
        ("decoding of a file", { _ = try Image(streaming: url, .default).pixels(as: .rgba) }),
        ("encoding", { _ = try image.encode(as: .png) }),
        ("scaling", { _ = image.af.imageScaled(to: image.size, scale: 2) }),
        ("masking", { _ = image.af.imageRounded(withCornerRadius: 4) }),
        (
          "failing",
          {
            _ = try? PixelBuffer(layout) { target throws(ImageError) in
              // Memory that was never written to would not count.
              target.initializeMemory(as: UInt8.self, repeating: 7)
              throw .cancelled
            }
          }
        ),
        (
          "late",
          {
            _ = try? image.content.decoded().withImage(late) { image throws(ImageError) in
              try image.pixels(late)
            }
          }
        ),
      ]
      for (name, use) in uses {
        let growth = try ImageMemoryTests.growth(use)
        // Each call that left its pixels would add 0.6 megabytes.
        #if !ADDRESS_SANITIZER  // It delays the reuse of freed memory.
          #expect(growth < 16, "\(name): \(growth) MB are left")
        #else
          _ = (name, growth)
        #endif
      }
    }
  }
}
