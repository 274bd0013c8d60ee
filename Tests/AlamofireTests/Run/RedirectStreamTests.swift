import Alamofire
import Foundation
import HTTPTestServer
import Testing

/// The bodies of redirects and challenges over HTTP/2, where the connection outlives them.
@Suite("Bodies of redirects over HTTP/2", .timeLimit(.minutes(5)))
struct RedirectStreamTests {
  enum Ending: CaseIterable {
    case none
    case short
    case longLength
    case endless
    case silent
    case brokenCoding
    case shorterThanLength
    case noError
    case internalError
    case trailers
  }

  private static func write(_ ending: Ending, _ http2: HTTP2TestConnection, _ stream: UInt32, status: Int)
    throws
  {
    let field = status == 401 ? ("www-authenticate", "Basic realm=\"r\"") : ("location", "/next")
    func head(_ fields: (String, String)..., endsStream: Bool = false) throws {
      try http2.respond(status, [field] + fields, on: stream, endsStream: endsStream)
    }
    switch ending {
    case .none: try head(endsStream: true)
    case .short:
      try head(("content-length", "5"))
      try http2.send(Array("moved".utf8), on: stream, endsStream: true)
    case .longLength:
      try head(("content-length", "314572800"))
      try http2.send(Array("moved".utf8), on: stream, endsStream: false)
    case .endless:
      try head()
      try http2.send([UInt8](repeating: 0x61, count: 200_000), on: stream, endsStream: false)
    case .silent: try head()
    case .brokenCoding:
      try head(("content-encoding", "gzip"), ("content-length", "5"))
      try http2.send(Array("plain".utf8), on: stream, endsStream: true)
    case .shorterThanLength:
      try head(("content-length", "50"))
      try http2.send(Array("moved".utf8), on: stream, endsStream: true)
    case .noError, .internalError:
      try head(("content-length", "50"))
      try http2.reset(stream, ending == .noError ? .noError : .internalError)
    case .trailers:
      try head()
      try http2.send(Array("moved".utf8), on: stream, endsStream: false)
      try http2.sendTrailers([("x-trailer", "1")], on: stream)
    }
  }

  private static func server(_ ending: Ending, status: Int) throws -> StreamTestServer {
    var options = TLSOptions()
    options.applicationProtocols = ["h2"]
    return try StreamTestServer(.tls(.localhost, options)) { connection in
      let http2 = try HTTP2TestConnection(connection)
      var streams: Set<UInt32> = []
      while true {
        let stream = try http2.request(except: streams)
        streams.insert(stream)
        // Each session sends one request that is led on, and the next one.
        if streams.count % 2 == 1 {
          try write(ending, http2, stream, status: status)
        } else {
          try http2.respond(200, on: stream, endsStream: false)
          try http2.send(Array("arrived".utf8), on: stream, endsStream: true)
        }
      }
    }
  }

  @Test(
    "The next request is sent on the same connection whatever body comes before it",
    arguments: Ending.allCases,
    [302, 401])
  func connection(ending: Ending, status: Int) async throws {
    let server = try Self.server(ending, status: status)
    var options = TransportOptions()
    options.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8))
    let session = Session.real(options: options)
    // A credential that was accepted is sent at once with the next request.
    for _ in 0..<(status == 401 ? 1 : 2) {
      let request = session.request("https://localhost:\(server.port)/")
      if status == 401 { request.authenticate(username: "u", password: "p") }
      let response = await request.end()
      #expect(response.value == Data("arrived".utf8), "\(String(describing: response.error))")
      #expect(response.metrics?.transactionMetrics.map(\.networkProtocolName) == ["h2", "h2"])
    }
    #expect(server.connectionCount == 1)
  }
}
