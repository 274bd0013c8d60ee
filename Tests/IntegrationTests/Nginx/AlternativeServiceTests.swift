import Alamofire
import Testing

/// Servers that announce alternative services, with a service over HTTP/2.
@Suite("Alternative services", .needsNginx, .timeLimit(.minutes(5)))
struct AlternativeServiceTests {
  private static let locations = """
    location /led {
      add_header Alt-Svc 'h2=":$arg_port"; ma=60' always;
      return 200 "$server_port $http_alt_used $http_host";
    }
    location /clear { add_header Alt-Svc clear always; return 200 "clear"; }
    location /misdirected {
      add_header Alt-Svc 'h2=":$arg_port"' always;
      if ($http_alt_used) { return 421; }
      return 200 "origin";
    }
    """

  private static let starting = Task { try await NginxServer(NginxConfiguration(locations: locations)) }

  private static var server: NginxServer {
    get async throws { try await starting.value }
  }

  private func session(
    of server: NginxServer, manager: ServerTrustManager? = nil,
    _ change: (inout TransportOptions) -> Void = { _ in }
  ) -> Session {
    var options = TransportOptions()
    options.trustStore = .file(server.authority)
    options.alternativeServices = AlternativeServices()
    change(&options)
    return Session(configuration: .isolated, serverTrustManager: manager, transportOptions: options)
  }

  /// Sends requests one after the other, and returns their bodies with the version of HTTP.
  private func answers(_ session: Session, _ url: String, _ count: Int = 3) async -> [String] {
    var answers: [String] = []
    for _ in 0..<count {
      let response = await session.request(url).validate().serializingString().response
      let version = response.transaction?.networkProtocolName ?? "nothing"
      answers.append("\(version): \(response.value ?? response.failure)")
    }
    return answers
  }

  private func port(_ server: NginxServer, _ entrance: NginxServer.Entrance) throws -> Int {
    try #require(URL(string: server.url(entrance, "/"))?.port)
  }

  @Test("Requests use the announced service until it is cleared") func service() async throws {
    let server = try await Self.server
    let session = session(of: server)
    defer { withExtendedLifetime(session) {} }
    let (origin, place) = (try port(server, .https1), try port(server, .h2))
    let url = server.url(.https1, "/led?port=\(place)")
    let direct = "http/1.1: \(origin)  127.0.0.1:\(origin)"
    let led = "h2: \(place) 127.0.0.1:\(place) 127.0.0.1:\(origin)"
    #expect(await answers(session, url) == [direct, led, led])
    #expect(await answers(session, server.url(.https1, "/clear"), 2) == ["h2: clear", "http/1.1: clear"])
    #expect(await answers(session, url, 1) == [direct])
    let one = session.request(url).transportOptions { $0.httpVersions = .http1Only }
    #expect(await one.serializingString().response.value == "\(origin)  127.0.0.1:\(origin)")
    let response = await session.request(url).serializingString().response
    #expect(response.value == "\(place) 127.0.0.1:\(place) 127.0.0.1:\(origin)")
    #expect(response.response?.url?.absoluteString == url)
    #expect(response.transaction?.remotePort == place)
    let plain = server.makeSession()
    #expect(await answers(plain, url, 2) == [direct, direct])
  }

  @Test("The service must have the pins of the origin") func pins() async throws {
    let other = try await NginxServer.shared
    let server = try await Self.server
    let pinned = try Data(contentsOf: URL(fileURLWithPath: server.certificate))
    let certificates = try Certificate.all(in: pinned)
    let manager = ServerTrustManager(evaluators: [
      "127.0.0.1": PinnedCertificatesTrustEvaluator(
        certificates: certificates, performDefaultValidation: false, validateHost: false)
    ])
    let session = session(of: server, manager: manager)
    defer { withExtendedLifetime(session) {} }
    let path = "/led?port=\(try port(other, .h2))"
    let found = await answers(session, server.url(.https1, path))
    #expect(found.allSatisfy { $0.hasPrefix("http/1.1: ") }, "\(found)")
    #expect(try await other.loggedRequests(to: path, count: 0).isEmpty)
    // A service with the pinned certificate is used.
    let good = await answers(session, server.url(.https1, "/led?port=\(try port(server, .h2))"))
    #expect(good.map { $0.prefix(2) } == ["ht", "h2", "h2"])
  }

  @Test("A service over HTTP/1.1 is not used") func http1() async throws {
    let server = try await Self.server
    let session = session(of: server)
    defer { withExtendedLifetime(session) {} }
    let path = "/led?port=\(try port(server, .https1))"
    let found = await answers(session, server.url(.h2, path))
    let origin = try port(server, .h2)
    #expect(found == Array(repeating: "h2: \(origin)  127.0.0.1:\(origin)", count: 3))
    let loggedRequests = try await server.loggedRequests(to: path, count: 3)
    #expect(loggedRequests.map(\.version) == ["HTTP/2.0", "HTTP/2.0", "HTTP/2.0"])
  }

  @Test("A service that refuses connections does not fail requests") func refusedConnection() async throws {
    let server = try await Self.server
    let session = session(of: server)
    defer { withExtendedLifetime(session) {} }
    let nobody = try #require(try Loopback.freePorts(1).first)
    let found = await answers(session, server.url(.https1, "/led?port=\(nobody)"))
    #expect(found.allSatisfy { $0.hasPrefix("http/1.1: ") }, "\(found)")
  }

  @Test("A service that is not authoritative returns the request to the origin") func misdirectedRequest()
    async throws
  {
    let server = try await Self.server
    let session = session(of: server)
    defer { withExtendedLifetime(session) {} }
    let path = "/misdirected?port=\(try port(server, .h2))"
    let found = await answers(session, server.url(.https1, path))
    #expect(found == Array(repeating: "http/1.1: origin", count: 3))
    let loggedRequests = try await server.loggedRequests(to: path, count: 4)
    #expect(loggedRequests.map(\.status) == [200, 421, 200, 200])
  }

  @Test("A body is sent to the service") func body() async throws {
    let server = try await Self.server
    let session = session(of: server)
    defer { withExtendedLifetime(session) {} }
    _ = await answers(session, server.url(.https1, "/led?port=\(try port(server, .h2))"), 1)
    for size in [5_000, 100_000, 2_000_000] {
      var request = try URLRequest(url: server.url(.https1, "/stored/led-\(size)"), method: .put)
      request.httpBody = Data(repeating: 7, count: size)
      let put = await session.request(request).validate().serializingData(emptyResponseCodes: [201, 204])
        .response
      #expect(put.transaction?.networkProtocolName == "h2", "\(put.failure)")
      #expect(put.response?.statusCode == 201)
    }
  }
}
