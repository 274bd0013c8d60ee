import Alamofire
import Foundation
import HTTPTestServer
import Testing

/// Lifetimes of sessions, connections and requests over HTTP/2.
@Suite("Lifetimes over HTTP/2", .timeLimit(.minutes(2))) struct HTTP2LifetimeTests {
  enum Security: CaseIterable { case none, tls12, tls13 }

  enum Kind: CaseIterable { case data, upload, download, stream, refused, cutOff, cancelled }

  @Test(
    "A request is released before its connection, and the loop with its session",
    arguments: Security.allCases, Kind.allCases)
  func release(security: Security, kind: Kind) async throws {
    let hasEnded = Latch()
    let server = try Self.server(security, kind, hasEnded)
    let traces = try await use(server, security, kind)
    #expect(
      await isSoon { traces.areGone }, "session \(traces.session as Any), loop \(traces.loop as Any)")
    #expect(await isSoon { hasEnded.isOpen }, "the connection is still open")
  }

  private static func server(_ security: Security, _ kind: Kind, _ hasEnded: Latch) throws -> StreamTestServer
  {
    var options = TLSOptions(maximumVersion: security == .tls12 ? .tls1_2 : .tls1_3)
    options.applicationProtocols = ["h2"]
    let hasRefused = Latch()
    return try StreamTestServer(security == .none ? .none : .tls(.localhost, options)) { connection in
      defer { hasEnded.open() }
      let http2 = try HTTP2TestConnection(connection)
      while true {
        let stream = try http2.request()
        if kind == .refused, !hasRefused.isOpen {
          hasRefused.open()
          try http2.reset(stream, .refusedStream)
          continue
        }
        try http2.respond(200, on: stream, endsStream: false)
        let bytes = [UInt8](repeating: 0x61, count: 50_000)
        try http2.send(bytes, on: stream, endsStream: kind != .cutOff && kind != .cancelled)
        if kind == .cutOff { try http2.reset(stream, .internalError) }
      }
    }
  }

  private func use(_ server: StreamTestServer, _ security: Security, _ kind: Kind) async throws
    -> LifetimeTests.SessionTraces
  {
    let engine = Engine.standard()
    var options = TransportOptions()
    options.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8))
    options.proxy = .none
    if security == .none { options.httpVersions = .http2PriorKnowledge }
    let session = Session(configuration: .isolated, engine: engine, transportOptions: options)
    let body = Latch()
    let url = "\(security == .none ? "http" : "https")://localhost:\(server.port)/"
    let traces = try await perform(kind, url, by: session, ReleaseSignal(body))
    #expect(await isSoon { traces.request == nil && traces.core == nil })
    #expect(await isSoon { body.isOpen }, "the body is still in memory")
    return LifetimeTests.SessionTraces(
      session: session, core: session.core, loop: engine.executor as AnyObject?)
  }

  /// Performs a request to its end.
  ///
  /// - Parameter token: Is held by the body of the request, or by a validator if there is no body.
  private func perform(_ kind: Kind, _ url: String, by session: Session, _ token: ReleaseSignal) async throws
    -> LifetimeTests.Traces
  {
    switch kind {
    case .download:
      let request = session.download(url).validate { _, _, _ in withExtendedLifetime(token) { .success(()) } }
      let file = try await request.serializingDownloadedFileURL().value
      try FileManager.default.removeItem(at: file)
      return LifetimeTests.Traces(request: request, core: request.core)
    case .stream, .cancelled:
      let request = session.streamRequest(url).validate { _, _ in withExtendedLifetime(token) { .success(()) }
      }
      var count = 0
      for await event in request.streamTask().streamingData() {
        count += event.value?.count ?? 0
        if kind == .cancelled { request.cancel() }
      }
      #expect(count > 0)
      return LifetimeTests.Traces(request: request, core: request.core)
    default:
      let request = kind == .upload ? session.upload(data(keeping: token), to: url) : session.request(url)
      if kind != .upload { request.validate { _, _, _ in withExtendedLifetime(token) { .success(()) } } }
      let response = await request.serializingData().response
      #expect((response.error != nil) == (kind == .cutOff))
      return LifetimeTests.Traces(request: request, core: request.core)
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
}
