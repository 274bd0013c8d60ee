import HTTPWire
import Testing

@Suite("The route of a connection") struct RouteTests {
  private static let origin = Origin(scheme: "https", host: "shop.example", port: 443)

  private static func place(
    _ alternative: AlternativeService? = nil, _ change: (inout TransportOptions) -> Void
  ) throws -> Route.Place {
    var options = TransportOptions()
    change(&options)
    return try Route(to: origin, options, alternative: alternative).place
  }

  @Test("A route leads to the origin, unless the options say otherwise") func places() throws {
    #expect(try Self.place { _ in } == .host("shop.example", port: 443))
    #expect(try Self.place { $0.unixSocket = "/run/a" } == .unixSocket(path: "/run/a"))
    #expect(
      try Self.place { $0.hostOverrides = [.init(host: "shop.example", target: "Other.Example")] }
        == .host("other.example", port: 443))
    #expect(
      try Self.place {
        $0.hostOverrides = [
          .init(host: "shop.example", port: 80, target: "a"),
          .init(host: "shop.example", port: 443, target: "b", targetPort: 8443),
          .init(host: "shop.example", target: "c"),
        ]
      } == .host("b", port: 8443))
    // A socket of this machine has no host to override.
    #expect(
      try Self.place {
        $0.unixSocket = "/run/a"
        $0.hostOverrides = [.init(host: "shop.example", target: "b")]
      } == .unixSocket(path: "/run/a"))
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
        try Self.place { $0.hostOverrides = [.init(host: "shop.example", target: "b"), override] }
      }
    }
  }
}
