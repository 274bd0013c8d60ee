import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire
import Scenarios
import Synchronization
import Testing

@testable import Alamofire

@Suite("A cache whose folder fails", .timeLimit(.minutes(5))) struct CacheFolderTests {
  /// Files in memory that fail on demand.
  private final class Files: EntryFiles {
    struct State {
      var files: [String: Data] = [:]
      var canRead = true
      var canList = true
      /// The number of files before the error of a listing.
      var listedBeforeError = 0
      var canChange = true
      var readBytes = 0
    }
    let state = Mutex(State())
    let location = "/memory/\(UUID().uuidString)"

    func set(_ change: (inout State) -> Void) { state.withLock { change(&$0) } }
    var names: [String] { state.withLock { $0.files.keys.sorted() } }

    func list() -> [EntryFile]? {
      state.withLock { state in
        guard state.canList else { return nil }
        return state.files.map { EntryFile(name: $0.key, size: $0.value.count, used: 1) }
      }
    }
    func listUntilError() -> [EntryFile] {
      if let whole = list() { return whole }
      let count = state.withLock { $0.listedBeforeError }
      return names.prefix(count).map { EntryFile(name: $0, size: 1, used: 1) }
    }
    func read(_ name: String) -> EntryReading { read(name, upTo: .max) }
    func read(_ name: String, upTo count: Int) -> EntryReading {
      state.withLock { state in
        guard state.canRead else { return .unavailable }
        guard let bytes = state.files[name]?.prefix(count) else { return .missing }
        state.readBytes += bytes.count
        return .bytes(bytes)
      }
    }
    func write(_ name: String, _ bytes: Data) -> Bool {
      state.withLock { state in
        if state.canChange { state.files[name] = bytes }
        return state.canChange
      }
    }
    func remove(_ name: String) -> Bool {
      state.withLock { state in
        if state.canChange { state.files[name] = nil }
        return state.canChange || state.files[name] == nil
      }
    }
    func touch(_ name: String) {}
  }

  private let files = Files()

  private func cache() -> HTTPCache {
    let files = files
    return HTTPCache(memoryCapacity: 0, diskCapacity: 1 << 24, files: { files }, clock: { 1_800_000_000 })
  }

  private func get(_ cache: HTTPCache, _ reply: String, path: String = "x") async -> String {
    let session = Session.retained(
      fake: FakeTransport { _, _ in .cacheable(reply, "max-age=60") }, configuration: .cached(by: cache))
    let got = CacheFixture.Received(await session.request("http://a.test/\(path)").end())
    cache.settle()
    return got.body
  }

  private func remove(_ path: String = "x", from cache: HTTPCache) throws {
    cache.removeCachedResponse(for: try URLRequest(url: "http://a.test/\(path)", method: .get))
    cache.settle()
  }

  @Test("Folders whose names are equal as texts but not as bytes have their own failed removals")
  func bytesOfFolders() {
    let failed = FailedRemovals()
    let (folder, other) = ("/cache/\u{E9}", "/cache/e\u{301}")
    failed.add("a", in: folder)
    #expect(failed.hides("a", in: folder) && !failed.hides("a", in: other) && !failed.hidesAny(in: other))
    failed.replaced("a", in: other)
    failed.removed("a", in: other)
    #expect(failed.hides("a", in: folder), "the file in the other folder was removed")
    #expect(failed.hidden(of: ["a"], in: other).isEmpty && failed.names(in: folder) == ["a"])
    failed.addAll(in: other)
    #expect(failed.hides("b", in: other) && !failed.hides("b", in: folder))
  }

  @Test("A file that cannot be read temporarily is not removed") func unreadableFile() async throws {
    let cache = cache()
    #expect(await get(cache, "one") == "one")
    let names = files.names
    files.set { $0.canRead = false }
    let request = try URLRequest(url: "http://a.test/x", method: .get)
    #expect(cache.cachedResponse(for: request) == nil)
    cache.settle()
    #expect(files.names == names && names.count == 1)
    files.set { $0.canRead = true }
    #expect(cache.cachedResponse(for: request)?.data == Data("one".utf8))
  }

  @Test("A file without a response is removed") func invalidFile() async throws {
    let cache = cache()
    #expect(await get(cache, "one") == "one")
    files.set { state in for name in state.files.keys { state.files[name] = Data("nonsense".utf8) } }
    #expect(cache.cachedResponse(for: try URLRequest(url: "http://a.test/x", method: .get)) == nil)
    cache.settle()
    #expect(files.names.isEmpty)
  }

  @Test("A folder that cannot be listed is opened later") func unlistableFolder() async throws {
    #expect(await get(cache(), "one") == "one")
    #expect(await get(cache(), "one", path: "y") == "one")
    files.set { $0.canList = false }
    let cache = cache()
    cache.memoryCapacity = 1 << 20
    #expect(await get(cache, "two") == "two")
    #expect(await get(cache, "three") == "two", "memory serves it until then")
    try remove("y", from: cache)
    files.set { $0.canList = true }
    #expect(await get(cache, "three") == "two", "the file is older")
    #expect(await get(cache, "three", path: "y") == "three", "it was removed before it was found")
    #expect(cache.currentDiskUsage > 0)
  }

  @Test(
    "The file of a removed response is gone, and the files of other responses stay", arguments: [true, false])
  func removedFile(isInvalidated: Bool) async throws {
    let first = cache()
    #expect(await get(first, "one") == "one")
    let name = try #require(files.names.first)
    #expect(await get(first, "other", path: "y") == "other")
    #expect(files.names.count == 2)
    // Otherwise the file could be removed as one that another process has written.
    files.set { $0.canList = false }
    if isInvalidated {
      let session = Session.retained(fake: FakeTransport(), configuration: .cached(by: first))
      #expect(await session.request("http://a.test/x", method: .post).end().error == nil)
    } else {
      first.removeCachedResponse(for: try URLRequest(url: "http://a.test/x", method: .get))
    }
    #expect(files.names.count == 1 && !files.names.contains(name), "a killed process would find it again")
    files.set { $0.canList = true }
    #expect(await get(cache(), "two") == "two")
    #expect(await get(cache(), "two", path: "y") == "other")
  }

  /// Files of which one is written while a removal runs.
  private final class HeldFiles: EntryFiles {
    let location = "/memory/\(UUID().uuidString)"
    let (isWriting, isWritten) = (Latch(), Latch())
    /// Signalled when the removal has come to the files, when the file has its name, and when the removal has returned.
    let (isRemoving, isStored, hasReturned) = (
      DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)
    )
    private let stored = Mutex<Set<String>>([])
    /// The time in seconds for which the write waits until the removal has returned.
    private let patience: Double

    init(patience: Double) { self.patience = patience }

    var names: Set<String> { stored.withLock { $0 } }

    func list() -> [EntryFile]? {
      defer { if isWriting.isOpen { isRemoving.signal() } }
      return names.map { EntryFile(name: $0, size: 1, used: 1) }
    }
    func read(_ name: String) -> EntryReading { .missing }
    func write(_ name: String, _ bytes: Data) -> Bool {
      isWriting.open()
      _ = isRemoving.wait(timeout: .now() + 60)
      stored.withLock { _ = $0.insert(name) }
      isStored.signal()
      // A removal that does not wait for the file returns now, and one that waits does not.
      _ = hasReturned.wait(timeout: .now() + patience)
      isWritten.open()
      return true
    }
    func remove(_ name: String) -> Bool {
      stored.withLock { _ = $0.remove(name) }
      isRemoving.signal()
      return true
    }
    func touch(_ name: String) {}
  }

  /// Returns a cache that is writing the file of a response.
  private func writing(_ request: URLRequest, to files: HeldFiles) async throws -> HTTPCache {
    let cache = HTTPCache(
      memoryCapacity: 0, diskCapacity: 1 << 24, files: { files }, clock: { 1_800_000_000 })
    let url = try #require(request.url)
    let response = try #require(
      HTTPURLResponse(
        url: url, statusCode: 200, httpVersion: nil,
        headerFields: ["Cache-Control": "max-age=60"]))
    cache.storeCachedResponse(CachedURLResponse(response: response, data: Data("one".utf8)), for: request)
    await files.isWriting.wait()
    return cache
  }

  @Test(
    "A response that is removed while its file is written has no file afterwards", arguments: [true, false])
  func removedWhileWritten(removesAll: Bool) async throws {
    let files = HeldFiles(patience: 0.2)
    let request = try URLRequest(url: "http://a.test/x", method: .get)
    let cache = try await writing(request, to: files)
    let names = await onAThread(cache) { cache in
      if removesAll { cache.removeAllCachedResponses() } else { cache.removeCachedResponse(for: request) }
      _ = files.isStored.wait(timeout: .now() + 60)
      defer { files.hasReturned.signal() }
      return files.names
    }
    #expect(names.isEmpty, "a process that ends now would find it again")
  }

  @Test("A request that invalidates a response does not wait for the file that is being written")
  func invalidatedWhileWritten() async throws {
    let files = HeldFiles(patience: 30)
    let cache = try await writing(try URLRequest(url: "http://a.test/x", method: .get), to: files)
    let session = Session.retained(fake: FakeTransport(), configuration: .cached(by: cache))
    #expect(await session.request("http://a.test/x", method: .post).end().error == nil)
    #expect(!files.isWritten.isOpen, "a slow disk would stop all requests of the loop")
    files.hasReturned.signal()
    await files.isWritten.wait()
    cache.settle()
    #expect(files.names.isEmpty, "the response would be used")
  }

  @Test("A removed response is not used although its file remains") func unremovableFile() async throws {
    let first = cache()
    #expect(await get(first, "one") == "one")
    files.set { $0.canChange = false }
    try remove(from: first)
    #expect(files.names.count == 1, "it could not be")
    // The response is used neither by this cache nor by another one of the process with the same folder.
    #expect(await get(first, "two") == "two")
    #expect(await get(cache(), "three") == "three")
    files.set { $0.canChange = true }
    // The file is removed as soon as the folder is writable.
    #expect(await get(first, "other", path: "y") == "other")
    #expect(await get(cache(), "four") == "four")
    #expect(await get(cache(), "five") == "four", "what replaced it is found")
  }

  @Test("A file that could not be removed is removed when the folder is listed again") func listedRemoval()
    async throws
  {
    let first = cache()
    #expect(await get(first, "one") == "one")
    #expect(await get(first, "one", path: "y") == "one")
    files.set { $0.canChange = false }
    try remove(from: first)
    #expect(cache().currentDiskUsage > 0 && files.names.count == 2, "the folder cannot be changed yet")
    files.set { $0.canChange = true }
    #expect(cache().currentDiskUsage > 0)
    #expect(files.names.count == 1, "another process would find it again")
    #expect(await get(cache(), "two", path: "y") == "one", "this one was not removed")
  }

  @Test("A replaced response is not used although its file remains") func unreplaceableFile() async throws {
    let first = cache()
    #expect(await get(first, "one") == "one")
    files.set { $0.canChange = false }
    let session = Session.retained(
      fake: FakeTransport { _, _ in .cacheable("two", "max-age=60") }, configuration: .cached(by: first))
    var request = try URLRequest(url: "http://a.test/x", method: .get)
    request.cachePolicy = .reloadIgnoringLocalCacheData
    #expect(await session.request(request).end().data == Data("two".utf8))
    first.settle()
    #expect(await get(cache(), "three") == "three")
  }

  @Test("A cache that was emptied is empty although its files remain") func unlistableRemoval() async throws {
    let first = cache()
    #expect(await get(first, "one") == "one")
    #expect(await get(cache(), "one", path: "unknown-to-the-first") == "one")
    files.set { $0.canList = false }
    first.removeAllCachedResponses()
    #expect(await get(first, "two", path: "z") == "two")
    files.set { $0.canList = true }
    let second = cache()
    #expect(second.currentDiskUsage > 0 && files.names.count == 1, "the listing removes the others")
    #expect(await get(second, "three") == "three")
    #expect(await get(second, "three", path: "unknown-to-the-first") == "three")
    #expect(await get(second, "three", path: "z") == "two", "it was stored since")
  }

  @Test("A cache that is emptied removes the files that it knows, also if the folder cannot be listed")
  func unlistableKnownFiles() async throws {
    let first = cache()
    for path in ["x", "y"] { #expect(await get(first, "one", path: path) == "one") }
    #expect(files.names.count == 2)
    files.set { $0.canList = false }
    first.removeAllCachedResponses()
    #expect(files.names.isEmpty, "the next process would use them")
  }

  @Test("A cache that is emptied removes the files before the error of a listing, also of other processes")
  func brokenListing() async throws {
    let first = cache()
    for path in ["x", "y", "z"] { #expect(await get(first, "one", path: path) == "one") }
    let last = try #require(files.names.last)
    files.set { ($0.canList, $0.listedBeforeError) = (false, 2) }
    let second = cache()
    second.removeAllCachedResponses()
    #expect(files.names == [last], "the next process would use them")
    files.set { $0.canList = true }
    #expect(await get(second, "two", path: "z") == "two" && files.names.count == 1, "the last file stays")
    #expect(await get(cache(), "three", path: "z") == "two", "it was stored since")
  }

  // MARK: Variants

  private static let size = 100_000

  private func send(_ fake: FakeTransport, _ cache: HTTPCache, language: String? = nil) async -> String {
    let session = Session.retained(
      fake: fake, configuration: .cached(by: cache), observers: SessionObservers(eventMonitors: []))
    let headers = language.map { HTTPHeaders(["Accept-Language": $0]) }
    let got = CacheFixture.Received(await session.request("http://a.test/x", headers: headers).end())
    cache.settle()
    return "\(got.body.drop { $0 == "-" }) \(got.hops)"
  }

  /// Returns a response that is stored beside the others, with its name at the end of a long body.
  private static func variant(_ name: String, by field: String, note: String = "") -> FakeReply {
    .cacheable(
      String(repeating: "-", count: size) + name, "no-cache", tag: name, ("Vary", field), ("X-Note", note))
  }

  /// Confirms the first of the tags that are offered.
  private static let confirming = FakeTransport { request, _ in
    let tag = request.value("If-None-Match")?.split(separator: ",").first.map(String.init)
    return .status(304, headers: [("ETag", tag ?? "")])
  }

  @Test(
    "A look-up among several files reads one body, and heads of any length", .steps, arguments: [0, 5_000])
  func bodiesOfVariants(noteLength: Int) async {
    let cache = cache()
    let note = String(repeating: "x", count: noteLength)
    step("responses that vary by fields which the request does not have")
    for name in ["a", "b", "c", "d"] {
      let fake = FakeTransport(Self.variant(name, by: "X-\(name)", note: note))
      #expect(await send(fake, cache) == "\(name) n")
    }
    #expect(files.names.count == 4)
    files.set { $0.readBytes = 0 }
    #expect(await send(Self.confirming, cache).hasSuffix(" nc"))
    #expect(files.state.withLock { $0.readBytes } < 2 * Self.size)
  }

  @Test("The body of a variant that a 304 names is read", .steps) func namedVariant() async {
    let cache = cache()
    for name in ["en", "de", "fr"] {
      let fake = FakeTransport(Self.variant(name, by: "Accept-Language"))
      #expect(await send(fake, cache, language: name) == "\(name) n")
    }
    step("a request for another variant")
    files.set { $0.readBytes = 0 }
    let confirming = FakeTransport { request, _ in
      let tags = request.value("If-None-Match") ?? ""
      return tags.contains("de") ? .status(304, headers: [("ETag", "\"de\"")]) : .status(500)
    }
    #expect(await send(confirming, cache, language: "cs") == "de nc")
    #expect(files.state.withLock { $0.readBytes } < 2 * Self.size)
  }

  @Test("If the file of the chosen response is invalid, another response is chosen") func invalidVariant()
    async
  {
    let cache = cache()
    for name in ["a", "b"] {
      #expect(await send(FakeTransport(Self.variant(name, by: "X-\(name)")), cache) == "\(name) n")
    }
    // Both responses are equally old, so that either may be chosen.
    for broken in ["a", "b"] {
      let whole = files.state.withLock { $0.files }
      files.set { state in
        for (name, bytes) in state.files where bytes.suffix(1) == Data(broken.utf8) {
          state.files[name] = bytes.dropLast() + Data("?".utf8)
        }
      }
      let other = HTTPCache(
        memoryCapacity: 0, diskCapacity: 1 << 24, files: { [files] in files }, clock: { 1_800_000_000 })
      #expect(await send(Self.confirming, other) == "\(broken == "a" ? "b" : "a") nc")
      files.set { $0.files = whole }
    }
  }

  // MARK: Real folders

  @Test("Without free descriptors no file is removed") func exhaustedDescriptors() async throws {
    let folder = try TemporaryFolder()
    let cache = HTTPCache(memoryCapacity: 0, diskCapacity: 1 << 24, directory: folder["cache"])
    #expect(await get(cache, "one") == "one")
    let entries = try #require(EntryFolder(path: folder["cache"].path))
    let name = try #require(entries.list()?.first?.name)
    #expect(entries.read(name).data != nil)
    // A name that is too long stands for every failure that does not depend on the file.
    guard case .unavailable = entries.read(String(repeating: "x", count: 300)) else {
      Issue.record("a failure was mistaken for a missing file")
      return
    }
    guard case .missing = entries.read("nothing") else {
      Issue.record("a missing file was mistaken for a failure")
      return
    }
  }

  @Test("A file that cannot be unlinked is reported") func unlinkFailure() throws {
    let folder = try TemporaryFolder()
    let path = folder["cache"]
    try FileManager.default.createDirectory(
      at: path.appendingPathComponent("folder"), withIntermediateDirectories: true,
      attributes: [.posixPermissions: 0o700])
    let entries = try #require(EntryFolder(path: path.path))
    #expect(entries.remove("nothing") && !entries.remove("folder"))
    let file = path.appendingPathComponent("file")
    try Data("x".utf8).write(to: file)
    try FileManager.default.setAttributes([.posixPermissions: 0o500], ofItemAtPath: path.path)
    defer { try? FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: path.path) }
    #expect(entries.remove("file"))
    // If the folder is not writable, the file is truncated. The superuser can write to any folder.
    let left = try? Data(contentsOf: file)
    #expect(geteuid() == 0 ? left == nil : left == Data())
  }
}
