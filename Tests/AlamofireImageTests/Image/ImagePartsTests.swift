import Alamofire
@testable import AlamofireImage
import Foundation
import Testing

@Suite("Structures, places and sizes of images")
struct ImagePartsTests {
  @Test("Chunks of a WebP file with an odd size are padded")
  func oddChunks() {
    func chunk(_ name: String, _ count: UInt8) -> [UInt8] {
      Array(name.utf8) + [count, 0, 0, 0] + [UInt8](repeating: 7, count: Int(count + count % 2))
    }
    let file = Array("RIFF\0\0\0\0WEBP".utf8) + chunk("EXIF", 3) + chunk("ANMF", 5) + chunk("ANMF", 2)
    #expect(file.withUnsafeBytes { FileStructure.frames(ofWebP: $0) } == 2)
  }

  @Test("Any number of fill bytes may precede a marker of a JPEG file")
  func fillBytes() throws {
    for fill in 0..<4 {
      let filled = [UInt8](repeating: 0xff, count: fill)
      let scan = filled + [0xff, 0xda, 0, 2, 1, 2, 3]
      let file = [0xff, 0xd8] + scan + scan + [0xff, 0xd9]
      #expect(try FileStructure.parts(ofJPEG: reading(file)).scans == 2, "\(fill) fill bytes")
    }
  }

  @Test("A profile fits samples of its colour space, with or without alpha")
  func profiles() {
    for (space, bands) in [("GRAY", [1, 2]), ("RGB ", [3, 4]), ("CMYK", [4, 5]), ("Lab ", [])] {
      let profile = [UInt8](repeating: 0, count: 16) + Array(space.utf8) + [UInt8](repeating: 0, count: 112)
      let fitting = profile.withUnsafeBytes { bytes in
        (1...5).filter { FileStructure.profile(bytes, fits: $0) }
      }
      #expect(fitting == bands, "\(space)")
    }
  }

  @Test("The format follows from the first bytes, also from a compatible brand")
  func signatures() {
    let heads: [(String, ImageFormat)] = [
      ("II*\0", .tiff), ("MM\0*", .tiff), ("GIF87a", .gif), ("GIF89a", .gif),
      ("\0\0\0\u{1c}ftypavis", .avif), ("\0\0\0\u{1c}ftypheix", .heic),
      ("\0\0\0\u{1c}ftypmif2\0\0\0\0miafavif", .avif), ("\0\0\0\u{1c}ftypmif1\0\0\0\0miafheic", .heic),
      ("\0\0\0\u{20}ftypmif2\0\0\0\0miafmsf1miafheic", .heic),
    ]
    for (head, format) in heads { #expect(ImageFormat(data: Data(head.utf8)) == format, "\(head)") }
  }

  @Test("Loaders shrink by less than each side needs")
  func loaderOptions() {
    func options(_ format: ImageFormat, _ width: Int, _ height: Int, frames: Int = 1) -> String {
      let facts = ImageFacts(
        format: format, width: 1_600, height: 400, frames: frames, hasAlpha: false, delays: [], loop: 0)
      return LoaderOptions(facts, width: width, height: height).text
    }
    #expect(options(.jpeg, 100, 100) == "[shrink=2]")
    #expect(options(.jpeg, 100, 25) == "[shrink=8]")
    #expect(options(.jpeg, 200, 50) == "[shrink=4]")
    #expect(options(.jpeg, 100, 101) == "")
    #expect(options(.webp, 400, 20) == "[scale=0.5]")
    #expect(options(.png, 100, 25) == "")
    #expect(options(.gif, 0, 0, frames: 2) == "[n=2]")
  }

  @Test("Points become the nearest number of pixels")
  func points() {
    #expect(CGFloat(2.6).pixels(scale: 1) == 3)
    #expect(CGFloat(2.4).pixels(scale: 1) == 2)
    #expect(CGFloat(3.5).pixels(scale: 3) == 11)
  }

  @Test("No more frames are permitted than libvips reads")
  func frames() {
    #expect(throws: ImageError.limitExceeded(.frames, limit: 4_096, actual: 4_097)) {
      try ImageLimits(frames: 10_000).check(width: 1, height: 1, frames: 4_097)
    }
  }

  @Test("Round corners are at most half as large as the shorter side, and all four are the same")
  func corners() {
    #expect(RoundedRectangle(width: 40, height: 10, radius: 100).radius == 5)
    #expect(RoundedRectangle(width: 10, height: 40, radius: 100).radius == 5)
    let shape = RoundedRectangle(width: 12, height: 10, radius: 3)
    let counts = [0: 3, 1: 1, 2: 1, 7: 1, 8: 1, 9: 3]
    for row in 0..<10 {
      let count = counts[row] ?? 0
      #expect(shape.partialColumns(ofRow: row) == Array(0..<count) + Array(12 - count..<12), "\(row)")
      for column in 0..<12 {
        let coverage = shape.coverage(column: column, row: row)
        #expect(coverage == shape.coverage(column: 11 - column, row: row))
        #expect(coverage == shape.coverage(column: column, row: 9 - row))
      }
    }
    #expect((1...254).contains(shape.coverage(column: 0, row: 2)))
  }

  @Test("Only one side of a decoded image can be changed")
  func oneSide() throws {
    let image = try Drawing(gradientOf: 20, 20).image()
    let flat = image.af.imageScaled(to: CGSize(width: 20, height: 5))
    #expect(try flat.pixel(0, 4)[1] > 200)
    #expect(try flat.pixel(0, 0)[1] < 50)
    let narrow = image.af.imageScaled(to: CGSize(width: 5, height: 20))
    #expect(try narrow.pixel(4, 0)[0] > 200)
  }

  @Test("A single row or column that an image does not reach is transparent")
  func narrowMargins() throws {
    let image = try Drawing(of: [9, 8, 7], 40, 20).image()
    let below = image.af.imageAspectScaled(toFit: CGSize(width: 20, height: 11))
    #expect(try below.pixel(5, 10) == [0, 0, 0, 0])
    #expect(try below.pixel(5, 9) == [9, 8, 7, 255])
    let high = try Drawing(of: [9, 8, 7], 20, 40).image()
    let beside = high.af.imageAspectScaled(toFit: CGSize(width: 11, height: 20))
    #expect(try beside.pixel(10, 5) == [0, 0, 0, 0])
    #expect(try beside.pixel(9, 5) == [9, 8, 7, 255])
  }

  @Test("Colours of transparent pixels are no part of the average")
  func transparentColours() throws {
    let image = try Drawing(2, 1, bands: 4) { x, _ in x == 0 ? [200, 0, 0, 255] : [0, 90, 0, 0] }.image()
    #expect(try image.averageColor() == ImageColor(red: 200, green: 0, blue: 0, alpha: 128))
  }

  @Test("A long variant needs no source that is larger than the image")
  func longVariant() throws {
    let image = try Drawing(gradientOf: 30, 20).image(limits: ImageLimits(pixels: 1_000))
    let results = try ImageVariants(.init("a", width: 60, height: 2)).make(of: image)
    #expect((results["a"]?.pixelWidth, results["a"]?.pixelHeight) == (60, 2))
  }

  @Test("An animation has the limits and the scale of its first frame")
  func animationLimits() throws {
    let limits = ImageLimits(pixels: 1_000)
    let frame = try Drawing(of: [1, 2, 3], 4, 3).image(scale: 2, limits: limits)
    let image = try Image(frames: [frame, frame])
    #expect(image.limits == limits)
    #expect(image.scale == 2)
  }

  @Test(
    "A quality of more than 1 counts as 1, and one of less than 0 as 0", arguments: [ImageFormat.jpeg, .webp])
  func quality(format: ImageFormat) throws {
    let image = try Drawing(gradientOf: 30, 20).image()
    let best = try image.encode(as: format, quality: 1)
    #expect(try image.encode(as: format, quality: 1.5) == best)
    #expect(try image.encode(as: format, quality: .infinity) == best)
    let worst = try image.encode(as: format, quality: 0)
    #expect(try image.encode(as: format, quality: -1) == worst)
    #expect(try image.encode(as: format, quality: .nan) == worst)
    #expect(worst.count < best.count)
  }

  @Test("A file that is replaced keeps its content under other names")
  func replacing() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("images-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let (file, link) = (folder.appendingPathComponent("a.png"), folder.appendingPathComponent("b.png"))
    let (first, second) = (
      try Drawing(of: [1, 2, 3], 2, 2).image(), try Drawing(of: [4, 5, 6], 2, 2).image()
    )
    try first.write(to: file, as: .png)
    try FileManager.default.linkItem(at: file, to: link)
    try second.write(to: file, as: .png)
    #expect(try Image(contentsOf: file) == second)
    #expect(try Image(contentsOf: link) == first)
  }
}

/// Counts pieces of work.
private final class WorkCounts: Sendable {
  private let counts = Mutex((now: 0, most: 0, all: 0))

  var values: (now: Int, most: Int, all: Int) { counts.withLock { $0 } }

  /// Runs so many pieces of work at once.
  func run(_ number: Int, on queue: ImageQueue) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<number {
        group.addTask { try await queue.run(limit: .seconds(20)) { self.work() } }
      }
      try await group.waitForAll()
    }
  }

  private func work() {
    counts.withLock { counts in
      counts.now += 1
      counts.most = max(counts.most, counts.now)
    }
    sched_yield()
    counts.withLock { counts in
      counts.now -= 1
      counts.all += 1
    }
  }
}

@Suite("Work on images", .timeLimit(.minutes(1)))
struct ImageWorkTests {
  @Test("Work that is cancelled while it waits does not begin")
  func cancelledInLine() async throws {
    let queue = ImageQueue(width: 1)
    let proceed = DispatchSemaphore(value: 0)
    let hasRun = Mutex(false)
    queue.run { proceed.wait() }
    let task = Task { try await queue.run(limit: .seconds(20)) { hasRun.withLock { $0 = true } } }
    task.cancel()
    proceed.signal()
    await #expect(throws: ImageError.cancelled) { try await task.value }
    #expect(!hasRun.withLock { $0 })
  }

  @Test("Work runs on as many threads as the queue has, and each piece of it once", arguments: [1, 3])
  func threads(width: Int) async throws {
    let queue = ImageQueue(width: width, idleLimit: .microseconds(200))
    let counts = WorkCounts()
    // The threads end now and then, because the pauses are about as long as they wait.
    for _ in 0..<40 {
      try await counts.run(5, on: queue)
      #expect(queue.threadCount <= width)
    }
    #expect(counts.values.all == 200)
    #expect(counts.values.most <= width)
  }

  @Test("Without a thread of the system, the callers do the work", arguments: [0, 1])
  func noThread(threads: Int) async throws {
    let started = Mutex(0)
    // The thread does not end within the test, however long the callers take.
    let queue = ImageQueue(width: 4, idleLimit: .seconds(120)) { queue in
      let isAllowed = started.withLock { started in
        started += 1
        return started <= threads
      }
      if isAllowed { Thread.detachNewThread { queue.serve() } }
      return isAllowed
    }
    let counts = WorkCounts()
    try await counts.run(100, on: queue)
    #expect(counts.values.all == 100)
    // A caller may not have noticed yet that nothing is left.
    while queue.threadCount > threads { await Task.yield() }
    #expect(queue.threadCount == threads)
  }

  @Test("A thread without work ends")
  func idleThread() async throws {
    let queue = ImageQueue(width: 2, idleLimit: .microseconds(1))
    try await queue.run(limit: .seconds(20)) { #expect(queue.threadCount == 1) }
    while queue.threadCount > 0 { await Task.yield() }
    #expect(try await queue.run(limit: .seconds(20)) { queue.threadCount } == 1)
  }

  @Test("What is done within a piece of work belongs to it")
  func nested() async throws {
    let image = try Drawing(gradientOf: 4, 4).image()
    let isPart = try await ImageQueue.shared.run(limit: .seconds(20)) {
      ImageWork.current != nil && image.content.work === ImageWork.current
    }
    #expect(isPart)
  }

  @Test("A filter has the time of the image")
  func limit() async throws {
    let image = try Drawing(gradientOf: 4, 4).image(limits: ImageLimits(time: .seconds(-1)))
    await #expect(throws: ImageError.self) {
      try await image.filtered(by: DynamicImageFilter("same") { $0 })
    }
  }

  @Test("An image is killed when its work is over, so that nothing more is computed from it")
  func killed() throws {
    let pixels = try Drawing(gradientOf: 30, 30).image().content.decoded()
    let endless = try pixels.withImage(ImageWork(limit: .seconds(60))) { image throws(ImageError) in
      try image.scaled(width: 5, height: 5, ImageWork(limit: .seconds(60))).pixels(
        ImageWork(limit: .seconds(60)))
    }
    #expect(endless.layout.width == 5)
    #expect(throws: ImageError.self) { try Self.computeAfterCancellation(pixels) }
  }

  /// Cancels work on an image, and computes from it until it is killed.
  fileprivate static func computeAfterCancellation(_ pixels: PixelBuffer) throws(ImageError) {
    let cancellation = ImageCancellation()
    let work = ImageWork(limit: .seconds(60), cancellation: cancellation)
    // Another piece of work is asked for the reason, so that only the killed image makes it fail.
    let other = ImageWork(limit: .seconds(60))
    try pixels.withImage(work) { image throws(ImageError) in
      cancellation.cancel()
      for _ in 0..<20_000 { _ = try image.scaled(width: 5, height: 5, other).pixels(other) }
    }
  }

  @Test("An image is killed although all threads of the global queues are blocked")
  func blockedQueues() async {
    // Other tests need these threads, too.
    await #expect(processExitsWith: .success) {
      let gate = DispatchSemaphore(value: 0)
      for _ in 0..<600 { DispatchQueue.global().async { gate.wait() } }
      let pixels = try Drawing(gradientOf: 30, 30).image().content.decoded()
      #expect(throws: ImageError.self) { try ImageWorkTests.computeAfterCancellation(pixels) }
      for _ in 0..<600 { gate.signal() }
    }
  }

  @Test("The watch begins with one image, and looks again as long as there is something to watch")
  func lookingAgain() throws {
    let pixels = try Drawing(gradientOf: 30, 30).image().content.decoded()
    let watch = ImageWatch()
    let other = ImageWork(limit: .seconds(60))
    /// Watches a new image, and computes from it until it is killed.
    func computeUntilKilled(_ cancellation: ImageCancellation) throws(ImageError) {
      let work = ImageWork(limit: .seconds(60), cancellation: cancellation)
      try pixels.withImage(other) { image throws(ImageError) in
        watch.begin(image.reference, work)
        defer { watch.end(image.reference) }
        cancellation.cancel()
        for _ in 0..<20_000 { _ = try image.scaled(width: 5, height: 5, other).pixels(other) }
      }
    }
    #expect(throws: ImageError.self, "a single image") { try computeUntilKilled(ImageCancellation()) }
    // This image is watched throughout, so that only the first look can be the beginning of a watch.
    try pixels.withImage(other) { image throws(ImageError) in
      watch.begin(image.reference, other)
      defer { watch.end(image.reference) }
      for turn in 1...2 {
        #expect(throws: ImageError.self, "look \(turn)") { try computeUntilKilled(ImageCancellation()) }
      }
    }
  }

  @Test("Work is released when nothing is computed for it any more")
  func released() throws {
    let pixels = try Drawing(gradientOf: 30, 30).image().content.decoded()
    weak var released: ImageWork?
    do {
      let work = ImageWork(limit: .seconds(60))
      released = work
      _ = try pixels.withImage(work) { image throws(ImageError) in try image.pixels(work) }
    }
    #expect(
      released == nil, "an image that is watched after its end could be killed at the address of another")
  }

  @Test("Pixels that are complete after the end of their work are not used")
  func late() throws {
    let pixels = try Drawing(gradientOf: 30, 30).image().content.decoded()
    let cancellation = ImageCancellation()
    cancellation.cancel()
    #expect(throws: ImageError.cancelled) {
      try pixels.withImage(ImageWork(limit: .seconds(60))) { image throws(ImageError) in
        try image.pixels(ImageWork(limit: .seconds(60), cancellation: cancellation))
      }
    }
  }
}
