import Alamofire
@testable import AlamofireImage
import Foundation
import Testing

@Suite("How images are loaded")
struct ImageLoadingTests {
  private let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
    "loading-\(UUID().uuidString)")

  /// Writes a file, calls a function with its URL, and removes it.
  private func with(_ file: Data, _ body: (URL) throws -> Void) throws {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let url = folder.appendingPathComponent("image")
    try file.write(to: url)
    try body(url)
  }

  @Test("A loader shrinks by steps, each from the factor that it needs")
  func loaderOptions() {
    func options(_ format: ImageFormat?, _ width: Int, _ height: Int, frames: Int = 1) -> [String] {
      let facts = ImageFacts(format: format, width: 1_600, height: 3_200, frames: frames, hasAlpha: false)
      let options = LoaderOptions(facts, width: width, height: height)
      return [options.text, "\(options.shrink)"]
    }
    for (width, shrink) in [
      (1_600, 1), (401, 1), (400, 2), (300, 2), (201, 2), (200, 4), (101, 4), (100, 8), (50, 8), (1, 8),
    ] {
      let text = shrink == 1 ? "" : "[shrink=\(shrink)]"
      #expect(options(.jpeg, width, 1) == [text, "\(shrink)"], "\(width) columns")
      #expect(options(.jpeg, 1, 2 * width) == [text, "\(shrink)"], "\(2 * width) rows")
    }
    #expect(options(.webp, 400, 800) == ["[scale=0.5]", "1"])
    #expect(options(.webp, 200, 1) == ["[scale=0.25]", "1"])
    #expect(options(.webp, 401, 1) == ["", "1"])
    #expect(options(.webp, 200, 400, frames: 3) == ["[n=3,scale=0.25]", "1"])
    #expect(options(.gif, 1, 1, frames: 2) == ["[n=2]", "1"])
    for format in [ImageFormat.png, .tiff, .gif, .avif, .heic, nil] {
      #expect(options(format, 1, 1) == ["", "1"])
    }
    for (width, height) in [(0, 0), (0, 5), (5, 0), (-1, 1)] {
      #expect(options(.jpeg, width, height) == ["", "1"], "\(width) × \(height) stands for its own size")
    }
  }

  @Test(
    "The head of a file tells its format and whether it has alpha",
    arguments: [ImageFormat.png, .webp, .tiff])
  func alpha(format: ImageFormat) throws {
    for bands in [3, 4] {
      let drawing = Drawing(9, 7, bands: bands) { x, y in [UInt8(x * 9), UInt8(y * 9), 7, UInt8(90 + x)] }
      let file = try drawing.image().encode(as: format, isLossless: true)
      let image = try Image(data: file, scale: 2)
      #expect((image.format, image.scale, image.frameCount, image.loopCount) == (format, 2, 1, 0))
      #expect(image.size == CGSize(width: 4.5, height: 3.5))
      #expect(image.af.containsAlphaComponent == (bands == 4), "\(bands) bands")
      #expect(image.af.isOpaque == (bands == 3), "\(bands) bands")
      #expect(!image.af.isInflated)
      image.af.inflate()
      #expect(image.af.isInflated)
      #expect((image.format, image.af.containsAlphaComponent) == (format, bands == 4))
      #expect(image.content.data == nil, "the pixels replace the bytes")
      #expect(try image.pixels(as: .rgba) == drawing.image().pixels(as: .rgba))
      try with(file) { url in
        let streamed = try Image(streaming: url, .default)
        #expect((streamed.format, streamed.scale) == (format, 1))
        #expect(streamed.af.containsAlphaComponent == (bands == 4), "\(bands) bands")
        #expect(streamed == (try drawing.image()))
      }
    }
  }

  @Test("The bytes of a file may be as many as the limit says, and no more")
  func bytes() throws {
    for format in [ImageFormat.png, .jpeg, .gif] {
      let file = try Drawing(gradientOf: 9, 7).file(format)
      try with(file) { url in
        let makers: [(String, (ImageLimits) throws -> Image)] = [
          ("data", { try Image(data: file, limits: $0) }),
          ("contentsOf", { try Image(contentsOf: url, limits: $0) }),
          ("streaming", { try Image(streaming: url, $0) }),
        ]
        for (name, make) in makers {
          for limit in [file.count, file.count + 1] {
            let image = try make(ImageLimits(bytes: limit))
            #expect(image.limits == ImageLimits(bytes: limit), "\(name)")
            #expect((image.pixelWidth, image.format) == (9, format), "\(name)")
          }
          for limit in [file.count - 1, file.count - 9, 1, 0] {
            #expect(throws: ImageError.limitExceeded(.bytes, limit: limit, actual: file.count), "\(name)") {
              try make(ImageLimits(bytes: limit))
            }
          }
        }
      }
    }
  }

  @Test(
    "Other limits hold for bytes, for files, and for files that stay open",
    arguments: [ImageFormat.png, .gif])
  func limits(format: ImageFormat) throws {
    let file = try Drawing(gradientOf: 9, 7).file(format)
    let cases: [(ImageLimits, ImageError?)] = [
      (ImageLimits(pixels: 63), nil), (ImageLimits(formats: [format]), nil),
      (ImageLimits(pixels: 62), .limitExceeded(.pixels, limit: 62, actual: 63)),
      (ImageLimits(formats: Set(ImageFormat.allCases).subtracting([format])), .unsupportedFormat(format)),
    ]
    try with(file) { url in
      for (limits, error) in cases {
        let makers: [(String, () throws -> Image)] = [
          ("data", { try Image(data: file, limits: limits) }),
          ("contentsOf", { try Image(contentsOf: url, limits: limits) }),
          ("streaming", { try Image(streaming: url, limits) }),
        ]
        for (name, make) in makers {
          guard let error else {
            let image = try make()
            #expect(image.limits == limits, "\(name)")
            continue
          }
          #expect(throws: error, "\(name)") { try make() }
        }
      }
    }
  }

  @Test("A file that is not one of an image is refused, whatever it is read by")
  func noImage() throws {
    try with(Data("hello".utf8)) { url in
      #expect(throws: ImageError.unknownFormat) { try Image(data: Data("hello".utf8)) }
      #expect(throws: ImageError.unknownFormat) { try Image(contentsOf: url) }
      #expect(throws: ImageError.unknownFormat) { try Image(streaming: url, .default) }
    }
    // A signature of JPEG with something else behind it.
    #expect { try Image(data: Data([0xff, 0xd8, 0xff] + Array("hello, this is text".utf8))) } throws: {
      error in
      if case .damaged(let text)? = error as? ImageError {
        !text.isEmpty && text.count <= 300 && !text.contains("\n") && !text.hasSuffix(".")
      } else {
        false
      }
    }
  }

  @Test("A file that grew is read up to one byte more than its limit, so that this is noticed")
  func growing() throws {
    let small = try Drawing(gradientOf: 9, 7).file(.gif)
    try with(small) { url in
      let limits = ImageLimits(bytes: small.count + 10)
      let file = try ImageFile(url, limits)
      #expect(file.format == .gif)
      #expect(try file.bytes(limits) == small)
      let writer = try FileHandle(forWritingTo: url)
      try writer.seekToEnd()
      try writer.write(contentsOf: Data(repeating: 7, count: 5))
      #expect(try file.bytes(limits) == small + Data(repeating: 7, count: 5), "it is read again")
      try writer.write(contentsOf: Data(repeating: 7, count: 50))
      try writer.close()
      #expect(try file.bytes(limits).count == small.count + 11)
      #expect(try file.bytes(ImageLimits(bytes: 0)).count == 2)
      #expect(throws: ImageError.limitExceeded(.bytes, limit: small.count + 10, actual: small.count + 11)) {
        try ImageContent(streaming: file, limits)
      }
    }
  }

  @Test("An open file is not passed on to programs, and is closed with its image")
  func descriptor() throws {
    try with(Drawing(gradientOf: 9, 7).file(.jpeg)) { url in
      func numbers() throws -> [CInt] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").filter {
          let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
          return path?.hasPrefix(url.path) == true
        }.compactMap { CInt($0) }
      }
      do {
        let image = try Image(streaming: url, .default)
        let open = try numbers()
        #expect(open.count == 1)
        for number in open { #expect(fcntl(number, F_GETFD) & FD_CLOEXEC != 0) }
        #expect(image.content.data == nil)
      }
      #expect(try numbers().isEmpty)
    }
  }

  @Test("An open file that became another image is refused with the reason")
  func changedFile() throws {
    let file = try Drawing(gradientOf: 90, 70).file(.jpeg)
    let marker = try #require(file.firstRange(of: Data([0xff, 0xc0])))
    var progressive = file
    progressive[marker.lowerBound + 1] = 0xc2
    try with(file) { url in
      let image = try Image(streaming: url, .default)
      let writer = try FileHandle(forWritingTo: url)
      try writer.write(contentsOf: progressive)
      try writer.close()
      #expect(throws: ImageError.fileFailed("it has changed")) { try image.pixels(as: .rgb) }
    }
  }

  @Test(
    "What is decoded in a smaller size is close to what is scaled, for each step of the loader",
    arguments: [ImageFormat.jpeg, .webp, .png])
  func shrinking(format: ImageFormat) throws {
    let drawing = Drawing(gradientOf: 320, 160)
    let file = try drawing.file(format, quality: 1)
    try with(file) { url in
      for side in [300, 80, 60, 40, 30, 20, 10] {
        let expected = try drawing.image().content.stretched(width: side, height: side / 2)
        for (name, image) in [
          ("bytes", try Image(data: file)), ("file", try Image(streaming: url, .default)),
        ] {
          let pixels = try image.content.stretched(width: side, height: side / 2)
          #expect((pixels.layout.width, pixels.layout.height) == (side, side / 2))
          let difference = zip(pixels.data, expected.data).map { abs(Int($0) - Int($1)) }.max() ?? .max
          #expect(difference <= 12, "\(side) from the \(name)")
          #expect(!image.content.isDecoded, "\(side) from the \(name)")
        }
      }
    }
  }

  @Test(
    "What is decoded for a size is exactly what the loader gives with its options", arguments: [false, true])
  func options(isFile: Bool) throws {
    let drawing = Drawing(320, 240, bands: 3) { x, y in
      [
        UInt8(truncatingIfNeeded: x &* y), UInt8(truncatingIfNeeded: x &* 37),
        UInt8(truncatingIfNeeded: y &* 91),
      ]
    }
    for format in [ImageFormat.jpeg, .webp] where format == .jpeg || !isFile {
      try with(drawing.file(format)) { url in
        let image = isFile ? try Image(streaming: url, .default) : try Image(contentsOf: url)
        let source = try isFile ? ImageSource.file(ImageFile(url, .default)) : .memory(Data(contentsOf: url))
        func loaded(_ side: Int, optionsFor optionSide: Int) throws -> Data {
          let work = ImageWork(limit: .seconds(60))
          let options = LoaderOptions(image.content.facts, width: optionSide, height: optionSide)
          return try source.withImage(options, work, .default) { image throws(ImageError) in
            try image.scaled(width: side, height: side, work).pixels(work)
          }.data
        }
        for side in [80, 61, 60, 59, 30, 20, 15, 9] {
          let pixels = try image.content.stretched(width: side, height: side).data
          #expect(try pixels == loaded(side, optionsFor: side), "\(format), \(side)")
          if side <= 60 {
            #expect(try pixels != loaded(side, optionsFor: 0), "\(format), \(side), all decoded")
          }
        }
      }
    }
  }

  @Test("Bytes that look like scans, or like frames, count only in the formats that have them")
  func otherFormats() throws {
    let gif = try Drawing(of: [1, 2, 3], 9, 7).file(.gif)
    // Comments (GIF89a §24) of blocks, behind the global table of colours.
    var comments = Data()
    for text in [[0xff, 0xda, 0, 2], Array("ANMF".utf8) + [0, 0, 0, 0]] as [[UInt8]] {
      let block = Array(repeating: text, count: 240 / text.count).flatMap { $0 }
      for _ in 0..<5 { comments += [0x21, 0xfe, 240] + block + [0] }
    }
    let tableCount = gif[10] & 0x80 == 0 ? 0 : 3 << (Int(gif[10] & 7) + 1)
    let marked = gif.prefix(13 + tableCount) + comments + gif.dropFirst(13 + tableCount)
    let image = try Image(data: marked, limits: ImageLimits(frames: 1))
    #expect(image.frameCount == 1)
    #expect(try image == Image(data: gif))
  }

  @Test("A damaged file that stays open equals itself and its copies, and no other")
  func damagedFile() throws {
    try with(Drawing(gradientOf: 200, 200).file(.png).prefix(900)) { url in
      let image = try Image(streaming: url, .default)
      let copy = image
      #expect(image == copy)
      #expect(try image != Image(streaming: url, .default))
      #expect(try image != Image(contentsOf: url))
    }
  }

  @Test("A size that is known is not computed again, and another is, on both sides")
  func stretched() throws {
    let content = try Drawing(gradientOf: 20, 10).image().content
    let pixels = try content.decoded()
    #expect(try content.stretched(width: 20, height: 10) === pixels)
    for (width, height) in [(20, 9), (19, 10), (10, 20)] {
      let layout = try content.stretched(width: width, height: height).layout
      #expect(layout == PixelLayout(width: width, height: height, frames: 1, bands: 3))
    }
    #expect(throws: ImageError.limitExceeded(.pixels, limit: 199, actual: 200)) {
      try ImageContent(pixels, ImageLimits(pixels: 199)).stretched(width: 20, height: 10)
    }
  }

  @Test("Pixels that are not those of the head have another width, height or count of frames")
  func checking() throws {
    let content = try Drawing(gradientOf: 4, 3).image().content
    for (width, height, frames) in [(5, 3, 1), (3, 3, 1), (4, 4, 1), (4, 2, 1), (4, 3, 2), (3, 4, 1)] {
      let layout = PixelLayout(width: width, height: height, frames: frames, bands: 3)
      #expect(throws: ImageError.damaged("its pixels have another size than its head says")) {
        try content.checked(PixelBuffer(layout) { _ in }, width: 4, height: 3)
      }
    }
  }
}
