import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

/// A plain request needs no task until it has to wait. The result must not depend on that. Therefore each request is
/// also sent with an interceptor that has no effect but makes the request start in a task.
@Suite("Requests without a task", .timeLimit(.minutes(5)))
struct PlainRequestTests {
  struct Fixture: Sendable, CustomTestStringConvertible {
    let name: String
    var path = "/get"
    var method = HTTPMethod.get
    var replies: [Reply] = []
    var change: @Sendable (DataRequest) -> DataRequest = { $0 }
    var testDescription: String { name }
  }

  static let scenes: [Fixture] = [
    Fixture(name: "a body", path: "/bytes/70000"),
    Fixture(name: "no body", path: "/status/204"),
    Fixture(name: "HEAD", method: .head),
    Fixture(name: "POST", path: "/post", method: .post),
    Fixture(name: "a coding", path: "/gzip"),
    Fixture(name: "redirects", path: "/redirect/3"),
    Fixture(name: "too many redirects", path: "/redirect/60"),
    Fixture(name: "a redirect to nowhere", replies: [.redirect(to: "http://[")]),
    Fixture(name: "a redirect that is not followed", path: "/redirect/1") {
      $0.redirect(using: .doNotFollow)
    },
    Fixture(name: "a challenge without an answer", path: "/basic-auth/user/secret"),
    Fixture(name: "a challenge with one", path: "/basic-auth/user/secret") {
      $0.authenticate(username: "user", password: "secret")
    },
    Fixture(name: "a challenge with the wrong one", path: "/basic-auth/user/secret") {
      $0.authenticate(username: "user", password: "wrong")
    },
    Fixture(name: "cookies", path: "/cookies/set?a=b"),
    Fixture(name: "a valid response") { $0.validate() },
    Fixture(name: "an invalid status", path: "/status/404") { $0.validate() },
    Fixture(name: "an invalid type") { $0.validate(contentType: ["image/png"]) },
    Fixture(name: "a validator of the user") { $0.validate { _, _, _ in .failure(TestError()) } },
    Fixture(name: "a head handler that cancels") { request in
      request.onHTTPResponse(on: .global()) { _, decide in decide(.cancel) }
    },
    Fixture(name: "a head handler that allows") { request in
      request.onHTTPResponse(on: .global()) { _, decide in decide(.allow) }
    },
    Fixture(name: "no answer", replies: [.closeBeforeReply, .closeBeforeReply, .closeBeforeReply]),
    Fixture(name: "half an answer", replies: [.closeAfterBody(bytes: 3)]),
    Fixture(name: "a path that is escaped", path: "/a b"),
    Fixture(name: "a cache", path: "/cache/60"),
    // Small enough to arrive at once, because what has arrived is stored.
    Fixture(name: "a body that is too large", path: "/bytes/1500") {
      $0.transportOptions { $0.bodySizeLimit = 1_000 }
    },
    Fixture(name: "a monitor that comes late") { $0.eventMonitor(ClosureEventMonitor()) },
  ]

  @Test("A request without a task has the same result as one with a task", arguments: scenes)
  func ends(_ scene: Fixture) async throws {
    let plain = try await end(of: scene, with: nil)
    let tasked = try await end(of: scene, with: SpyInterceptor())
    #expect(plain == tasked)
  }

  /// Sends two requests one after the other, so that the second finds the state that the first one left.
  private func end(of scene: Fixture, with interceptor: SpyInterceptor?) async throws -> [String] {
    let server = try HTTPTestServer()
    let configuration = URLSessionConfiguration.af.ephemeral
    configuration.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
    let session = Session.real(configuration: configuration, interceptor: interceptor)
    var ends: [String] = []
    for _ in 0..<2 {
      for reply in scene.replies { server.enqueue(reply) }
      let request = scene.change(session.request(server.url(scene.path), method: scene.method))
      let response = await request.end()
      let parts: [Any?] = [
        response.response?.statusCode, response.response?.url?.path, response.data?.count,
        response.response?.headers.value(for: "Content-Type"), response.error.map { kind(of: $0) },
        request.state, request.retryCount, request.tasks.count, response.request?.url?.path,
        response.metrics?.transactionMetrics.count, response.metrics?.redirectCount,
        request.downloadProgress.completedUnitCount,
      ]
      ends.append(parts.map { part in part.map { "\($0)" } ?? "-" }.joined(separator: " | "))
    }
    ends.append("\(server.requestCount) requests")
    return ends
  }

  private func kind(of error: AFError) -> String {
    let inner = error.underlyingError.map { "\(($0 as NSError).domain) \(($0 as NSError).code)" } ?? ""
    return "\(Mirror(reflecting: error).children.first?.label ?? "\(error)") \(inner)"
  }
}
