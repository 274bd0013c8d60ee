import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

@Suite("Content codings", .timeLimit(.minutes(5)))
struct ContentDecodingTests {
  /// The text "hello hello hello hello\n".
  private static let gzip = Array(
    Data(base64Encoded: "H4sIAAAAAAACA8tIzcnJV8hAJ7kAAIhZCxgAAAA=") ?? Data())
  private static let text = "hello hello hello hello\n"

  private let server: HTTPTestServer

  init() throws { server = try HTTPTestServer(routes: .none) }

  private func reply(_ bytes: [UInt8] = gzip, coding: String = "gzip") -> Reply {
    .data(bytes).with(header: "Content-Encoding", value: coding)
  }

  @Test("Decoding is disabled for one request") func request() async throws {
    server.enqueue(reply(), reply())
    let session = Session.real()
    let packed = await session.request(server.url("/")).transportOptions { $0.decodesContent = false }.end()
    #expect(packed.data == Data(Self.gzip))
    #expect(packed.response?.value(forHTTPHeaderField: "Content-Encoding") == "gzip")
    let unpacked = await session.request(server.url("/")).end()
    #expect(unpacked.data == Data(Self.text.utf8))
    let request = try await server.takeRequest()
    #expect(request.header("Accept-Encoding") == HTTPHeader.defaultAcceptEncoding.value)
  }

  @Test("Decoding is disabled for a session") func session() async {
    server.enqueue(reply())
    var options = TransportOptions()
    options.decodesContent = false
    #expect(await Session.real(options: options).request(server.url("/")).end().data == Data(Self.gzip))
  }

  /// Checks that a request for the encoded bytes does not use stored bodies, because they are decoded.
  @Test("A request without decoding does not use the cache") func cache() async {
    let stored = reply().with(header: "Cache-Control", value: "max-age=600")
    server.enqueue(stored, stored, stored)
    let cache = HTTPCache(memoryCapacity: 1 << 20, diskCapacity: 0, directory: nil)
    let session = Session.real(configuration: .cached(by: cache))
    func get(decodes: Bool) async -> Data? {
      let request = session.request(server.url("/")).transportOptions { $0.decodesContent = decodes }
      return await request.end().data
    }
    #expect(await get(decodes: false) == Data(Self.gzip))
    #expect(await get(decodes: true) == Data(Self.text.utf8))
    #expect(await get(decodes: false) == Data(Self.gzip))
    #expect(await get(decodes: true) == Data(Self.text.utf8))
    #expect(server.requestCount == 3)
  }

  @Test("An unknown coding is delivered and stored unchanged") func unknownCoding() async {
    server.enqueue(
      reply(Array("as it is".utf8), coding: "aws-chunked").with(
        header: "Cache-Control", value: "max-age=600"))
    let session = Session.real(
      configuration: .cached(by: HTTPCache(memoryCapacity: 1 << 20, diskCapacity: 0, directory: nil)))
    for _ in 0..<2 {
      let response = await session.request(server.url("/")).end()
      #expect(response.data == Data("as it is".utf8))
      #expect(response.response?.value(forHTTPHeaderField: "Content-Encoding") == "aws-chunked")
    }
    #expect(server.requestCount == 1)
  }

  @Test("A truncated body is an error and is not stored") func truncatedBody() async throws {
    let fresh = [("Cache-Control", "max-age=600")]
    func cacheable(_ reply: Reply) -> Reply {
      fresh.reduce(reply) { $0.with(header: $1.0, value: $1.1) }
    }
    server.enqueue(
      cacheable(reply(Self.gzip.dropLast(3))), cacheable(reply(Self.gzip.dropLast(3)).framed(.chunked)),
      cacheable(reply()))
    let session = Session.real(
      configuration: .cached(by: HTTPCache(memoryCapacity: 1 << 20, diskCapacity: 0, directory: nil)))
    for _ in 0..<2 {
      let response = await session.request(server.url("/")).end()
      #expect((response.error?.underlyingError as? URLError)?.code == .cannotDecodeContentData)
    }
    for _ in 0..<2 { #expect(await session.request(server.url("/")).end().data == Data(Self.text.utf8)) }
    #expect(server.requestCount == 3)
  }

  @Test("A body that is truncated over TLS is an error and is not stored") func truncatedOverTLS()
    async throws
  {
    let server = try HTTPTestServer(.tls(.localhost), routes: .none)
    func reply(_ reply: Reply) -> Reply {
      reply.framed(.untilClose).with(header: "Cache-Control", value: "max-age=600")
    }
    server.enqueue(reply(.cutAfterBody(bytes: 500)), reply(.bytes(1500)))
    var options = TransportOptions()
    options.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8))
    let session = Session.real(
      configuration: .cached(by: HTTPCache(memoryCapacity: 1 << 20, diskCapacity: 0, directory: nil)),
      options: options)
    let response = await session.request(server.url("/")).end()
    #expect((response.error?.underlyingError as? URLError)?.code == .networkConnectionLost)
    for _ in 0..<2 { #expect(await session.request(server.url("/")).end().data?.count == 1500) }
    #expect(server.requestCount == 2)
  }

  @Test("A body whose HTTP/2 stream is reset is an error and is not stored") func resetStream() async throws {
    var tls = TLSOptions()
    tls.applicationProtocols = ["h2"]
    let server = try StreamTestServer(.tls(.localhost, tls)) { connection in
      let http2 = try HTTP2TestConnection(connection)
      for isReset in [true, false] {
        let stream = try http2.request()
        try http2.respond(200, [("cache-control", "max-age=600")], on: stream, endsStream: false)
        try http2.send(Array(repeating: 0x61, count: 500), on: stream, endsStream: !isReset)
        if isReset { try http2.reset(stream, .noError) }
      }
      try connection.stall()
    }
    var options = TransportOptions()
    options.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8))
    let session = Session.real(
      configuration: .cached(by: HTTPCache(memoryCapacity: 1 << 20, diskCapacity: 0, directory: nil)),
      options: options)
    let url = "https://localhost:\(server.port)/"
    let response = await session.request(url).end()
    #expect((response.error?.underlyingError as? URLError)?.code == .networkConnectionLost)
    for _ in 0..<2 { #expect(await session.request(url).end().data?.count == 500) }
    #expect(server.connectionCount == 1)
  }

  @Test("A well compressed stream is decoded at the pace of its reader") func slowReader() async throws {
    // 64 MiB of zeros.
    let brotli =
      "y///P/gnAOKxQCD3/o///3/wTwDEYRGA7v0f////4J8AiMMCAN37P/7//8E/ARCHBQC693/8//+DfwIgDgsAdO//+P//B/8E"
      + "QBwWAOje//H//w/+CYA4LADQvf/L//8//BMAcVgAoHv/Bw=="
    server.enqueue(reply(Array(try #require(Data(base64Encoded: brotli))), coding: "br"))
    let request = Session.real().streamRequest(server.url("/"), shouldAutomaticallyResume: false)
    var count = 0
    var iterator = request.streamTask().streamingData().makeAsyncIterator()
    request.resume()
    count += await iterator.next()?.value?.count ?? 0
    #expect(await eventually { request.flow.isFull })
    #expect(request.flow.heldBytes <= 1 << 20 + 1 << 17)
    var completion: DataStreamRequest.Completion?
    while let stream = await iterator.next() {
      count += stream.value?.count ?? 0
      completion = stream.completion
    }
    #expect(completion?.error == nil)
    #expect(count == 64 << 20)
  }
}
