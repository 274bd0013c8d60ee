import Synchronization

/// An HTTP server inside the process of a test, which sends the enqueued replies and records the requests.
///
/// ```swift
/// let server = try HTTPTestServer()
/// server.enqueue(.json(#"{"name": "Ada"}"#), .status(503))
/// let response = try await client.get(server.url("/people/1"))
/// let request = try await server.takeRequest()
/// #expect(request.header("Accept") == "application/json")
/// ```
///
/// Enqueued replies are sent first, one for each request, in their order over all connections. Without one the
/// ``Routes`` answer, by default those of ``Routes/standard``, which behave as httpbin's. The server speaks HTTP/1.1
/// and HTTP/1.0 on 127.0.0.1, with keep-alive and pipelining. A client that closes its sending side while it waits
/// counts as gone.
///
/// All members may be used from any thread.
public final class HTTPTestServer: Sendable {
  /// Whether the server speaks TLS.
  public enum Security: Sendable {
    /// Plain HTTP.
    case none
    /// HTTPS with this identity.
    case tls(TestIdentity, TLSOptions = TLSOptions())
  }

  let core: ServerCore

  /// Starts a server; it listens when this returns.
  ///
  /// `port` is 0 by default, which means any free port. Pass the ``port`` of a stopped server to start it again; old
  /// connections that are not closed yet do no harm.
  ///
  /// Throws ``ServerError/system(call:code:)`` if no socket or thread can be made, or another program uses the port,
  /// and ``ServerError/tls(_:)`` if OpenSSL refuses the identity.
  public init(
    _ security: Security = .none, port: Int = 0, routes: Routes = .standard
  ) throws(ServerError) {
    core = try ServerCore(security, port: port, routes: routes)
  }

  deinit {
    core.stop()
  }

  /// The port on 127.0.0.1.
  public var port: Int { core.port }

  /// `http://127.0.0.1:port`, or `https://localhost:port` with TLS; without a slash at its end.
  public var baseURL: String {
    core.tls == nil ? "http://127.0.0.1:\(port)" : "https://localhost:\(port)"
  }

  /// Returns the URL of a path, such as `/get?x=1`; a missing slash at its start is added.
  public func url(_ path: String) -> String {
    path.hasPrefix("/") ? baseURL + path : "\(baseURL)/\(path)"
  }

  // MARK: Script

  /// Adds replies to the script. Each is used for one request, in this order, before any route.
  public func enqueue(_ replies: Reply...) {
    core.state.withLock { $0.replies += replies }
  }

  /// Enqueues failures of connections, one for each accepted connection.
  public func enqueue(connections effects: ConnectionEffect...) {
    core.state.withLock { $0.connectionEffects += effects }
  }

  /// The number of enqueued replies that have not been used yet.
  public var pendingReplyCount: Int { core.state.withLock { $0.replies.count } }

  // MARK: Record

  /// Waits for the next request that was not taken yet, in the order in which they were recorded.
  ///
  /// A request is recorded when it has been read and before it is answered, so this also returns for
  /// requests that are never answered. Throws ``ServerError/timedOut(after:)`` after `timeout`, ten seconds
  /// by default, ``ServerError/stopped`` when the server is stopped and nothing is left, and
  /// ``ServerError/cancelled``.
  public func takeRequest(timeout: Duration = .seconds(10)) async throws(ServerError) -> RecordedRequest {
    try await core.takeRequest(timeout: timeout)
  }

  /// All requests since the start or ``forgetRequests()``, taken or not.
  public var recordedRequests: [RecordedRequest] { core.state.withLock { $0.recorded } }

  /// The number of ``recordedRequests``.
  public var requestCount: Int { core.state.withLock { $0.recorded.count } }

  /// The number of request bytes received since the start, including incomplete requests, without those of TLS
  /// handshakes.
  public var receivedByteCount: Int { core.state.withLock { $0.receivedByteCount } }

  /// Empties ``recordedRequests``; tasks that wait for a request continue to wait.
  public func forgetRequests() {
    core.state.withLock { $0.forgetRequests() }
  }

  // MARK: Connections

  /// The number of connections accepted since the start.
  public var connectionCount: Int { core.state.withLock { $0.acceptedCount } }

  /// The number of open connections.
  public var openConnectionCount: Int { core.state.withLock { $0.connections.count } }

  /// Closes the connections that wait for a next request, as servers do after a while. At the return of this method
  /// the end has been sent on each connection.
  public func closeIdleConnections() {
    core.closeIdleConnections()
  }

  /// Closes everything and waits for the end of all threads; requests that were recorded can still be
  /// taken. Does nothing the second time. Happens at the end of the server's life by itself.
  public func stop() {
    core.stop()
  }
}

/// A failure of a connection before its first request, for ``HTTPTestServer/enqueue(connections:)``. Each also works
/// on a server without TLS.
public enum ConnectionEffect: Sendable, Equatable {
  /// No failure.
  case none
  /// A handshake that is never answered: nothing is read and nothing is sent.
  case stall
  /// Closed in good order (FIN) as soon as it is accepted.
  case closeOnAccept
  /// Reset (RST) as soon as it is accepted.
  case resetOnAccept
  /// Closed in good order after the first bytes of the client, its ClientHello.
  case closeInHandshake
  /// Answers the first bytes of the client with a plain HTTP response, then closes.
  case plainText
  /// Answers the first bytes of the client with a fatal alert of TLS (RFC 8446 §6), such as 40 for
  /// `handshake_failure`, then closes.
  case alert(UInt8)
}
