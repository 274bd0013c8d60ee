import Alamofire
import AlamofireImage
import Foundation
import FoundationNetworking
import HTTPTestServer
import Scenarios
import Testing

/// A cache that calls functions before and after the next image is stored.
private final class InterruptedCache: ImageRequestCache {
  private let base = AutoPurgingImageCache()
  // A lock, because images are stored on the threads for images.
  private let interruption = Mutex<(before: @Sendable () -> Void, after: @Sendable () -> Void)?>(nil)

  func interrupt(before: @escaping @Sendable () -> Void, after: @escaping @Sendable () -> Void = {}) {
    interruption.withLock { $0 = (before, after) }
  }

  private func interrupted(_ add: () -> Void) {
    let functions = interruption.withLock { functions in
      defer { functions = nil }
      return functions
    }
    functions?.before()
    add()
    functions?.after()
  }

  func add(_ image: Image, withIdentifier identifier: String) {
    interrupted { base.add(image, withIdentifier: identifier) }
  }
  func removeImage(withIdentifier identifier: String) -> Bool { base.removeImage(withIdentifier: identifier) }
  func removeAllImages() -> Bool { base.removeAllImages() }
  func image(withIdentifier identifier: String) -> Image? { base.image(withIdentifier: identifier) }
  func add(_ image: Image, for request: URLRequest, withIdentifier identifier: String?) {
    interrupted { base.add(image, for: request, withIdentifier: identifier) }
  }
  func removeImage(for request: URLRequest, withIdentifier identifier: String?) -> Bool {
    base.removeImage(for: request, withIdentifier: identifier)
  }
  func image(for request: URLRequest, withIdentifier identifier: String?) -> Image? {
    base.image(for: request, withIdentifier: identifier)
  }
}

/// Downloads by one user after another.
@Suite("Images of several users", .timeLimit(.minutes(2)))
struct ImageUserTests {
  /// Returns routes that answer each user with an image as wide as the name of the user has bytes.
  private static var routes: Routes {
    Routes.none.adding("/avatar") { request, _ in
      let field = request.header("Authorization")?.dropFirst("Basic ".count)
      guard let field, let decoded = Data(base64Encoded: String(field)),
        let user = String(decoding: decoded, as: UTF8.self).split(separator: ":").first,
        let file = try? Drawing(gradientOf: user.utf8.count, 1).file(.png)
      else { return Reply.status(401).with(header: "WWW-Authenticate", value: #"Basic realm="r""#) }
      return .image(file)
    }
  }

  @Test("An image of one user is not given to the next one", arguments: [nil, "avatar"])
  func nextUser(cacheKey: String?) async throws {
    let server = try HTTPTestServer(routes: Self.routes)
    let downloader = ImageDownloader.isolated()
    let request = try URLRequest(url: server.url("/avatar").asURL())
    func width() async throws -> Int {
      try await downloader.image(for: request, cacheKey: cacheKey).pixelWidth
    }
    downloader.addAuthentication(user: "ann", password: "secret")
    #expect(try await width() == 3)
    let count = server.requestCount
    downloader.addAuthentication(user: "ann", password: "secret")
    #expect(try await width() == 3)
    #expect(server.requestCount == count, "the credential is the same")
    downloader.addAuthentication(user: "robert", password: "secret")
    #expect(try await width() == 6)
    #expect(try await width() == 6)
  }

  @Test("Users whose names are equal as texts but not as bytes have their own images")
  func bytesOfNames() async throws {
    let server = try HTTPTestServer(routes: Self.routes)
    let downloader = ImageDownloader.isolated()
    let request = try URLRequest(url: server.url("/avatar").asURL())
    downloader.addAuthentication(user: "jos\u{E9}", password: "secret")
    #expect(try await downloader.image(for: request).pixelWidth == 5)
    downloader.addAuthentication(user: "jose\u{301}", password: "secret")
    #expect(try await downloader.image(for: request).pixelWidth == 6)
  }

  @Test("An image that arrives after the user has changed is not given to the next one", .steps)
  func lateImage() async throws {
    let images = try ImageServer()
    let downloader = ImageDownloader.isolated()
    let gate = Gate()
    images.server.enqueue(.image(try Drawing(gradientOf: 3, 1).file(.png)).held(by: gate))
    images.server.enqueue(.image(try Drawing(gradientOf: 6, 1).file(.png)))
    let request = try images.request("/image/x")
    downloader.addAuthentication(user: "ann", password: "secret")
    step("ask as ann")
    async let first = downloader.image(for: request)
    await gate.waitUntilReached()
    downloader.addAuthentication(user: "robert", password: "secret")
    gate.open()
    #expect(try await first.pixelWidth == 3)
    step("ask as robert")
    #expect(try await downloader.image(for: request).pixelWidth == 6)
  }

  @Test(
    "An image that is stored while the user changes is not given to the next one", arguments: [nil, "avatar"])
  func changeWhileStoring(cacheKey: String?) async throws {
    let server = try HTTPTestServer(routes: Self.routes)
    let cache = InterruptedCache()
    let downloader = ImageDownloader.isolated(cache: cache)
    let request = try URLRequest(url: server.url("/avatar").asURL())
    downloader.addAuthentication(user: "ann", password: "secret")
    let (answers, answer) = AsyncStream.makeStream(of: AFIDataResponse<Image>.self)
    let isFromCache = Mutex<Bool?>(nil)
    cache.interrupt(
      before: { downloader.addAuthentication(user: "robert", password: "secret") },
      after: {
        // Without a receipt, the cache has answered.
        let receipt = downloader.download(
          request, cacheKey: cacheKey, completionQueue: .global(), completion: { answer.yield($0) })
        isFromCache.withLock { $0 = receipt == nil }
      })
    #expect(try await downloader.image(for: request, cacheKey: cacheKey).pixelWidth == 3)
    let next = await answers.first { _ in true }
    #expect(isFromCache.withLock { $0 } == false)
    #expect(try next?.result.get().pixelWidth == 6)
    #expect(try await downloader.image(for: request, cacheKey: cacheKey).pixelWidth == 6)
  }

  @Test("The cache is asked again as soon as it has no image of an earlier user")
  func cacheAfterChange() async throws {
    let server = try HTTPTestServer(routes: Self.routes)
    let cache = InterruptedCache()
    let downloader = ImageDownloader.isolated(cache: cache)
    let request = try URLRequest(url: server.url("/avatar").asURL())
    for user in ["ann", "robert", "christopher"] {
      cache.interrupt(before: { downloader.addAuthentication(user: user, password: "secret") })
      // The first download of each stores nothing, because the user changes, and the second does.
      downloader.addAuthentication(user: user + "a", password: "secret")
      _ = try await downloader.image(for: request)
      #expect(try await downloader.image(for: request).pixelWidth == user.count)
      let count = server.requestCount
      #expect(try await downloader.image(for: request).pixelWidth == user.count)
      #expect(server.requestCount == count, "\(user) has an image in the cache")
    }
  }

  private enum Trace {
    @TaskLocal static var id: String?
  }

  private func traced<Value>(_ id: String, _ body: () -> Value) -> Value {
    Trace.$id.withValue(id, operation: body)
  }

  @Test("A request does not see the task-local values of a caller whose cancellation lets it begin")
  func taskLocalValues() async throws {
    let images = try ImageServer()
    let seen = Mutex<[String?]>([])
    let adapter = Adapter { request, _, completion in
      seen.withLock { $0.append(Trace.id) }
      completion(.success(request))
    }
    let downloader = ImageDownloader(
      session: Session(configuration: .isolated, startRequestsImmediately: false, interceptor: adapter),
      maximumActiveDownloads: 1)
    let gate = Gate()
    defer { gate.open() }
    images.server.enqueue(.status(404).held(by: gate))
    let (held, waiting) = (try images.request("/image/1x1"), try images.request("/image/2x2"))
    let receipt = try #require(traced("x") { downloader.download(held) })
    await gate.waitUntilReached()
    let task = Task {
      try await Trace.$id.withValue("y") { try await downloader.image(for: waiting).pixelWidth }
    }
    while downloader.counts.waiting == 0 { await Task.yield() }
    traced("z") { downloader.cancelRequest(with: receipt) }
    #expect(try await task.value == 2)
    #expect(seen.withLock { $0 } == ["x", nil])
  }
}
