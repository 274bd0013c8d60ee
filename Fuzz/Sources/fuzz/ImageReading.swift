import Foundation
import ImageDecoding

/// Files of images: what is accepted has as many pixels as its head says, within the limits.
enum ImageReading {
  /// Reads the bytes as a file, decodes all of it, and scales it.
  static func check(_ bytes: UnsafeRawBufferPointer) {
    let limits = ImageLimits(pixels: 1_000_000, frames: 20, bytes: 1 << 16, time: .seconds(5))
    guard let image = try? Image(data: Data(bytes), limits: limits) else { return }
    let count = image.pixelWidth * image.pixelHeight * image.frameCount
    precondition(image.frameCount <= limits.frames && count <= limits.pixels, "the limits do not hold")
    let variants = ImageVariants(.init("small", longestSide: 7))
    let made = Result { try variants.make(of: image) }
    let fromFile = inFile(bytes) { file in try await variants.images(ofFile: file, limits: limits) }
    // A busy machine can take too long for one of them.
    if isLate(made) || isLate(fromFile) { return }
    let (small, streamed) = (try? made.get(), try? fromFile.get())
    precondition(streamed == small, "a file of \(image) gives \(streamed as Any), its bytes \(small as Any)")
    precondition(small.map { $0["small"]?.pixelWidth ?? 8 <= 7 } ?? true, "the small image is large")
    guard let pixels = try? image.pixels(as: .rgba) else { return }
    precondition(pixels.count == count * 4, "\(pixels.count) bytes for \(image)")
    precondition(image.frameDurations.count == (image.frameCount > 1 ? image.frameCount : 0), "\(image)")
  }

  /// A file without a name, for one input after the other.
  private static let descriptor = fileno(tmpfile())

  private static func isLate<Value>(_ result: Result<Value, any Error>) -> Bool {
    guard case .failure(ImageError.limitExceeded(.time, _, _)) = result else { return false }
    return true
  }

  /// Calls a function with the URL of a file with the bytes.
  private static func inFile<Value: Sendable>(
    _ bytes: UnsafeRawBufferPointer, _ body: @escaping @Sendable (URL) async throws -> Value
  ) -> Result<Value, any Error> {
    precondition(ftruncate(descriptor, 0) == 0)
    precondition(pwrite(descriptor, bytes.baseAddress, bytes.count, 0) == bytes.count)
    let url = URL(fileURLWithPath: "/proc/self/fd/\(descriptor)")
    let done = DispatchSemaphore(value: 0)
    nonisolated(unsafe) var result = Result<Value, any Error>.failure(CancellationError())
    Task {
      do { result = .success(try await body(url)) } catch { result = .failure(error) }
      done.signal()
    }
    done.wait()
    return result
  }
}
