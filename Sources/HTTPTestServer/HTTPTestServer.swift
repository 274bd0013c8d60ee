import COpenSSL
import Glibc
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
/// ``Routes`` answer, by default ``Routes/standard``, which behave like httpbin's. The server speaks HTTP/1.1 and
/// HTTP/1.0 on 127.0.0.1, with keep-alive and pipelining. A client that closes its sending side while it waits counts
/// as gone.
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
  /// Throws ``ServerError/system(call:code:)`` if a socket or thread cannot be created, if another program uses the
  /// port, or if it is not from 0 to 65535, and ``ServerError/tls(_:)`` if OpenSSL refuses the identity.
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
  /// A request is recorded when it has been read and before it is answered, so this also returns for requests that are
  /// never answered. Throws ``ServerError/timedOut(after:)`` after `timeout`, ten seconds by default,
  /// ``ServerError/stopped`` when the server is stopped and all requests were taken, and ``ServerError/cancelled``.
  public func takeRequest(timeout: Duration = .seconds(10)) async throws(ServerError) -> RecordedRequest {
    try await core.takeRequest(timeout: timeout)
  }

  /// All requests since the start or ``forgetRequests()``, taken or not.
  public var recordedRequests: [RecordedRequest] { core.state.withLock { $0.recorded } }

  /// The number of ``recordedRequests``.
  public var requestCount: Int { core.state.withLock { $0.recorded.count } }

  /// The number of request bytes received since the start, including incomplete requests, without TLS handshakes.
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
  /// the end has been sent on each connection. A connection waits as soon as its client can have the whole response.
  public func closeIdleConnections() {
    core.closeIdleConnections()
  }

  /// Closes everything and waits for the end of all threads; requests that were recorded can still be taken. Does
  /// nothing the second time. Happens automatically when the server is deallocated.
  public func stop() {
    core.stop()
  }
}

/// A failure of a connection before its first request, for ``HTTPTestServer/enqueue(connections:)``. Each also works
/// on a server without TLS.
public enum ConnectionEffect: Sendable, Equatable {
  /// No failure.
  case none
  /// A handshake that is never answered: the server neither reads nor sends.
  case stall
  /// Closed gracefully (FIN) as soon as it is accepted.
  case closeOnAccept
  /// Reset (RST) as soon as it is accepted.
  case resetOnAccept
  /// Closed gracefully after the first bytes of the client, its ClientHello.
  case closeInHandshake
  /// Answers the first bytes of the client with a plain HTTP response, then closes.
  case plainText
  /// Answers the first bytes of the client with a fatal alert of TLS (RFC 8446 §6), such as 40 for
  /// `handshake_failure`, then closes.
  case alert(UInt8)
}

/// A port on 127.0.0.1 that neither accepts nor refuses: connecting to it takes forever, for tests of connection
/// timeouts. The port is released with its last reference.
///
/// ```swift
/// let target = try UnresponsivePort()
/// let url = "http://127.0.0.1:\(target.port)/"
/// ```
public final class UnresponsivePort: Sendable {
  private let listener: Listener
  private let fillers: [Int32]

  /// Binds a free port and fills its queue of pending connections, which are never accepted.
  public init() throws(ServerError) {
    listener = try Listener(backlog: 0)
    let address = try LoopbackAddress.make(port: listener.port, for: "connect")
    // A queue of length 0 holds one connection; the kernel drops the later requests.
    var fillers: [Int32] = []
    for _ in 0..<2 {
      let filler = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
      guard filler >= 0 else { break }
      DescriptorFlags.set(on: filler)
      var address = address
      _ = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          connect(filler, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
      }
      fillers.append(filler)
    }
    self.fillers = fillers
    if fillers.count < 2 { throw .system(call: "socket", code: errno) }
  }

  deinit {
    for filler in fillers { close(filler) }
  }

  /// The port on 127.0.0.1.
  public var port: Int { listener.port }
}

extension HTTPTestServer {
  private static let refusingListener: Result<Listener, ServerError> = {
    do throws(ServerError) { return .success(try Listener(backlog: nil)) } catch { return .failure(error) }
  }()

  /// Returns a port on 127.0.0.1 that refuses connections. The process keeps the port bound until it exits, so that
  /// other processes cannot listen on it.
  public static func refusedPort() throws(ServerError) -> Int {
    try refusingListener.get().port
  }
}

/// The error of the test server.
public enum ServerError: Error, Sendable, Equatable, CustomStringConvertible {
  /// A system call failed; `code` is the value of `errno`.
  case system(call: String, code: Int32)
  /// OpenSSL refused an operation; the text names it, followed by OpenSSL's message.
  case tls(String)
  /// A ``TestIdentity/Specification`` cannot be turned into a certificate; the text says why.
  case invalidSpecification(String)
  /// No request came within the time that ``HTTPTestServer/takeRequest(timeout:)`` was given.
  case timedOut(after: Duration)
  /// The server was stopped, and every request that it had recorded has been taken.
  case stopped
  /// The task that waited was cancelled.
  case cancelled

  /// One sentence for the log of a test.
  public var description: String {
    switch self {
    case .system(let call, let code):
      "\(call) failed with errno \(code) (\(SystemMessage.text(of: code)))"
    case .tls(let text): "TLS: \(text)"
    case .invalidSpecification(let text): "the certificate cannot be made: \(text)"
    case .timedOut(let duration): "no request came within \(duration)"
    case .stopped: "the test server is stopped and has no further request"
    case .cancelled: "the task that waited for a request was cancelled"
    }
  }
}

/// The C library's description of an error number.
enum SystemMessage {
  static func text(of code: Int32) -> String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
      guard let base = buffer.baseAddress, strerror_r(code, base, buffer.count) == 0 else {
        return "unknown error"
      }
      return String(cString: base)
    }
  }
}

extension ServerError {
  /// Returns the errors in OpenSSL's queue of this thread as one error, and empties the queue.
  static func openSSL(_ attempt: String) -> ServerError {
    var messages: [String] = []
    var code = ERR_get_error()
    while code != 0 {
      messages.append(
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
          guard let base = buffer.baseAddress else { return "" }
          ERR_error_string_n(code, base, buffer.count)
          return String(cString: base)
        })
      code = ERR_get_error()
    }
    return .tls(messages.isEmpty ? attempt : "\(attempt): \(messages.joined(separator: "; "))")
  }
}
