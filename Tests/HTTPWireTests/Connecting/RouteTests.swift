import HTTPWire
import Testing

@Suite("The route of a connection") struct RouteTests {
  private static let origin = Origin(scheme: "https", host: "shop.example", port: 443)

  private static func endpoint(
    _ alternative: AlternativeService? = nil, _ change: (inout TransportOptions) -> Void
  ) throws -> Route.Endpoint {
    var options = TransportOptions()
    change(&options)
    return try Route(to: origin, options, alternative: alternative).endpoint
  }

  @Test("A route leads to the origin, unless the options say otherwise") func places() throws {
    #expect(try Self.endpoint { _ in } == .host("shop.example", port: 443))
    #expect(try Self.endpoint { $0.unixSocket = "/run/a" } == .unixSocket(path: "/run/a"))
    #expect(
      try Self.endpoint { $0.hostOverrides = [.init(host: "shop.example", target: "Other.Example")] }
        == .host("other.example", port: 443))
    // The zone names an interface, so its case counts.
    #expect(
      try Self.endpoint { $0.hostOverrides = [.init(host: "shop.example", target: "FE80::1%vEthernet")] }
        == .host("fe80::1%vEthernet", port: 443))
    #expect(
      try Self.endpoint {
        $0.hostOverrides = [
          .init(host: "shop.example", port: 80, target: "a"),
          .init(host: "shop.example", port: 443, target: "b", targetPort: 8443),
          .init(host: "shop.example", target: "c"),
        ]
      } == .host("b", port: 8443))
    // A socket of this machine has no host to override.
    #expect(
      try Self.endpoint {
        $0.unixSocket = "/run/a"
        $0.hostOverrides = [.init(host: "shop.example", target: "b")]
      } == .unixSocket(path: "/run/a"))
  }

  @Test("Sockets whose paths are equal texts but not equal bytes are two", arguments: [false, true])
  func socketPaths(hasProxy: Bool) throws {
    func route(_ path: String) throws -> Route {
      var options = TransportOptions()
      options.unixSocket = path
      return try Route(
        to: Self.origin, options, proxy: hasProxy ? ProxyServer(.http, host: "p", port: 1) : nil)
    }
    #expect(try route("/run/jos\u{E9}") != route("/run/jose\u{301}"))
    #expect(try route("/run/jos\u{E9}") == route("/run/jos\u{E9}"))
  }

  @Test(
    "A proxy of HTTP forwards cleartext requests, unless an override leads them elsewhere",
    arguments: [ProxyServer.Kind.http, .https])
  func forwarding(kind: ProxyServer.Kind) throws {
    let proxy = ProxyServer(kind, host: "proxy.example", port: 3128)
    let plain = Origin(scheme: "http", host: "shop.example", port: 80)
    func route(_ origin: Origin, overriding host: String? = nil) throws -> Route {
      var options = TransportOptions()
      if let host { options.hostOverrides = [.init(host: host, target: "Other.Example", targetPort: 81)] }
      return try Route(to: origin, options, proxy: proxy, mayForward: true)
    }
    for host in [nil, "a.example"] {
      let forwarded = try route(plain, overriding: host)
      #expect(forwarded.forwards && forwarded.endpoint == .host("proxy.example", port: 3128))
    }
    let led = try route(plain, overriding: "shop.example")
    #expect(!led.forwards && led.endpoint == .host("other.example", port: 81))
    #expect(try !route(Self.origin).forwards)
  }

  @Test("An invalid override is refused, also one for another host") func invalidOverrides() {
    for override in [
      TransportOptions.HostOverride(host: "", target: "b"), .init(host: "a", target: ""),
      .init(host: "a b", target: "b"), .init(host: "a", target: "b/c"), .init(host: "a", target: "[::1]"),
      .init(host: "a", target: "user@b"), .init(host: "a", port: 0, target: "b"),
      .init(host: "a", port: 65_536, target: "b"), .init(host: "a", target: "b", targetPort: 0),
      .init(host: "a", target: "b", targetPort: -1), .init(host: "a\r", target: "b"),
    ] {
      #expect(throws: TransportFailure.self, "\(override)") {
        try Self.endpoint { $0.hostOverrides = [.init(host: "shop.example", target: "b"), override] }
      }
    }
  }
}
