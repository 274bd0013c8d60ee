import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

/// Redirects of event sources, and the delay of their next connection.
@Suite("Redirects of event sources", .timeLimit(.minutes(5))) struct EventSourceRedirectTests {
  private static func events(_ text: String) -> Reply {
    .text("retry: 1\n\n" + text).with(header: "Content-Type", value: "text/event-stream")
  }

  /// Reads a source to its end. Returns the data of its events.
  private func data(of request: EventSourceRequest) async throws -> [String] {
    var data: [String] = []
    for try await event in request.events() { data.append(event.data) }
    return data
  }

  @Test(
    "Permanent redirects hold for the next connection, temporary ones do not",
    arguments: [301, 308, 302, 303, 307])
  func remembered(status: Int) async throws {
    let server = try HTTPTestServer(routes: .none)
    let isPermanent = status == 301 || status == 308
    server.enqueue(.redirect(to: "/new?x=1", status: status), Self.events("data: 1\n\n"))
    if !isPermanent { server.enqueue(.redirect(to: "/new?x=1", status: status)) }
    server.enqueue(Self.events("data: 2\n\n"), .status(204))
    let request = Session.real().eventSourceRequest(server.url("/old"))
    #expect(try await data(of: request) == ["1", "2"])
    let targets =
      isPermanent
      ? ["/old", "/new?x=1", "/new?x=1", "/new?x=1"] : ["/old", "/new?x=1", "/old", "/new?x=1", "/old"]
    #expect(server.recordedRequests.map(\.target) == targets)
    if isPermanent { #expect(request.response?.url?.absoluteString == server.url("/new?x=1")) }
  }

  @Test("A chain is remembered up to its first temporary redirect") func chain() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(
      .redirect(to: "/b", status: 301), .redirect(to: "/c", status: 308), .redirect(to: "/d", status: 307),
      .redirect(to: "/e", status: 301), Self.events("data: 1\n\n"), .status(204))
    #expect(try await data(of: Session.real().eventSourceRequest(server.url("/a"))) == ["1"])
    #expect(server.recordedRequests.map(\.target) == ["/a", "/b", "/c", "/d", "/e", "/c"])
  }

  @Test("A later permanent redirect is remembered in turn") func laterRedirect() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(
      .redirect(to: "/b", status: 301), Self.events("data: 1\n\n"), .redirect(to: "/c", status: 301),
      Self.events("data: 2\n\n"), .status(204))
    #expect(try await data(of: Session.real().eventSourceRequest(server.url("/a"))) == ["1", "2"])
    #expect(server.recordedRequests.map(\.target) == ["/a", "/b", "/b", "/c", "/c"])
  }

  @Test("Secrets are not sent to another origin, by the redirect nor by later connections")
  func otherOrigin() async throws {
    let (first, other) = (try HTTPTestServer(routes: .none), try HTTPTestServer(routes: .none))
    first.enqueue(.redirect(to: other.url("/moved"), status: 301))
    other.enqueue(Self.events("id: 7\ndata: 1\n\n"), Self.events("data: 2\n\n"), .status(204))
    let request = Session.real().eventSourceRequest(
      first.url("/"), headers: ["Authorization": "Bearer s3cret", "Cookie": "a=b", "X-Plain": "1"])
    #expect(try await data(of: request) == ["1", "2"])
    #expect(first.recordedRequests.map { $0.header("Authorization") } == ["Bearer s3cret"])
    #expect(other.requestCount == 3)
    for sent in other.recordedRequests {
      #expect(sent.header("Authorization") == nil && sent.header("Cookie") == nil, "\(sent.target)")
      #expect(sent.header("X-Plain") == "1")
    }
    #expect(other.recordedRequests.map { $0.header("Last-Event-ID") } == [nil, "7", "7"])
  }

  @Test("A client certificate is not presented to the origin that a redirect named for later connections")
  func clientCertificate() async throws {
    func events(_ text: String) -> FakeReply { .text("retry: 1\n\n" + text, type: "text/event-stream") }
    let fake = FakeTransport(
      .redirect(301, to: "https://b.test/moved"), events("data: 1\n\n"), events("data: 2\n\n"), .status(204))
    let identity = ClientIdentity(certificates: [], subject: "", privateKey: Data())
    let request = Session.retained(fake: fake).eventSourceRequest("https://a.test/")
      .authenticate(with: ClientIdentityCredential(identity))
    #expect(try await data(of: request) == ["1", "2"])
    #expect(
      fake.urls == ["https://a.test/"] + Array(repeating: "https://b.test/moved", count: 3))
    #expect(fake.requests.map { $0.profile.options.clientIdentity != nil } == [true, false, false, false])
  }

  @Test("After a redirect that changes the method, the next connection repeats the original request")
  func changedMethod() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(
      .redirect(to: "/b", status: 301), Self.events("data: 1\n\n"), .redirect(to: "/c", status: 308),
      Self.events("data: 2\n\n"), .status(204))
    var configuration = EventSourceRequest.Configuration()
    configuration.reconnects = true
    let request = Session.real().eventSourceRequest(
      server.url("/a"), method: .post, configuration: configuration)
    #expect(try await data(of: request) == ["1", "2"])
    #expect(
      server.recordedRequests.map { "\($0.method) \($0.target)" }
        == ["POST /a", "GET /b", "POST /a", "POST /c", "POST /c"])
  }

  @Test("A permanent redirect that a handler follows as proposed is remembered") func followedByHandler()
    async throws
  {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.redirect(to: "/b", status: 301), Self.events("data: 1\n\n"), .status(204))
    let request = Session.real().eventSourceRequest(server.url("/a")).redirect(using: .follow)
    #expect(try await data(of: request) == ["1"])
    #expect(server.recordedRequests.map(\.target) == ["/a", "/b", "/b"])
  }

  @Test("A redirect that a handler has changed is not remembered") func changedRedirect() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(
      .redirect(to: "/b", status: 301), Self.events("data: 1\n\n"), .redirect(to: "/b", status: 301),
      .status(204))
    let request = Session.real().eventSourceRequest(server.url("/a"))
    request.redirect(
      using: Redirector(
        behavior: .modify { _, request, _ in
          var request = request
          request.url = request.url.flatMap { URL(string: "/mine", relativeTo: $0)?.absoluteURL }
          return request
        }))
    #expect(try await data(of: request) == ["1"])
    #expect(server.recordedRequests.map(\.target) == ["/a", "/mine", "/a", "/mine"])
  }

  @Test("Redirects of one URL are forgotten when the request asks for another one") func otherURL()
    async throws
  {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.redirect(to: "/b", status: 301), Self.events("data: 1\n\n"), .status(204))
    let paths = Recorder<String>()
    let request = Session.real().eventSourceRequest(
      server.url("/"),
      requestModifier: { request in
        paths.add("")
        request.url = URL(string: server.url(paths.count == 1 ? "/a" : "/other"))
      })
    #expect(try await data(of: request) == ["1"])
    #expect(server.recordedRequests.map(\.target) == ["/a", "/b", "/other"])
  }

  // MARK: The next connection

  @Test("An ID of megabytes does not break the next connection") func longID() async throws {
    let server = try HTTPTestServer(routes: .none)
    let id = String(repeating: "x", count: 3_000_000)
    server.enqueue(
      Self.events("id: short\ndata: 1\n\nid: \(id)\ndata: 2\n\n"), Self.events("data: 3\n\n"), .status(204))
    let request = Session.real().eventSourceRequest(server.url("/"))
    var ids: [Int] = []
    for try await event in request.events() { ids.append(event.id.utf8.count) }
    // The event has its ID; the server is asked to continue after the last one that a field can carry.
    #expect(ids == [5, 3_000_000, 5])
    #expect(server.recordedRequests.map { $0.header("Last-Event-ID") } == [nil, "short", "short"])
    #expect(request.lastEventID == "short")
  }

  @Test("maximumEventSize may be Int.max", arguments: [Int.max, .max - 1, .max - 64, 1])
  func largestLimit(limit: Int) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(Self.events("data: 1\n\ndata: 2\n\n"), .status(204))
    var configuration = EventSourceRequest.Configuration()
    configuration.maximumEventSize = limit
    let request = Session.real().eventSourceRequest(server.url("/"), configuration: configuration)
    #expect(try await data(of: request) == ["1", "2"])
  }

  @Test("Requests have the fields of browsers") func fields() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.status(204))
    _ = try await data(of: Session.real().eventSourceRequest(server.url("/")))
    let sent = try await server.takeRequest()
    #expect(sent.header("Cache-Control") == "no-cache" && sent.header("Accept") == "text/event-stream")
  }
}
