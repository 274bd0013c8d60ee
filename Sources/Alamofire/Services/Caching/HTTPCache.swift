public import Foundation
public import FoundationNetworking
import HTTPSystem
package import HTTPWire

/// A `URLCache` that follows the rules of HTTP (RFC 9111). Its key is the whole URL and the fields named by `Vary`.
/// Its files survive a process that is killed while it writes.
///
/// Foundation's own class ignores the query and the scheme of a URL, so it can return the response of another URL. A
/// session whose configuration has `URLCache.shared`, the default, uses ``default`` instead. A session with an
/// `HTTPCache` uses that. Several sessions may share a cache, and several processes a folder. A request invalidates
/// only the responses that its process knows.
///
/// ```swift
/// let folder = FileManager.default.temporaryDirectory.appendingPathComponent("maps-cache")
/// let configuration = URLSessionConfiguration.af.default
/// configuration.urlCache = HTTPCache(
///   memoryCapacity: 16_000_000, diskCapacity: 200_000_000, directory: folder)  // bytes
/// let session = Session(configuration: configuration)
/// ```
///
/// Set `configuration.urlCache = nil` to disable caching. Capacities are in bytes. The least recently used response is
/// removed first. A response larger than a quarter of a capacity is not stored there. Bodies are stored decoded.
/// Responses to requests with a session's own identity, trust store or evaluators are used by that session only, and
/// never written to a file.
///
/// The cache is a private cache in the terms of RFC 9111. A response is reused only with the `Authorization` of its
/// request, unless it is `public`. A `private` response is reused only with the same `Cookie`. A program that acts for
/// many users should still use one cache for each user, or none.
///
/// All members may be used from any thread. Reads may wait for the disk; files are written in the background. A
/// process that is killed before the write loses the newest responses only.
public final class HTTPCache: URLCache, @unchecked Sendable {
  // Unchecked, since the class that it refines is not checked either: its own property is a constant.

  /// The cache of the program, which replaces `URLCache.shared` in configurations. It has the capacities that
  /// `URLCache.shared` has at the first use: 4 MiB in memory and 20 MiB on disk by default. Its folder is
  /// `org.alamofire.http` and the name of the program in the user's caches. If no such folder belongs only to the user,
  /// the cache uses only memory.
  public static let `default` = HTTPCache(
    memoryCapacity: URLCache.shared.memoryCapacity, diskCapacity: URLCache.shared.diskCapacity,
    directory: defaultFolder)

  let storedResponses: CacheStorage

  private static var defaultFolder: URL? {
    let name = ProcessInfo.processInfo.processName.map { $0 == "/" || $0 == "." ? "_" : $0 }
    guard !name.isEmpty else { return nil }
    return FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first?
      .appendingPathComponent("org.alamofire.http").appendingPathComponent(String(name))
  }

  /// Makes a cache in a folder.
  ///
  /// - Parameters:
  ///   - memoryCapacity: The most bytes that are stored in memory.
  ///   - diskCapacity:   The most bytes of the files, counted in blocks of 4 KiB.
  ///   - directory:      The folder of the files, for this purpose only; created when it is missing. `nil`, or a folder
  ///                     that belongs to another user or that others may write to, stores everything in memory. The
  ///                     folder is opened when the cache is first used.
  public convenience init(memoryCapacity: Int, diskCapacity: Int, directory: URL?) {
    self.init(memoryCapacity: memoryCapacity, diskCapacity: diskCapacity, diskPath: directory?.path)
  }

  /// Makes a cache with a path; a relative path is relative to the user's caches folder.
  public override init(memoryCapacity: Int, diskCapacity: Int, diskPath path: String?) {
    storedResponses = CacheStorage(
      memoryCapacity: memoryCapacity, diskCapacity: diskCapacity, files: path.map { Self.opener($0) },
      clock: Self.systemClock)
    // `URLCache` creates its folder wherever it can; below /dev/null it cannot.
    super.init(memoryCapacity: 0, diskCapacity: 0, diskPath: "/dev/null")
  }

  /// Makes a cache with any files and any clock, for tests.
  package init(
    memoryCapacity: Int = 1 << 24, diskCapacity: Int = 0, files: (@Sendable () -> (any EntryFiles)?)? = nil,
    clock: (@Sendable () -> Int64)?
  ) {
    storedResponses = CacheStorage(
      memoryCapacity: memoryCapacity, diskCapacity: diskCapacity, files: files,
      clock: clock ?? Self.systemClock)
    super.init(memoryCapacity: 0, diskCapacity: 0, diskPath: "/dev/null")
  }

  private static func opener(_ path: String) -> @Sendable () -> (any EntryFiles)? {
    let caches = FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first
    let folder = path.hasPrefix("/") ? path : caches?.appendingPathComponent(path).path
    return { folder.flatMap { EntryFolder(path: $0) } }
  }

  private static let systemClock: @Sendable () -> Int64 = { Int64(Date().timeIntervalSince1970) }

  /// Returns when everything that was stored and removed so far has reached the folder.
  package func settle() { storedResponses.settle() }

  // MARK: Reading and storing

  /// Returns the stored complete response for the URL of a request, fresh or stale. Of several variants, it is the
  /// one that matches the fields of the request; fields that the request does not have match any value. `nil` for
  /// methods other than GET. May wait for the disk.
  public override func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
    guard request.httpMethod ?? "GET" == "GET", let url = request.url, let key = CacheKey(url.absoluteString)
    else { return nil }
    let fields = (request.allHTTPHeaderFields ?? [:]).map { HTTPHeader(name: $0.key, value: $0.value) }
    let digests = FieldDigests(of: fields)
    let stored = storedResponses.read(key) { Self.choice(of: $0, for: digests) }
    return Self.choice(of: stored, for: digests)?.cached(url: url)
  }

  private static func choice(of stored: [StoredResponse], for fields: FieldDigests) -> StoredResponse? {
    var digests = fields
    return CacheDecision.choice(of: stored, for: digests)
      ?? stored.filter { $0.head.status != 206 && $0.selection.mayInclude(&digests) }
      .max { $0.date < $1.date }
  }

  /// Stores a response for the URL of a request and the fields that its `Vary` names, replacing an equivalent one. The
  /// rules of HTTP still decide whether it is reused. A response to a method other than GET is not stored, nor one that
  /// is not an `HTTPURLResponse`. Of a `userInfo`, property list values with string keys are stored, also in files.
  public override func storeCachedResponse(_ cachedResponse: CachedURLResponse, for request: URLRequest) {
    guard request.httpMethod ?? "GET" == "GET",
      let stored = StoredResponse(cachedResponse, for: request, now: storedResponses.clock())
    else { return }
    storedResponses.put(stored, askedAfter: nil)
  }

  /// Removes all variants for the URL of a request, including those that only one session may use. Waits if the file of
  /// one is being written. Files that other processes have written are removed in the background.
  public override func removeCachedResponse(for request: URLRequest) {
    guard let key = (request.url?.absoluteString).flatMap({ CacheKey($0) }) else { return }
    storedResponses.remove(key, inAllPartitions: true, waits: true)
    storedResponses.removeUnknownFiles(of: key.hash)
  }

  /// Removes everything. Waits until no file is written or removed any more.
  public override func removeAllCachedResponses() { storedResponses.removeAll() }

  /// Removes responses that were stored or validated at `date` or later. Reads every file that is not in memory.
  public override func removeCachedResponses(since date: Date) {
    let seconds = date.timeIntervalSince1970
    storedResponses.remove(since: seconds > -1e15 ? seconds < 1e15 ? Int64(seconds) : .max : .min)
  }

  // MARK: By task

  /// Stores a response for the current request of a task.
  public override func storeCachedResponse(
    _ cachedResponse: CachedURLResponse, for dataTask: URLSessionDataTask
  ) {
    guard let request = dataTask.currentRequest ?? dataTask.originalRequest else { return }
    storeCachedResponse(cachedResponse, for: request)
  }

  /// Calls `completionHandler` with the response for the current request of a task, before it returns.
  public override func getCachedResponse(
    for dataTask: URLSessionDataTask, completionHandler: @escaping (CachedURLResponse?) -> Void
  ) {
    completionHandler(
      (dataTask.currentRequest ?? dataTask.originalRequest).flatMap { cachedResponse(for: $0) })
  }

  /// Removes all variants for the current request of a task.
  public override func removeCachedResponse(for dataTask: URLSessionDataTask) {
    guard let request = dataTask.currentRequest ?? dataTask.originalRequest else { return }
    removeCachedResponse(for: request)
  }

  // MARK: Sizes

  /// The memory capacity in bytes. A smaller value removes responses that no longer fit.
  public override var memoryCapacity: Int {
    get { storedResponses.capacities.memory }
    set { storedResponses.setCapacities(memory: newValue) }
  }

  /// The disk capacity in bytes; always 0 without a folder.
  public override var diskCapacity: Int {
    get { storedResponses.capacities.disk }
    set { storedResponses.setCapacities(disk: newValue) }
  }

  /// The number of bytes stored in memory.
  public override var currentMemoryUsage: Int { storedResponses.usage().memory }
  /// The size of the files in bytes, in blocks of 4 KiB, including files that are about to be written.
  public override var currentDiskUsage: Int { storedResponses.usage().disk }
}

extension HTTPCache: ResponseStore {
  package var now: Int64 { storedResponses.clock() }
  package var waits: Bool { !storedResponses.isOpen }

  package func mayHold(_ hash: @autoclosure () -> UInt64) -> Bool { storedResponses.mayHold(hash()) }
  package func find(_ key: CacheKey) -> [StoredResponse]? { storedResponses.find(key) }
  package func read(_ key: CacheKey, choosing choose: ([StoredResponse]) -> StoredResponse?)
    -> [StoredResponse]
  {
    storedResponses.read(key, choosing: choose)
  }
  package var removalCount: UInt64 { storedResponses.removalCount }
  package func put(_ stored: StoredResponse, replacing old: StoredResponse?, askedAfter removals: UInt64) {
    storedResponses.put(stored, replacing: old, askedAfter: removals)
  }
  package func noteRemoval(of hash: UInt64) -> Bool { storedResponses.noteRemoval(of: hash) }
  package func remove(_ key: CacheKey, inAllPartitions: Bool) {
    storedResponses.remove(key, inAllPartitions: inAllPartitions, waits: false)
  }
}
