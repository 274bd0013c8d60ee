import Foundation
public import FoundationNetworking

/// A cache of images by name. Its functions may be called from any thread.
public protocol ImageCache: Sendable {
  /// Stores an image, in place of one with the same name.
  func add(_ image: Image, withIdentifier identifier: String)
  /// Removes an image. Returns whether there was one.
  @discardableResult
  func removeImage(withIdentifier identifier: String) -> Bool
  /// Removes all images. Returns whether there were some.
  @discardableResult
  func removeAllImages() -> Bool
  /// Returns an image, or `nil`.
  func image(withIdentifier identifier: String) -> Image?
}

/// A cache of images by request and filter.
public protocol ImageRequestCache: ImageCache {
  /// Stores the image of a request, in place of the one with the same identifier.
  func add(_ image: Image, for request: URLRequest, withIdentifier identifier: String?)
  /// Removes the image of a request. Returns whether there was one.
  @discardableResult
  func removeImage(for request: URLRequest, withIdentifier identifier: String?) -> Bool
  /// Returns the image of a request, or `nil`.
  func image(for request: URLRequest, withIdentifier identifier: String?) -> Image?
}

/// A cache in memory that removes the images that were not read for the longest time.
///
/// An image counts as much as its decoded pixels, or as its file if that is larger. An image that is larger than
/// ``memoryCapacity`` is not stored. When the sum exceeds ``memoryCapacity``, images are removed until it is at most
/// ``preferredMemoryUsageAfterPurge``. The names of images, and what else each of them needs, may take as much memory
/// again. If the memory of the system or of the container runs low, the cache is emptied;
/// this is noticed when an image is added.
///
/// ```swift
/// let cache = AutoPurgingImageCache(
///   memoryCapacity: 50_000_000, preferredMemoryUsageAfterPurge: 30_000_000)
/// let pixel = Data([255, 0, 0])
/// cache.add(
///   try Image(pixels: pixel, width: 1, height: 1, format: .rgb), withIdentifier: "red")
/// print(cache.memoryUsage)
/// ```
open class AutoPurgingImageCache: ImageRequestCache, @unchecked Sendable {
  // `@unchecked` because a class that is open cannot be proved to be Sendable; its properties are
  // constants, or protected by a lock. Subclasses must protect their own.

  /// The most bytes of decoded pixels.
  public let memoryCapacity: UInt64
  /// The bytes of decoded pixels that are left when images were removed because there were too many.
  public let preferredMemoryUsageAfterPurge: UInt64

  // A lock, because the cache is used from any thread.
  private let entries: Mutex<RecentlyRead>
  let pressure: MemoryPressure?

  /// Makes an empty cache.
  ///
  /// - Parameters:
  ///   - memoryCapacity: In bytes. Default: 100 million.
  ///   - preferredMemoryUsageAfterPurge: In bytes. More than the capacity counts as the capacity. Default: 60 million.
  public convenience init(
    memoryCapacity: UInt64 = 100_000_000, preferredMemoryUsageAfterPurge: UInt64 = 60_000_000
  ) {
    self.init(memoryCapacity, preferredMemoryUsageAfterPurge, pressure: MemoryPressure())
  }

  init(_ memoryCapacity: UInt64, _ preferred: UInt64, pressure: MemoryPressure?) {
    self.memoryCapacity = memoryCapacity
    preferredMemoryUsageAfterPurge = min(preferred, memoryCapacity)
    entries = Mutex(RecentlyRead())
    self.pressure = pressure
  }

  /// The bytes of the decoded pixels of all images.
  public var memoryUsage: UInt64 { entries.withLock { $0.byteCount } }

  /// Stores an image, in place of one with the same name.
  open func add(_ image: Image, withIdentifier identifier: String) {
    insert(image, identifier, of: nil)
  }

  private func insert(_ image: Image, _ identifier: String, of request: String?) {
    let isLow = pressure?.isLow() ?? false
    entries.withLock { entries in
      if isLow { entries.removeAll() }
      // An image that does not fit would push out all others.
      guard RecentlyRead.cost(image) <= memoryCapacity else { return _ = entries.remove(identifier) }
      entries.insert(image, identifier, of: request)
      if entries.byteCount > memoryCapacity { entries.purge(to: preferredMemoryUsageAfterPurge) }
      let limit = max(memoryCapacity, RecentlyRead.leastOverhead)
      if entries.overhead > limit { entries.purge(to: .max, overhead: limit / 2) }
    }
  }

  /// Stores the image of a request, in place of the one with the same identifier.
  open func add(_ image: Image, for request: URLRequest, withIdentifier identifier: String? = nil) {
    insert(
      image, imageCacheKey(for: request, withIdentifier: identifier),
      of: imageCacheKey(for: request, withIdentifier: nil))
  }

  /// Removes an image. Returns whether there was one.
  @discardableResult
  open func removeImage(withIdentifier identifier: String) -> Bool {
    entries.withLock { $0.remove(identifier) }
  }

  /// Removes the image of a request. Returns whether there was one.
  @discardableResult
  open func removeImage(for request: URLRequest, withIdentifier identifier: String? = nil) -> Bool {
    removeImage(withIdentifier: imageCacheKey(for: request, withIdentifier: identifier))
  }

  /// Removes the images of a request with all identifiers. Returns whether there were some.
  @discardableResult
  open func removeImages(matching request: URLRequest) -> Bool {
    let key = imageCacheKey(for: request, withIdentifier: nil)
    return entries.withLock { entries in
      let names = entries.names(of: key)
      for name in names { entries.remove(name) }
      return !names.isEmpty
    }
  }

  /// Removes all images. Returns whether there were some.
  @discardableResult
  open func removeAllImages() -> Bool { entries.withLock { $0.removeAll() } }

  /// Returns an image, or `nil`. The image counts as read now.
  open func image(withIdentifier identifier: String) -> Image? { entries.withLock { $0.read(identifier) } }

  /// Returns the image of a request, or `nil`. The image counts as read now.
  open func image(for request: URLRequest, withIdentifier identifier: String? = nil) -> Image? {
    image(withIdentifier: imageCacheKey(for: request, withIdentifier: identifier))
  }

  /// Returns the name of the image of a request: its absolute URL, and `-` with the identifier if there is one.
  open func imageCacheKey(for request: URLRequest, withIdentifier identifier: String?) -> String {
    let url = request.url?.absoluteString ?? ""
    return identifier.map { "\(url)-\($0)" } ?? url
  }
}

/// Images by name, in the order in which they were last read.
struct RecentlyRead {
  private struct Stored {
    var image: Image
    /// The name of the request without identifier, if the image was stored for one.
    var request: String?
    /// The bytes when it was stored, which may change when the image is decoded.
    var cost: UInt64
    /// Grows with each time that an image is read.
    var lastRead: UInt64

    /// Returns about the memory of everything but the pixels, which are few in a tiny image.
    func overhead(_ name: String) -> UInt64 {
      UInt64(clamping: 512 + name.utf8.count + (request?.utf8.count ?? 0))
    }
  }

  /// The memory for everything but pixels that even a small cache may take.
  static let leastOverhead: UInt64 = 1_000_000

  private var stored: [String: Stored] = [:]
  private var reads: UInt64 = 0
  private(set) var byteCount: UInt64 = 0
  /// The memory for names and the like, which is limited separately.
  private(set) var overhead: UInt64 = 0

  /// Returns the names of all images of a request.
  func names(of request: String) -> [String] {
    stored.filter { $0.value.request == request || $0.key == request }.map(\.key)
  }

  mutating func insert(_ image: Image, _ name: String, of request: String? = nil) {
    remove(name)
    reads &+= 1
    let cost = Self.cost(image)
    let new = Stored(image: image, request: request == name ? nil : request, cost: cost, lastRead: reads)
    stored[name] = new
    byteCount += cost
    overhead += new.overhead(name)
  }

  mutating func read(_ name: String) -> Image? {
    guard let image = stored[name]?.image else { return nil }
    reads &+= 1
    stored[name]?.lastRead = reads
    return image
  }

  @discardableResult
  mutating func remove(_ name: String) -> Bool {
    guard let removed = stored.removeValue(forKey: name) else { return false }
    byteCount -= removed.cost
    overhead -= removed.overhead(name)
    return true
  }

  @discardableResult
  mutating func removeAll() -> Bool {
    let hadSome = !stored.isEmpty
    stored = [:]
    byteCount = 0
    overhead = 0
    return hadSome
  }

  /// Removes the images that were not read for the longest time, until the others have at most so many bytes.
  mutating func purge(to target: UInt64, overhead limit: UInt64 = .max) {
    for (name, _) in stored.sorted(by: { $0.value.lastRead < $1.value.lastRead }) {
      if byteCount <= target, overhead <= limit { return }
      remove(name)
    }
  }

  static func cost(_ image: Image) -> UInt64 {
    UInt64(clamping: max(image.decodedByteCount, image.content.data?.count ?? 0))
  }
}

/// The question whether memory runs low, in the control group of the process or in the system.
final class MemoryPressure: Sendable {
  /// The content of the files.
  struct Reading: Equatable {
    /// Bytes in use and allowed, if the control group has a limit.
    var used: UInt64?
    var limit: UInt64?
    /// The share of the last ten seconds, in percent, in which all tasks waited for memory (PSI).
    var stall: Double?

    /// Less than a twentieth of the memory is free, or the system waits for memory a tenth of the time.
    var isLow: Bool {
      if let used, let limit, limit > 0, used >= limit - limit / 20 { return true }
      return (stall ?? 0) >= 10
    }
  }

  private let read: @Sendable () -> Reading
  private let now: @Sendable () -> ContinuousClock.Instant
  // A lock, because images are added from any thread.
  private let last = Mutex<(time: ContinuousClock.Instant, isLow: Bool)?>(nil)

  init(
    read: @escaping @Sendable () -> Reading = MemoryPressure.readFiles,
    now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
  ) {
    self.read = read
    self.now = now
  }

  /// Whether memory runs low. The files are read once per second at most.
  func isLow() -> Bool {
    let time = now()
    if let known = last.withLock({ $0 }), time - known.time < .seconds(1) { return known.isLow }
    let isLow = read().isLow
    last.withLock { $0 = (time, isLow) }
    return isLow
  }

  /// Reads the files of the control group (version 2) and of the pressure stall information.
  static func readFiles() -> Reading {
    reading { path in
      FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
    }
  }

  /// Takes the numbers from the texts of files, each of which may be missing.
  static func reading(_ text: (_ path: String) -> String?) -> Reading {
    let group = text("/proc/self/cgroup").flatMap(groupPath) ?? ""
    let folder = "/sys/fs/cgroup" + group
    return Reading(
      used: text(folder + "/memory.current").flatMap(number).map { total in
        // Files that were read and can be dropped at any time.
        total - min(total, text(folder + "/memory.stat").flatMap { field("inactive_file", $0) } ?? 0)
      },
      limit: text(folder + "/memory.max").flatMap(number),
      stall: text("/proc/pressure/memory").flatMap(stall))
  }

  /// Finds the path of the group of the process in `/proc/self/cgroup`.
  static func groupPath(_ text: String) -> String? {
    text.split(separator: "\n").first { $0.hasPrefix("0::/") }.map { String($0.dropFirst(3)) }
      .flatMap { $0 == "/" ? "" : $0 }
  }

  /// Reads a file that contains only a number; `max` is not a number.
  static func number(_ text: String) -> UInt64? {
    UInt64(text.trimmingCharacters(in: .whitespacesAndNewlines))
  }

  /// Reads a line with a name and a number.
  static func field(_ name: String, _ text: String) -> UInt64? {
    text.split(separator: "\n").first { $0.hasPrefix(name + " ") }.flatMap {
      UInt64($0.dropFirst(name.count + 1))
    }
  }

  /// Reads `avg10` in the line `full`.
  static func stall(_ text: String) -> Double? {
    text.split(separator: "\n").first { $0.hasPrefix("full ") }?.split(separator: " ")
      .first { $0.hasPrefix("avg10=") }.flatMap { Double($0.dropFirst(6)) }
  }
}
