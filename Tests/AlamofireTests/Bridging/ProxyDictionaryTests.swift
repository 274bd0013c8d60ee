import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@Suite("connectionProxyDictionary", .timeLimit(.minutes(5)))
struct ProxyDictionaryTests {
  private func choice(_ dictionary: [AnyHashable: Any], _ url: String) throws -> ProxyTable.Choice {
    ProxyTable(dictionary: dictionary).choice(for: try #require(Origin(url: url)))
  }

  @Test("The keys of Apple's systems are read") func applesKeys() throws {
    let dictionary: [AnyHashable: Any] = [
      "HTTPEnable": 1, "HTTPProxy": "h.test", "HTTPPort": 8080, "HTTPSEnable": true, "HTTPSProxy": "s.test",
      "HTTPSPort": NSNumber(value: 8443), "ExceptionsList": ["*.local", "10.0.0.0/8"],
      "ExcludeSimpleHostnames": 1, "kCFProxyUsernameKey": "ann", "kCFProxyPasswordKey": "secret",
    ]
    let http = ProxyServer(.http, host: "h.test", port: 8080, username: "ann", password: "secret")
    #expect(try choice(dictionary, "http://a.test") == .server(http))
    let https = ProxyServer(.http, host: "s.test", port: 8443, username: "ann", password: "secret")
    #expect(try choice(dictionary, "https://a.test") == .server(https))
    for url in ["http://printer.local", "http://10.2.3.4", "http://intranet"] {
      #expect(try choice(dictionary, url) == .direct)
    }
  }

  @Test("A proxy that is not enabled is not used") func disabledProxy() throws {
    #expect(try choice([:], "http://a.test") == .direct)
    #expect(try choice(["HTTPEnable": 0, "HTTPProxy": "h.test", "HTTPPort": 1], "http://a.test") == .direct)
    #expect(try choice(["HTTPProxy": "h.test", "HTTPPort": 1], "http://a.test") == .direct)
  }

  @Test("SOCKS serves the schemes without their own proxy") func socks() throws {
    let dictionary: [AnyHashable: Any] = [
      "SOCKSEnable": 1, "SOCKSProxy": "s.test", "SOCKSPort": "1081", "HTTPEnable": 1, "HTTPProxy": "h.test",
    ]
    #expect(
      try choice(dictionary, "https://a.test") == .server(ProxyServer(.socks5h, host: "s.test", port: 1081)))
    #expect(try choice(dictionary, "http://a.test") == .server(ProxyServer(.http, host: "h.test", port: 80)))
  }

  @Test("A script is not evaluated, so a scheme without another proxy is unreadable")
  func scripts() throws {
    for key in ["ProxyAutoConfigEnable", "ProxyAutoDiscoveryEnable"] {
      var dictionary: [AnyHashable: Any] = [
        key: 1, "HTTPEnable": 1, "HTTPProxy": "h.test", "ExceptionsList": ["*.local"],
      ]
      #expect(try choice(dictionary, "https://a.test") == .unreadable("connectionProxyDictionary"))
      #expect(try choice(dictionary, "https://printer.local") == .direct)
      #expect(
        try choice(dictionary, "http://a.test") == .server(ProxyServer(.http, host: "h.test", port: 80)))
      dictionary["SOCKSEnable"] = 1
      dictionary["SOCKSProxy"] = "s.test"
      #expect(
        try choice(dictionary, "https://a.test") == .server(ProxyServer(.socks5h, host: "s.test", port: 1080))
      )
      #expect(try choice([key: 0], "https://a.test") == .direct)
    }
  }

  @Test("An enabled proxy without a host fails the request") func missingHost() async throws {
    let configuration = URLSessionConfiguration.af.default
    configuration.connectionProxyDictionary = ["HTTPEnable": 1]
    let session = Session(configuration: configuration)
    let response = await session.request("http://127.0.0.1:1/").end()
    let error = try #require(response.error?.underlyingError as? URLError)
    #expect(error.code == .badURL)
    #expect(error.localizedDescription.contains("connectionProxyDictionary"))
  }
}
