import FoundationEssentials
import HTTPEngine
import HTTPTestServer
import HTTPSystem
import HTTPWire
import Testing

/// A transport with one profile, and short functions for requests to a test server.
struct Client: Sendable {
  let transport: any EngineTransport
  let profile: ConnectionProfile

  init(
    connectionsPerHost: Int = 6, lingering: Duration = .milliseconds(50),
    _ change: (inout TransportOptions) -> Void = { _ in },
    mayStartThread: @escaping @Sendable () -> Bool = { true }
  ) {
    transport = HTTPTransport(loop: EventLoop(lingering: lingering, mayStartThread: mayStartThread))
    profile = Self.profile(connectionsPerHost, change)
  }

  static func profile(
    _ connectionsPerHost: Int = 6, _ change: (inout TransportOptions) -> Void = { _ in }
  ) -> ConnectionProfile {
    var options = TransportOptions()
    options.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8))
    change(&options)
    return ConnectionProfile(options: options, connectionsPerHost: connectionsPerHost)
  }

  /// Makes a request to an absolute URL. It has no idle timeout, because a test that holds bytes back can take long on
  /// a busy machine. ``WaitLimit`` ends a request that hangs.
  func request(
    _ url: String, _ method: String = "GET", fields: [HTTPHeader] = [], body: RequestBody = .none,
    sink: (any BodySink)? = nil, idleTimeout: Duration? = nil, deadline: Duration? = nil,
    priority: Float = 0.5,
    profile: ConnectionProfile? = nil
  ) throws -> WireRequest {
    WireRequest(url: url, origin: try #require(Origin(url: url)), profile: profile ?? self.profile) { parts in
      parts.method = method
      parts.fields = fields
      parts.body = body
      parts.sink = sink
      parts.idleTimeout = idleTimeout
      parts.deadline = deadline.map { .now + $0 }
      parts.priority = priority
    }
  }

  func send(
    _ request: WireRequest, watcher: Watcher = Watcher(), _ location: SourceLocation = #_sourceLocation
  ) async throws -> WireResponse {
    try await transport.send(request, within: location, observer: watcher)
  }

  func get(
    _ url: String, watcher: Watcher = Watcher(), _ location: SourceLocation = #_sourceLocation
  ) async throws -> WireResponse {
    try await send(request(url), watcher: watcher, location)
  }

  /// Returns the failure of a request. A response is an issue of the test.
  func failure(
    of request: WireRequest, watcher: Watcher = Watcher(), _ location: SourceLocation = #_sourceLocation
  ) async throws -> TransportFailure {
    do throws(TransportFailure) {
      let response = try await transport.send(request, within: location, observer: watcher)
      Issue.record("a response came instead of a failure: \(response.head.status)", sourceLocation: location)
      return TransportFailure(.unknown, "")
    } catch {
      return error
    }
  }

  func failure(
    of url: String, idleTimeout: Duration? = nil, _ location: SourceLocation = #_sourceLocation
  ) async throws -> TransportFailure {
    try await failure(of: request(url, idleTimeout: idleTimeout), location)
  }
}

/// Events instead of sleeps.
extension Client {
  /// Lets time pass while the loop is awake, by a request to another server that answers late.
  func passTime(_ duration: Duration) async throws {
    let other = try HTTPTestServer(routes: .none)
    other.enqueue(.text("other").delayed(by: duration))
    let answer = try await get(other.url("/")).text
    #expect(answer == "other")
  }

  /// Waits until the loop has performed earlier commands, such as a suspension. It reads them before it starts the
  /// request of this function.
  func roundTrip() async throws {
    try await passTime(.zero)
  }
}

extension WireResponse {
  var status: Int { head.status }
  var bytes: [UInt8] { body.map { Array($0) } ?? [] }
  var text: String { String(decoding: bytes, as: UTF8.self) }
}

extension TransportFailure {
  /// Whether the message can help a user: a sentence of the engine with the host, if there is one, and at most
  /// the system's message after it.
  func helps(host: String? = nil) -> Bool {
    guard let first = message.first, first.isUppercase || first.isNumber || host != nil else { return false }
    guard message.count > 20, message.contains(" "), !message.contains("{host}") else { return false }
    guard !message.hasPrefix("("), message.contains(".") || message.contains(":") else { return false }
    return host.map { message.contains($0) } ?? true
  }
}
