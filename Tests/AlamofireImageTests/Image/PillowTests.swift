import Alamofire
import AlamofireImage
import CVips
import ChildProcesses
import Foundation
import Testing

/// Pictures that Pillow, a library by other authors, draws and reads: what it says must be what this module says.
@Suite("Images beside Pillow", .enabled(if: PythonEnvironment.has("pillow")))
struct PillowTests {
  /// Runs a program of Python, and returns the folder that it writes to.
  private static func run(_ script: String) async throws -> URL {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("pillow-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let run = try await ChildRun([PythonEnvironment.program, "-I", "-c", prelude + script, folder.path])
    try #require(run.status == 0, "Pillow failed:\n\(run.complaints)")
    return folder
  }

  /// The picture is smooth with a sharp edge, so that wrong places and wrong colours are both seen.
  private static let prelude = """
    import sys, os
    from PIL import Image, ImageOps, ImageFilter, ImageCms
    os.chdir(sys.argv[1])
    def picture(w, h):
        image = Image.new('RGB', (w, h))
        image.putdata([(x * 255 // (w - 1), y * 255 // (h - 1), 220 if x > w // 3 and y > h // 4 else 40)
                       for y in range(h) for x in range(w)])
        return image
    def keep(image, name):
        with open(name, 'wb') as file: file.write(image.convert('RGBA').tobytes())

    """

  /// Asserts that an image has the samples in a file, but for small differences.
  private func expect(
    _ image: Image, _ raw: URL, mean limit: Double, greatest: Int = 255, _ comment: Comment,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let (ours, theirs) = (try image.pixels(as: .rgba), try Data(contentsOf: raw))
    try #require(ours.count == theirs.count, comment, sourceLocation: sourceLocation)
    // The colours of transparent pixels mean nothing.
    var sum = 0
    var largest = 0
    for pixel in stride(from: 0, to: ours.count, by: 4) {
      let (a, b) = (ours[pixel..<pixel + 4], theirs[pixel..<pixel + 4])
      let isTransparent = a[pixel + 3] == 0 && b[pixel + 3] == 0
      for index in pixel..<pixel + 4 where !isTransparent {
        let difference = abs(Int(a[index]) - Int(b[index]))
        sum += difference
        largest = max(largest, difference)
      }
    }
    let mean = Double(sum) / Double(ours.count)
    #expect(
      mean <= limit && largest <= greatest, "\(comment): mean \(mean), greatest \(largest)",
      sourceLocation: sourceLocation)
  }

  @Test("Kinds of files are decoded to the same pixels")
  func decoding() async throws {
    let folder = try await Self.run(
      """
      image = picture(60, 45)
      alpha = image.copy(); alpha.putalpha(Image.linear_gradient('L').resize((60, 45)))
      files = {
          'rgb.png': image, 'alpha.png': alpha, 'grey.png': image.convert('L'), 'palette.png': image.convert('P'),
          'grey-alpha.png': alpha.convert('LA'), 'bilevel.png': image.convert('1'), 'rgb.tiff': image,
          'grey.tiff': image.convert('L'), 'lossless.webp': alpha, 'palette.gif': image.convert('P'),
          'grey.jpeg': image.convert('L'), 'baseline.jpeg': image, 'progressive.jpeg': image,
      }
      for name, file in files.items():
          options = {'lossless': True} if 'webp' in name else {}
          if 'jpeg' in name: options = {'quality': 95, 'subsampling': 0, 'progressive': 'progressive' in name}
          file.save(name, **options)
          keep(Image.open(name), name + '.raw')
      clear = image.convert('P'); clear.info['transparency'] = 3; clear.save('clear.png', transparency=3)
      keep(Image.open('clear.png'), 'clear.png.raw')
      """)
    defer { try? FileManager.default.removeItem(at: folder) }
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter {
      !$0.hasSuffix(".raw")
    }
    #expect(names.count == 14)
    for name in names {
      let image = try Image(contentsOf: folder.appendingPathComponent(name))
      try expect(
        image, folder.appendingPathComponent(name + ".raw"), mean: 0.6,
        greatest: name.hasSuffix("jpeg") ? 6 : 1, "\(name)")
    }
  }

  @Test("Samples of 16 bits and of CMYK become 8 bits of sRGB")
  func otherSamples() async throws {
    let folder = try await Self.run(
      """
      grey = Image.new('I;16', (40, 30)); grey.putdata([x * 1600 + y for y in range(30) for x in range(40)])
      grey.save('sixteen.png')
      keep(Image.new('L', (40, 30)), 'sixteen.raw')
      eight = Image.new('L', (40, 30)); eight.putdata([(x * 1600 + y) >> 8 for y in range(30) for x in range(40)])
      keep(eight, 'sixteen.raw')
      Image.new('CMYK', (20, 20), (0, 255, 255, 0)).save('red.jpeg', quality=95)
      """)
    defer { try? FileManager.default.removeItem(at: folder) }
    let sixteen = try Image(contentsOf: folder.appendingPathComponent("sixteen.png"))
    try expect(sixteen, folder.appendingPathComponent("sixteen.raw"), mean: 1, greatest: 2, "16 bits")
    let red = try Image(contentsOf: folder.appendingPathComponent("red.jpeg")).pixel(10, 10)
    // The exact colour depends on the profile for printers, which the file does not name.
    #expect(red[0] > 200 && red[1] < 80 && red[2] < 80 && red[3] == 255, "\(red)")
  }

  @Test("A profile is converted to sRGB")
  func profile() async throws {
    let folder = try await Self.run(
      """
      lab = ImageCms.createProfile('XYZ')
      image = picture(40, 30)
      profile = ImageCms.ImageCmsProfile(ImageCms.createProfile('sRGB')).tobytes()
      image.save('tagged.png', icc_profile=profile)
      keep(image, 'tagged.raw')
      """)
    defer { try? FileManager.default.removeItem(at: folder) }
    let image = try Image(contentsOf: folder.appendingPathComponent("tagged.png"))
    try expect(image, folder.appendingPathComponent("tagged.raw"), mean: 1, greatest: 4, "sRGB profile")
  }

  @Test("The colours of a profile are followed, also with alpha", arguments: ["RGB", "RGBA"])
  func otherPrimaries(mode: String) async throws {
    let folder = try await Self.run(
      """
      profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile('sRGB')).tobytes())
      # The table of tags: a name, an offset and a size each. Red and blue change places.
      tags = {bytes(profile[at:at + 4]): at for at in range(132, 132 + 12 * profile[131], 12)}
      red, blue = tags[b'rXYZ'], tags[b'bXYZ']
      profile[red + 4:red + 12], profile[blue + 4:blue + 12] = profile[blue + 4:blue + 12], profile[red + 4:red + 12]
      Image.new('\(mode)', (20, 20), (255, 0, 0)).save('a.png', icc_profile=bytes(profile))
      """)
    defer { try? FileManager.default.removeItem(at: folder) }
    let pixel = try Image(contentsOf: folder.appendingPathComponent("a.png")).pixel(9, 9)
    #expect(pixel[0] < 10 && pixel[1] < 10 && pixel[2] > 245, "\(pixel)")
  }

  @Test("Each orientation is applied", arguments: [false, true])
  func orientation(isScaled: Bool) async throws {
    let folder = try await Self.run(
      """
      for value in range(1, 9):
          image = picture(400, 240)
          exif = Image.Exif(); exif[0x0112] = value
          image.save(f'{value}.jpeg', exif=exif, quality=95, subsampling=0)
          turned = ImageOps.exif_transpose(Image.open(f'{value}.jpeg'))
          keep(turned, f'{value}.raw')
          keep(turned.resize((turned.width // 10, turned.height // 10), Image.LANCZOS), f'{value}.small')
      """)
    defer { try? FileManager.default.removeItem(at: folder) }
    for value in 1...8 {
      let image = try Image(contentsOf: folder.appendingPathComponent("\(value).jpeg"))
      let isTurned = value >= 5
      #expect((image.pixelWidth, image.pixelHeight) == (isTurned ? 240 : 400, isTurned ? 400 : 240))
      if isScaled {
        let size = CGSize(width: image.pixelWidth / 10, height: image.pixelHeight / 10)
        let scaled = image.af.imageScaled(to: size)
        try expect(
          scaled, folder.appendingPathComponent("\(value).small"), mean: 1.5, "orientation \(value), scaled")
      } else {
        try expect(
          image, folder.appendingPathComponent("\(value).raw"), mean: 0.6, greatest: 6, "orientation \(value)"
        )
      }
    }
  }

  @Test("An animation with an orientation is not turned, and none of its frames is lost")
  func turnedAnimation() async throws {
    let folder = try await Self.run(
      """
      frames = [Image.new('RGB', (80, 40), (50 * index, 0, 200)) for index in range(5)]
      for value in (3, 6):
          exif = Image.Exif(); exif[0x0112] = value
          frames[0].save(f'{value}.webp', save_all=True, append_images=frames[1:], exif=exif.tobytes(), lossless=True)
      """)
    defer { try? FileManager.default.removeItem(at: folder) }
    for value in [3, 6] {
      let image = try Image(contentsOf: folder.appendingPathComponent("\(value).webp"))
      #expect((image.pixelWidth, image.pixelHeight, image.frameCount) == (80, 40, 5))
      for index in 0..<5 {
        #expect(try image.frame(index)?.pixel(9, 9) == [UInt8(50 * index), 0, 200, 255], "frame \(index)")
      }
      let blurred = try BlurFilter(blurRadius: 2).apply(image)
      #expect(try blurred.frame(4)?.pixel(9, 9) == [200, 0, 200, 255])
    }
  }

  @Test("The image of a file of several pages is its first page")
  func pages() async throws {
    let folder = try await Self.run(
      """
      first = picture(40, 30); keep(first, 'first.raw')
      first.save('a.tiff', save_all=True, append_images=[Image.new('RGB', (40, 30), (9, 9, 9))])
      """)
    defer { try? FileManager.default.removeItem(at: folder) }
    let image = try Image(contentsOf: folder.appendingPathComponent("a.tiff"))
    #expect((image.pixelWidth, image.pixelHeight, image.frameCount) == (40, 30, 1))
    try expect(image, folder.appendingPathComponent("first.raw"), mean: 0, "the first page")
  }

  @Test("Frames do not mix when they are scaled", arguments: ["gif", "webp"])
  func frameEdges(format: String) async throws {
    let folder = try await Self.run(
      """
      frames = [Image.new('RGB', (50, 50), color) for color in ((255, 0, 0), (0, 255, 0))]
      frames[0].save('a.\(format)', save_all=True, append_images=frames[1:], lossless=True)
      """)
    defer { try? FileManager.default.removeItem(at: folder) }
    let image = try Image(contentsOf: folder.appendingPathComponent("a.\(format)"))
    for side in [20, 200] {
      let scaled = image.af.imageScaled(to: CGSize(width: side, height: side))
      let (first, second) = (try #require(try scaled.frame(0)), try #require(try scaled.frame(1)))
      for row in [0, side / 2, side - 1] {
        #expect(try first.pixel(side / 2, row) == [255, 0, 0, 255], "\(side), row \(row)")
        #expect(try second.pixel(side / 2, row) == [0, 255, 0, 255], "\(side), row \(row)")
      }
    }
  }

  @Test("A WebP of many frames is refused by its head")
  func manyFrames() async throws {
    let folder = try await Self.run(
      """
      image = Image.new('RGB', (1, 1)); image.save('a.webp', save_all=True, append_images=[Image.new('RGB', (1, 1), (9, 9, 9))])
      data = open('a.webp', 'rb').read()
      start = data.index(b'ANMF'); size = 8 + int.from_bytes(data[start + 4:start + 8], 'little'); frame = data[start:start + size]
      body = data[8:start] + frame * 200000
      open('b.webp', 'wb').write(b'RIFF' + len(body).to_bytes(4, 'little') + body)
      """)
    defer { try? FileManager.default.removeItem(at: folder) }
    #expect(throws: ImageError.limitExceeded(.frames, limit: 1_000, actual: 200_000)) {
      try Image(contentsOf: folder.appendingPathComponent("b.webp"))
    }
  }

  @Test("A profile that does not fit the samples is ignored")
  func wrongProfile() async throws {
    let folder = try await Self.run(
      """
      profile = ImageCms.ImageCmsProfile(ImageCms.createProfile('sRGB')).tobytes()
      Image.new('L', (20, 20), 90).save('grey.jpeg', icc_profile=profile, quality=95)
      picture(40, 30).save('short.png', icc_profile=b'too short')
      """)
    defer { try? FileManager.default.removeItem(at: folder) }
    let grey = try Image(contentsOf: folder.appendingPathComponent("grey.jpeg")).pixel(5, 5)
    #expect(grey == [90, 90, 90, 255])
    #expect(try Image(contentsOf: folder.appendingPathComponent("short.png")).pixel(0, 0)[2] == 40)
  }

  @Test("The time limit ends work on an image that has to be turned, too")
  func timeOfTurnedImage() async throws {
    let folder = try await Self.run(
      """
      exif = Image.Exif(); exif[0x0112] = 6
      picture(600, 400).resize((4000, 4000)).save('turned.jpeg', exif=exif)
      """)
    defer { try? FileManager.default.removeItem(at: folder) }
    let file = folder.appendingPathComponent("turned.jpeg")
    let image = try Image(contentsOf: file, limits: ImageLimits(time: .milliseconds(1)))
    #expect { try image.pixels(as: .rgb) } throws: { error in
      if case ImageError.limitExceeded(.time, limit: 1, actual: _) = error { true } else { false }
    }
  }

  @Test("Filters make what Pillow makes")
  func filters() async throws {
    let folder = try await Self.run(
      """
      image = picture(600, 400); image.save('source.png')
      keep(image.resize((90, 70), Image.LANCZOS), 'scaled')
      keep(image.resize((1000, 700), Image.BICUBIC), 'enlarged')
      keep(ImageOps.fit(image, (100, 100), Image.LANCZOS), 'filled')
      canvas = Image.new('RGBA', (120, 120), (0, 0, 0, 0))
      canvas.paste(image.resize((120, 80), Image.LANCZOS), (0, 20)); keep(canvas, 'fitted')
      keep(image.filter(ImageFilter.GaussianBlur(6)), 'blurred')
      """)
    defer { try? FileManager.default.removeItem(at: folder) }
    let image = try Image(contentsOf: folder.appendingPathComponent("source.png"))
    let filters: [(String, any ImageFilter)] = [
      ("scaled", ScaledToSizeFilter(size: CGSize(width: 90, height: 70))),
      ("enlarged", ScaledToSizeFilter(size: CGSize(width: 1_000, height: 700))),
      ("filled", AspectScaledToFillSizeFilter(size: CGSize(width: 100, height: 100))),
      ("fitted", AspectScaledToFitSizeFilter(size: CGSize(width: 120, height: 120))),
      ("blurred", BlurFilter(blurRadius: 6)),
    ]
    for (name, filter) in filters {
      try expect(
        try filter.apply(image), folder.appendingPathComponent(name), mean: 1.2, greatest: 100, "\(name)")
    }
  }

  @Test("Animations have the same frames and durations", arguments: ["gif", "webp"])
  func animations(format: String) async throws {
    let folder = try await Self.run(
      """
      frames = [picture(50, 40).rotate(90 * turn) for turn in range(4)]
      frames[0].save('a.\(format)', save_all=True, append_images=frames[1:], duration=[50, 120, 80, 200], loop=0,
                     lossless=True)
      file = Image.open('a.\(format)')
      for index in range(4):
          file.seek(index); keep(file, f'{index}.raw')
      """)
    defer { try? FileManager.default.removeItem(at: folder) }
    let image = try Image(contentsOf: folder.appendingPathComponent("a.\(format)"))
    #expect(image.frameCount == 4)
    #expect(image.frameDurations == [50, 120, 80, 200].map { .milliseconds($0) })
    #expect(image.loopCount == 0)
    for index in 0..<4 {
      let frame = try #require(try image.frame(index))
      try expect(
        frame, folder.appendingPathComponent("\(index).raw"), mean: 0.1, greatest: 1, "frame \(index)")
    }
  }

  @Test("Pillow reads what is written", arguments: [ImageFormat.jpeg, .png, .webp, .gif, .tiff])
  func writing(format: ImageFormat) async throws {
    let image = try Drawing(gradientOf: 64, 48, bands: 4).image()
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("written-\(UUID().uuidString)")
    try image.write(to: file, as: format, quality: 0.95)
    defer { try? FileManager.default.removeItem(at: file) }
    let folder = try await Self.run(
      "image = Image.open('\(file.path)'); print(image.format); keep(image, 'raw')")
    defer { try? FileManager.default.removeItem(at: folder) }
    let isLossless = format == .png || format == .tiff
    try expect(
      image, folder.appendingPathComponent("raw"), mean: format == .gif ? 8 : isLossless ? 0 : 2.5,
      "\(format)")
  }
}

@Suite("The library")
struct VipsTests {
  @Test("Each image is computed by one thread, and no pixels of requests are cached")
  func settings() throws {
    let file = try Drawing(gradientOf: 8, 8).file(.png)
    _ = try BlurFilter(blurRadius: 2).apply(Image(data: file))
    #expect(cvips_threads() == 1)
    #expect(cvips_cached_operations() == 0)
  }

  @Test("Images of the library are released, with their memory")
  func released() throws {
    let file = try Drawing(gradientOf: 500, 500).file(.jpeg)
    // The library copies an image that has to be turned, here by a quarter, into memory that it counts.
    let orientation = Data(
      "Exif\0\0MM\0*\0\0\0\u{8}\0\u{1}\u{1}\u{12}\0\u{3}\0\0\0\u{1}\0\u{6}\0\0\0\0\0\0".utf8)
    let turned =
      file.prefix(2) + Data([0xff, 0xe1, 0, UInt8(orientation.count + 2)]) + orientation + file.dropFirst(2)
    let before = cvips_memory()
    for _ in 0..<300 { _ = try Image(data: turned).pixels(as: .rgb) }
    let growth = (Int(cvips_memory()) - Int(before)) / 1_000_000
    // The images of other tests are counted, too. Together, the copies of these have 225 MB.
    #expect(growth < 100, "\(growth) MB are left")
  }

  /// Finds the flags of the compiler for the headers of libvips, or `nil` where they are not installed.
  private static func flags() async throws -> [String]? {
    let run = try? await ChildRun(["pkg-config", "--cflags", "vips"])
    guard let run, run.status == 0 else { return nil }
    return String(decoding: run.output, as: UTF8.self).split(whereSeparator: \.isWhitespace).map(String.init)
  }

  @Test("The functions have the types in the headers")
  func types() async throws {
    guard let flags = try await Self.flags() else {
      #expect(
        ProcessInfo.processInfo.environment["ALAMOFIRE_REQUIRE_SERVERS"] == nil, "libvips-dev is missing")
      return
    }
    let root = HTTPBinServer.packageRoot.path
    let source = FileManager.default.temporaryDirectory.appendingPathComponent("types-\(UUID().uuidString).c")
    let text = """
      #include <vips/vips.h>
      #define F(result, name, parameters) \\
        _Static_assert(__builtin_types_compatible_p(__typeof__(&name), result(*) parameters), #name);
      #include "\(root)/Sources/CVips/functions.h"
      _Static_assert(VIPS_FORMAT_UCHAR == 0 && VIPS_INTERPRETATION_sRGB == 22 && VIPS_ACCESS_SEQUENTIAL == 1, "values");
      _Static_assert(VIPS_SIZE_DOWN == 2 && VIPS_SIZE_FORCE == 3 && VIPS_FAIL_ON_TRUNCATED == 1, "values");
      _Static_assert(VIPS_FOREIGN_HEIF_COMPRESSION_HEVC == 1 && VIPS_FOREIGN_HEIF_COMPRESSION_AV1 == 4, "values");
      _Static_assert(VIPS_FOREIGN_TIFF_COMPRESSION_DEFLATE == 2, "values");
      _Static_assert(sizeof(GType) == sizeof(size_t) && sizeof(gboolean) == sizeof(int), "values");
      _Static_assert(sizeof(VipsBandFormat) == sizeof(int) && sizeof(VipsInterpretation) == sizeof(int), "values");
      """
    try Data(text.utf8).write(to: source)
    defer { try? FileManager.default.removeItem(at: source) }
    let run = try await ChildRun(["clang", "-fsyntax-only"] + flags + [source.path])
    #expect(run.status == 0, "\(run.complaints)")
  }
}
