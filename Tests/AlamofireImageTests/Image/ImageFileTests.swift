import AlamofireImage
import ChildProcesses
import Foundation
import Testing

@testable import AlamofireImage

@Suite("Images decoded from open files")
struct ImageFileTests {
  private let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
    "open-\(UUID().uuidString)")

  private static let sizes = ImageVariants(.init("list", longestSide: 40), .init("same", longestSide: 5_000))

  /// Writes a file, calls a function with its URL, and removes it.
  private func with(_ file: Data, name: String = "image", _ body: (URL) async throws -> Void) async throws {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let url = folder.appendingPathComponent(name)
    try file.write(to: url)
    try await body(url)
  }

  private static let drawing = Drawing(300, 200, bands: 3) { x, y in
    [UInt8(x * 255 / 299), UInt8(y * 255 / 199), UInt8(truncatingIfNeeded: x &* y / 7)]
  }

  @Test("A file gives the same as its bytes", arguments: [ImageFormat.jpeg, .png, .webp, .gif, .tiff])
  func same(format: ImageFormat) async throws {
    let file = try Self.drawing.file(format)
    try await with(file) { url in
      let streamed = try await Self.sizes.images(ofFile: url)
      let expected = try Self.sizes.make(of: Image(data: file))
      #expect(streamed == expected)
      let files = try await Self.sizes.files(ofFile: url, as: .png)
      #expect(try Image(data: #require(files["list"])) == expected["list"])
      // The bytes are in memory only where libvips would read them all.
      let image = try Image(streaming: url, .default)
      #expect((image.content.data == nil) == (format == .jpeg || format == .png))
      #expect(image.format == format)
    }
  }

  @Test("An animation keeps its frames")
  func animation() async throws {
    let frames = try (0..<3).map { try Drawing(of: [UInt8($0 * 80), 9, 9], 60, 30).image() }
    let file = try Image(frames: frames, loopCount: 2).encode(as: .webp, isLossless: true)
    try await with(file) { url in
      let small = try #require(try await Self.sizes.images(ofFile: url)["list"])
      #expect((small.frameCount, small.loopCount, small.pixelHeight) == (3, 2, 20))
    }
  }

  @Test(
    "What Pillow writes is turned and converted, and files with several scans are read into memory",
    .enabled(if: PythonEnvironment.has("pillow")))
  func pillow() async throws {
    let script = """
      import sys, os
      from PIL import Image
      os.chdir(sys.argv[1])
      image = Image.merge('RGB', [Image.linear_gradient('L'), Image.radial_gradient('L'), Image.new('L', (256, 256), 90)])
      image = image.resize((400, 240))
      exif = Image.Exif(); exif[0x0112] = 6
      image.save('turned.jpeg', exif=exif)
      image.convert('CMYK').save('ink.jpeg')
      image.convert('L').save('grey.png')
      image.quantize().save('palette.png')
      image.save('scans.jpeg', progressive=True)
      """
    try await with(Data()) { url in
      let run = try await ChildRun([PythonEnvironment.program, "-I", "-c", script, folder.path])
      try #require(run.status == 0, "Pillow failed:\n\(run.complaints)")
      for name in ["turned.jpeg", "ink.jpeg", "grey.png", "palette.png", "scans.jpeg"] {
        let file = folder.appendingPathComponent(name)
        let image = try Image(contentsOf: file)
        #expect(try await Self.sizes.images(ofFile: file) == Self.sizes.make(of: image), "\(name)")
        let isStreamed = try Image(streaming: file, .default).content.data == nil
        #expect(isStreamed == (name != "scans.jpeg"), "\(name)")
      }
      let turned = try await Self.sizes.images(ofFile: folder.appendingPathComponent("turned.jpeg"))
      #expect((turned["same"]?.pixelWidth, turned["same"]?.pixelHeight) == (240, 400))
    }
  }

  @Test("A truncated file is an error", arguments: [ImageFormat.jpeg, .png])
  func truncated(format: ImageFormat) async throws {
    let file = try Self.drawing.file(format)
    try await with(file.prefix(file.count / 2)) { url in
      await #expect(throws: ImageError.self) { try await Self.sizes.images(ofFile: url) }
    }
    try await with(file.prefix(40)) { url in
      await #expect(throws: ImageError.self) { try await Self.sizes.images(ofFile: url) }
    }
  }

  @Test("The limits are those of all images")
  func limits() async throws {
    let file = try Self.drawing.file(.jpeg)
    try await with(file) { url in
      await #expect(throws: ImageError.limitExceeded(.pixels, limit: 59_999, actual: 60_000)) {
        try await Self.sizes.images(ofFile: url, limits: ImageLimits(pixels: 59_999))
      }
      await #expect(throws: ImageError.limitExceeded(.bytes, limit: 99, actual: file.count)) {
        try await Self.sizes.images(ofFile: url, limits: ImageLimits(bytes: 99))
      }
      await #expect(throws: ImageError.unsupportedFormat(.jpeg)) {
        try await Self.sizes.images(ofFile: url, limits: ImageLimits(formats: [.png]))
      }
      await #expect(throws: ImageError.self) {
        try await Self.sizes.files(ofFile: url, as: .jpeg, limits: ImageLimits(time: .seconds(-1)))
      }
      await #expect(throws: ImageError.limitExceeded(.pixels, limit: 59_999, actual: 60_000)) {
        try await Self.sizes.files(ofFile: url, as: .jpeg, limits: ImageLimits(pixels: 59_999))
      }
    }
  }

  @Test("Only regular files are read", .timeLimit(.minutes(1)))
  func otherFiles() async throws {
    try await with(Data("text".utf8)) { url in
      await #expect(throws: ImageError.unknownFormat) { try await Self.sizes.images(ofFile: url) }
      await #expect(throws: ImageError.fileFailed("it is not a regular file")) {
        try await Self.sizes.images(ofFile: folder)
      }
      let pipe = folder.appendingPathComponent("pipe")
      try #require(mkfifo(pipe.path, 0o600) == 0)
      #expect(throws: ImageError.fileFailed("it is not a regular file")) { try Image(contentsOf: pipe) }
      #expect(throws: ImageError.fileFailed("No such file or directory")) {
        try Image(contentsOf: folder.appendingPathComponent("missing"))
      }
      #expect(throws: ImageError.fileFailed("its URL is not the URL of a file")) {
        try Image(contentsOf: #require(URL(string: "http://127.0.0.1/a.png")))
      }
    }
  }

  @Test("A file that changes while it is open cannot exceed the limits")
  func changed() async throws {
    let small = try Self.drawing.file(.png)
    let large = try Drawing(gradientOf: 600, 400).file(.png)
    let limits = ImageLimits(pixels: 100_000)
    try await with(small) { url in
      let image = try Image(streaming: url, limits)
      let file = try FileHandle(forWritingTo: url)
      try file.write(contentsOf: large)
      try file.close()
      #expect(throws: ImageError.limitExceeded(.pixels, limit: 100_000, actual: 240_000)) {
        try Self.sizes.make(of: image)
      }
      try small.write(to: url)
      let other = try Image(streaming: url, limits)
      let emptied = try FileHandle(forWritingTo: url)
      try emptied.truncate(atOffset: 0)
      try emptied.close()
      #expect(throws: ImageError.self) { try Self.sizes.make(of: other) }
    }
  }

  @Test("A file that has another size than when it was opened is damaged")
  func changedSize() async throws {
    try await with(Self.drawing.file(.png)) { url in
      let image = try Image(streaming: url, .default)
      let file = try FileHandle(forWritingTo: url)
      try file.write(contentsOf: Drawing(gradientOf: 600, 400).file(.png))
      try file.close()
      #expect(throws: ImageError.damaged("its pixels have another size than its head says")) {
        try image.pixels(as: .rgb)
      }
      #expect(!image.content.isDecoded)
    }
  }

  @Test("The files of a file's variants have the quality and the time that were asked for")
  func choices() async throws {
    try await with(Self.drawing.file(.png)) { url in
      let image = try Image(contentsOf: url)
      for quality in [0.1, 0.95] {
        let files = try await Self.sizes.files(ofFile: url, as: .jpeg, quality: quality)
        #expect(try files["same"] == image.encode(as: .jpeg, quality: quality), "\(quality)")
      }
      let usual = try await Self.sizes.files(ofFile: url, as: .jpeg)
      #expect(try usual["same"] == image.encode(as: .jpeg, quality: 0.8))
      await #expect {
        try await Self.sizes.images(ofFile: url, limits: ImageLimits(time: .seconds(-1)))
      } throws: { error in
        if case .limitExceeded(.time, limit: -1_000, actual: _)? = error as? ImageError {
          true
        } else {
          false
        }
      }
      let limits = ImageLimits(pixels: 100_000)
      for result in try await Self.sizes.images(ofFile: url, limits: limits).values {
        #expect(result.limits == limits)
      }
    }
  }

  @Test("A JPEG that became one of many scans is refused")
  func changedScans() async throws {
    let file = try Self.drawing.file(.jpeg)
    try await with(file) { url in
      let image = try Image(streaming: url, .default)
      // The marker of a progressive frame in place of a baseline one.
      let marker = try #require(file.firstRange(of: Data([0xff, 0xc0])))
      var progressive = file
      progressive[marker.lowerBound + 1] = 0xc2
      let writer = try FileHandle(forWritingTo: url)
      try writer.write(contentsOf: progressive)
      try writer.close()
      #expect(throws: ImageError.self) { try Self.sizes.make(of: image) }
    }
  }

  @Test("Many files at once leave no descriptor open")
  func descriptors() async throws {
    let file = try Self.drawing.file(.jpeg)
    try await with(file) { url in
      func opened() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").filter {
          let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
          return target?.hasPrefix(url.path) == true
        }.count
      }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<40 {
          group.addTask {
            let images = try await Self.sizes.images(ofFile: url)
            #expect(images.count == 2)
          }
        }
        try await group.waitForAll()
      }
      #expect(try opened() == 0)
      let image = try Image(streaming: url, .default)
      #expect(try opened() == 1)
      withExtendedLifetime(image) {}
    }
  }
}
