import Alamofire
import Testing

/// nginx behind third-party proxies, with and without passwords.
@Suite("Real proxies", .needsProxies, .timeLimit(.minutes(5)))
struct RealProxyTests {
  private func kinds(_ program: ProxyProcess.Program) -> [ProxyServer.Kind] {
    program == .microsocks ? [.socks5, .socks5h] : [.http]
  }

  private func server(
    _ kind: ProxyServer.Kind, _ process: ProxyProcess, user: String? = nil, password: String? = nil
  ) -> ProxyServer {
    ProxyServer(kind, host: "127.0.0.1", port: Int(process.port), username: user, password: password)
  }

  private func get(_ entrance: NginxServer.Entrance, _ proxy: ProxyServer) async throws
    -> DataResponse<String, AFError>
  {
    let nginx = try await NginxServer.shared
    let session = nginx.makeSession { $0.proxy = .server(proxy) }
    return await session.request(nginx.url(entrance, "/item")).validate().serializingString().response
  }

  @Test(
    "Requests succeed without a password", arguments: ProxyProcess.Program.allCases,
    NginxServer.Entrance.allCases)
  func open(program: ProxyProcess.Program, entrance: NginxServer.Entrance) async throws {
    let process = try await ProxyProcess.shared(program, asks: false)
    for kind in kinds(program) {
      let response = try await get(entrance, server(kind, process))
      #expect(response.value == NginxConfiguration.item, "\(response.failure)")
      #expect(response.metrics?.transactionMetrics.last?.isProxyConnection == true)
      let version = response.metrics?.transactionMetrics.last?.networkProtocolName
      #expect(version == (entrance == .h2 ? "h2" : "http/1.1"))
    }
  }

  @Test(
    "Requests succeed with a password only", arguments: ProxyProcess.Program.allCases,
    NginxServer.Entrance.allCases)
  func protected(program: ProxyProcess.Program, entrance: NginxServer.Entrance) async throws {
    let process = try await ProxyProcess.shared(program, asks: true)
    for kind in kinds(program) {
      let right = server(kind, process, user: ProxyProcess.user, password: ProxyProcess.password)
      let answer = try await get(entrance, right)
      #expect(answer.value == NginxConfiguration.item, "\(answer.failure)")
      if kind == .http {
        var negotiating = right
        negotiating.authentication = .negotiated
        let response = try await get(entrance, negotiating)
        #expect(response.value == NginxConfiguration.item, "\(response.failure)")
      }
      for (user, password) in [(ProxyProcess.user, "wrong-secret"), (nil, nil)] as [(String?, String?)] {
        let wrong = server(kind, process, user: user, password: password)
        let response = try await get(entrance, wrong)
        let error = try #require(response.error)
        if kind == .http, entrance == .http {
          // The proxy responds instead of the server.
          #expect([407, 401].contains(error.responseCode))
        } else {
          let underlying = try #require(error.underlyingError as? URLError)
          #expect(underlying.code == .userAuthenticationRequired, "\(underlying)")
          #expect(underlying.localizedDescription.contains("proxy"))
        }
        #expect(!"\(error) \(error.localizedDescription)".contains("wrong-secret"))
      }
    }
  }

  @Test("SOCKS4 receives addresses, SOCKS4a names", arguments: [ProxyServer.Kind.socks4, .socks4a])
  func socks4(kind: ProxyServer.Kind) async throws {
    let process = try await SOCKS4Server(takesNames: kind == .socks4a)
    let nginx = try await NginxServer.shared
    for entrance in NginxServer.Entrance.allCases {
      let url = nginx.url(entrance, "/item").replacingOccurrences(of: "127.0.0.1", with: "localhost")
      for other in [ProxyServer.Kind.socks4, .socks4a] {
        let proxy = ProxyServer(other, host: "127.0.0.1", port: Int(process.port))
        let session = nginx.makeSession { $0.proxy = .server(proxy) }
        let response = await session.request(url).validate().serializingString().response
        if other == kind {
          #expect(response.value == NginxConfiguration.item, "\(response.failure)")
        } else {
          let error = try #require(response.error?.underlyingError as? URLError)
          #expect(error.code == .cannotConnectToHost)
        }
      }
    }
  }

  @Test("Requests succeed over TLS to the proxy", arguments: NginxServer.Entrance.allCases)
  func secure(entrance: NginxServer.Entrance) async throws {
    let process = try await ProxyProcess.shared(.squid, asks: true)
    var proxy = ProxyServer(
      .https, host: "localhost", port: Int(process.securePort), username: ProxyProcess.user,
      password: ProxyProcess.password)
    // Each with its own authority: the proxy's did not sign nginx's certificate, and vice versa.
    proxy.trustStore = .file(process.authority)
    let response = try await get(entrance, proxy)
    #expect(response.value == NginxConfiguration.item, "\(response.failure)")
    proxy.trustStore = .file(try await NginxServer.shared.authority)
    let refused = try await get(entrance, proxy)
    let error = try #require(refused.error?.underlyingError as? URLError)
    #expect(error.code == .serverCertificateHasUnknownRoot)
    #expect(error.localizedDescription.contains("the proxy localhost"))
  }

  @Test("Byte streams succeed over TLS to the proxy", arguments: [NginxServer.Entrance.http, .https1])
  func streams(entrance: NginxServer.Entrance) async throws {
    let process = try await ProxyProcess.shared(.squid, asks: true)
    var proxy = ProxyServer(
      .https, host: "localhost", port: Int(process.securePort), username: ProxyProcess.user,
      password: ProxyProcess.password)
    proxy.trustStore = .file(process.authority)
    let nginx = try await NginxServer.shared
    let session = nginx.makeSession { $0.proxy = .server(proxy) }
    let url = try #require(URL(string: nginx.url(entrance, "/item")))
    let stream = session.byteStream(
      host: "127.0.0.1", port: try #require(url.port), secure: entrance == .https1)
    // Two requests over one connection, and its end.
    try await stream.write(Data("GET /item HTTP/1.1\r\nHost: x\r\n\r\n".utf8))
    let head = try await stream.read(atLeast: 15, atMost: 15).data
    #expect(String(decoding: head, as: UTF8.self) == "HTTP/1.1 200 OK")
    try await stream.write(Data("GET /item HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".utf8))
    var all = Data()
    while true {
      let (data, isAtEnd) = try await stream.read()
      all += data
      if isAtEnd { break }
    }
    #expect(String(decoding: all, as: UTF8.self).split(separator: NginxConfiguration.item).count == 2)
    #expect(String(decoding: all, as: UTF8.self).hasSuffix(NginxConfiguration.item))
  }

  @Test("The proxy of the configuration is used") func configuration() async throws {
    let process = try await ProxyProcess.shared(.tinyproxy, asks: true)
    let nginx = try await NginxServer.shared
    let configuration = URLSessionConfiguration.af.default
    configuration.connectionProxyDictionary = [
      "HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": Int(process.port), "HTTPSEnable": true,
      "HTTPSProxy": "127.0.0.1", "HTTPSPort": Int(process.port), "kCFProxyUsernameKey": ProxyProcess.user,
      "kCFProxyPasswordKey": ProxyProcess.password,
    ]
    let session = nginx.makeSession(configuration: configuration)
    for entrance in NginxServer.Entrance.allCases {
      let response = await session.request(nginx.url(entrance, "/item")).validate().serializingString()
        .response
      #expect(response.value == NginxConfiguration.item)
      #expect(response.metrics?.transactionMetrics.last?.isProxyConnection == true)
    }
    configuration.connectionProxyDictionary?["ExceptionsList"] = ["127.0.0.1"]
    let straight = nginx.makeSession(configuration: configuration)
    let response = await straight.request(nginx.url(.http, "/item")).serializingString().response
    #expect(response.metrics?.transactionMetrics.last?.isProxyConnection == false)
  }

  @Test("A tunnel is not shared between user names") func tunnels() async throws {
    let process = try await ProxyProcess.shared(.squid, asks: true)
    let nginx = try await NginxServer.shared
    let session = nginx.makeSession()
    let right = server(.http, process, user: ProxyProcess.user, password: ProxyProcess.password)
    let wrong = server(.http, process, user: ProxyProcess.user, password: "wrong")
    let url = nginx.url(.https1, "/item")
    let first = await session.request(url).transportOptions { $0.proxy = .server(right) }
      .serializingData().response
    #expect(first.response?.statusCode == 200)
    // The tunnel of the first user is still open.
    let second = await session.request(url).transportOptions { $0.proxy = .server(wrong) }
      .serializingData().response
    #expect((second.error?.underlyingError as? URLError)?.code == .userAuthenticationRequired)
  }
}
