import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

/// Lifetimes of sessions, connections and requests, and of the objects that they hold.
@Suite("Lifetimes of sessions, connections and requests", .timeLimit(.minutes(2)))
struct LifetimeTests {
  enum Protocols: CaseIterable { case http, tls12, tls13, tunnel, secureTunnel }

  enum Kind: CaseIterable {
    case data, upload, fileUpload, streamUpload, form, download, stream, streamLoop, inputStream
    case redirect, credential, retry, evaluator, eager
  }

  /// Weak references to the parts of one request.
  struct Traces {
    weak var request: Request?
    weak var core: RequestCore?
  }

  /// Weak references to the parts of one session.
  struct SessionTraces {
    weak var session: Session?
    weak var core: SessionCore?
    weak var loop: AnyObject?

    var areGone: Bool { session == nil && core == nil && loop == nil }
  }

  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  @Test(
    "A request is released before its connection, and the loop with its session",
    arguments: Protocols.allCases, Kind.allCases)
  func release(protocols: Protocols, kind: Kind) async throws {
    let stage = try Stage(protocols)
    let traces = try await use(stage, kind)
    #expect(await isSoon { traces.areGone }, "session \(traces.session as Any), loop \(traces.loop as Any)")
    #expect(await isSoon { stage.server.openConnectionCount == 0 })
  }

  private func use(_ stage: Stage, _ kind: Kind) async throws -> SessionTraces {
    let engine = Engine.standard()
    let session = stage.session(over: engine, kind)
    let body = Latch()
    let traces = try await perform(kind, stage.url, by: session, ReleaseSignal(body))
    #expect(await isSoon { traces.request == nil && traces.core == nil })
    #expect(await isSoon { body.isOpen }, "the body is still in memory")
    #expect(stage.server.openConnectionCount > 0, "the connection is kept for the next request")
    return SessionTraces(session: session, core: session.core, loop: engine.executor as AnyObject?)
  }

  /// Performs a request to its end.
  ///
  /// - Parameter token: Is held by the body of the request, or by a handler if there is no body.
  private func perform(
    _ kind: Kind, _ url: String, by session: Session, _ token: ReleaseSignal
  ) async throws -> Traces {
    let data = data(keeping: token)
    switch kind {
    case .download:
      let request = session.download("\(url)/bytes/50000").validate { _, _, _ in
        withExtendedLifetime(token) { .success(()) }
      }
      let file = try await request.serializingDownloadedFileURL().value
      try FileManager.default.removeItem(at: file)
      return Traces(request: request, core: request.core)
    case .stream, .streamLoop, .inputStream:
      let request = session.streamRequest("\(url)/bytes/50000").validate { _, _ in
        withExtendedLifetime(token) { .success(()) }
      }
      #expect(try await read(request, kind) == 50000)
      return Traces(request: request, core: request.core)
    default:
      let request = try make(kind, url, by: session, data)
      let response = await request.validate().serializingData().response
      #expect(response.error == nil)
      #expect(response.response?.statusCode == 200)
      return Traces(request: request, core: request.core)
    }
  }

  /// Returns bytes that release `token` with their last reference.
  private func data(keeping token: ReleaseSignal) -> Data {
    let count = 40_000
    let bytes = UnsafeMutableRawPointer.allocate(byteCount: count, alignment: 1)
    bytes.initializeMemory(as: UInt8.self, repeating: 0x61, count: count)
    return Data(
      bytesNoCopy: bytes, count: count,
      deallocator: .custom { bytes, _ in
        withExtendedLifetime(token) { bytes.deallocate() }
      })
  }

  private func make(_ kind: Kind, _ url: String, by session: Session, _ data: Data) throws -> DataRequest {
    switch kind {
    case .redirect: return session.upload(data, to: "\(url)/redirect-to?url=/post&status_code=307")
    case .credential:
      return session.upload(data, to: "\(url)/basic-auth/ann/secret", method: .get)
        .authenticate(username: "ann", password: "secret")
    case .retry: return session.upload(data, to: "\(url)/post", interceptor: SpyInterceptor(retries: 0))
    case .fileUpload:
      let file = try folder.file(UUID().uuidString, data)
      return session.upload(
        multipartFormData: { $0.append(file, withName: "file", fileName: "a.txt", mimeType: "text/plain") },
        to: "\(url)/post",
        usingThreshold: 0)
    case .streamUpload: return session.upload(InputStream(data: data), to: "\(url)/post")
    case .form:
      return session.upload(multipartFormData: { $0.append(data, withName: "a") }, to: "\(url)/post")
    default: return session.upload(data, to: "\(url)/post")
    }
  }

  private func read(_ request: DataStreamRequest, _ kind: Kind) async throws -> Int {
    switch kind {
    case .streamLoop:
      var count = 0
      for await event in request.streamTask().streamingData() { count += event.value?.count ?? 0 }
      return count
    case .inputStream:
      guard let stream = request.asInputStream() else { return 0 }
      // Unsafe, because `InputStream` is not `Sendable`: only the new thread uses the stream from here on.
      nonisolated(unsafe) let input = stream
      return await withCheckedContinuation { continuation in
        Thread.detachNewThread {
          input.open()
          var buffer = [UInt8](repeating: 0, count: 10_000)
          var total = 0
          while case let count = input.read(&buffer, maxLength: buffer.count), count > 0 { total += count }
          input.close()
          continuation.resume(returning: total)
        }
      }
    default:
      let counts = Recorder<Int?>()
      request.responseStream(on: DispatchQueue(label: "stream")) { event in
        counts.add(event.value?.count)
      }
      await request.finished()
      while counts.values.last != .some(nil) { await Task.yield() }
      return counts.values.compactMap { $0 }.reduce(0, +)
    }
  }

  @Test("A stream of bytes is released with its session", arguments: Protocols.allCases, [false, true])
  func byteStream(protocols: Protocols, isSuspended: Bool) async throws {
    let stage = try Stage(protocols)
    let echo = try StreamTestServer(protocols == .http ? .none : .tls(.localhost))
    func use() async throws -> SessionTraces {
      let engine = Engine.standard()
      let session = stage.session(over: engine, .data, behind: echo.port)
      let stream = session.byteStream(host: "localhost", port: echo.port, secure: protocols != .http)
      if !isSuspended {
        try await stream.write(Data("x".utf8))
        #expect(try await stream.read().data == Data("x".utf8))
      } else {
        stream.suspend()
      }
      return SessionTraces(session: session, core: session.core, loop: engine.executor as AnyObject?)
    }
    let traces = try await use()
    #expect(await isSoon { traces.areGone })
  }
}

/// Polls a condition for ten seconds. For the release of objects, which has no event.
func isSoon(_ condition: () -> Bool) async -> Bool {
  let deadline = ContinuousClock.now + .seconds(10)
  while ContinuousClock.now < deadline {
    if condition() { return true }
    try? await Task.sleep(for: .milliseconds(2))
  }
  return condition()
}

/// A server, and the proxy before it.
private struct Stage {
  let server: HTTPTestServer
  private let protocols: LifetimeTests.Protocols

  init(_ protocols: LifetimeTests.Protocols) throws {
    self.protocols = protocols
    server =
      switch protocols {
      case .http: try HTTPTestServer()
      case .tls12: try HTTPTestServer(.tls(.localhost, TLSOptions(maximumVersion: .tls1_2)))
      case .tls13, .tunnel, .secureTunnel: try HTTPTestServer(.tls(.localhost))
      }
    proxy = try Self.proxy(protocols, to: server.port)
  }

  private let proxy: StreamTestServer?

  private static func proxy(_ protocols: LifetimeTests.Protocols, to port: Int) throws -> StreamTestServer? {
    switch protocols {
    case .http, .tls12, .tls13: nil
    case .tunnel: try ProxiedByteStreamTests.proxy(to: port, seen: Recorder())
    case .secureTunnel: try ProxiedByteStreamTests.proxy(.tls(.localhost), to: port, seen: Recorder())
    }
  }

  var url: String { server.url("").hasSuffix("/") ? String(server.url("").dropLast()) : server.url("") }

  /// Makes a session of this kind that trusts the server, and uses the proxy if there is one.
  ///
  /// - Parameter port: The port of the server behind the proxy; the default is the server's own.
  func session(over engine: Engine, _ kind: LifetimeTests.Kind, behind port: Int? = nil) -> Session {
    var options = TransportOptions()
    options.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8))
    let target = try? port.flatMap { try Self.proxy(protocols, to: $0) } ?? proxy
    if let target {
      relays.add(target)
      var server = ProxyServer(
        protocols == .tunnel ? .http : .https, host: "localhost", port: target.port)
      server.trustStore = options.trustStore
      options.proxy = .server(server)
    } else {
      options.proxy = .none
    }
    let manager =
      kind == .evaluator ? ServerTrustManager(evaluators: ["localhost": SlowEvaluator()]) : nil
    return Session(
      configuration: .isolated, engine: engine, requestSetup: kind == .eager ? .eager : .lazy,
      serverTrustManager: manager, transportOptions: options)
  }

  private let relays = Recorder<StreamTestServer>()
}

/// An evaluator of a user, which does not run in the handshake.
private struct SlowEvaluator: ServerTrustEvaluating {
  func evaluate(_ trust: SecTrust, forHost host: String) throws {}
}
