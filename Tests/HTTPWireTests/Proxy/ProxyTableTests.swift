import FoundationEssentials
import HTTPWire
import Testing

@Suite("Proxies")
struct ProxyTableTests {
  private func origin(_ url: String) throws -> Origin { try #require(Origin(url: url)) }

  @Test(
    "Variables of the environment are read",
    arguments: [
      (["http_proxy": "http://p:1"], "http://a.test", "http://p:1"),
      (["http_proxy": "p:1"], "https://a.test", nil),
      (["https_proxy": "p:2"], "https://a.test", "http://p:2"),
      (["HTTPS_PROXY": "p:2"], "https://a.test", "http://p:2"),
      (["HTTP_PROXY": "p:2"], "http://a.test", nil),
      (["all_proxy": "socks5h://s"], "http://a.test", "socks5h://s:1080"),
      (["ALL_PROXY": "https://s", "http_proxy": "p:3"], "https://a.test", "https://s:443"),
      (["ALL_PROXY": "socks4a://s:9", "http_proxy": "p:3"], "http://a.test", "http://p:3"),
      (["http_proxy": "", "all_proxy": "p"], "http://a.test", "http://p:1080"),
      (["http_proxy": "http://[::1]:8/"], "http://a.test", "http://[::1]:8"),
      (["http_proxy": "p:1", "no_proxy": "b.test, a.test"], "http://a.test", nil),
      (["http_proxy": "p:1", "NO_PROXY": "*"], "http://a.test", nil),
      (["http_proxy": "p:1", "no_proxy": "", "NO_PROXY": "a.test"], "http://a.test", nil),
      ([:], "http://a.test", nil),
    ] as [([String: String], String, String?)])
  func variables(environment: [String: String], url: String, server: String?) throws {
    let choice = ProxyTable(environment: environment).choice(for: try origin(url))
    switch choice {
    case .direct: #expect(server == nil)
    case .server(let found): #expect(found.description == server)
    case .environment, .unreadable: Issue.record("no choice: \(choice)")
    }
  }

  @Test("An invalid proxy is an error", arguments: ["ftp://p:1", "http://", "p:99999", "http://a b"])
  func unreadable(value: String) throws {
    let table = ProxyTable(environment: ["http_proxy": value])
    #expect(table.choice(for: try origin("http://a.test")) == .unreadable("http_proxy"))
  }

  @Test("Proxies whose texts are equal but not their bytes are two") func bytes() {
    let (composed, decomposed) = ("jos\u{E9}", "jose\u{301}")
    #expect(composed == decomposed)
    func proxy(_ text: String, _ change: (inout ProxyServer, String) -> Void) -> ProxyServer {
      var proxy = ProxyServer(.http, host: "p", port: 1, username: "u", password: "s", bypass: ["a"])
      change(&proxy, text)
      return proxy
    }
    let changes: [(inout ProxyServer, String) -> Void] = [
      { $0.username = $1 }, { $0.password = $1 }, { $0.host = $1 }, { $0.bypass = [$1] },
      { $0.trustStore = .file($1) },
    ]
    for (number, change) in changes.enumerated() {
      #expect(proxy(composed, change) != proxy(decomposed, change), "\(number)")
      #expect(proxy(composed, change) == proxy(composed, change), "\(number)")
      #expect(proxy(composed, change).hashValue == proxy(composed, change).hashValue, "\(number)")
    }
  }

  @Test("Each property distinguishes proxies") func properties() {
    let changes: [(inout ProxyServer) -> Void] = [
      { _ in }, { $0.kind = .https }, { $0.host = "q" }, { $0.port = 2 }, { $0.username = "v" },
      { $0.username = nil }, { $0.username = "" }, { $0.password = "t" }, { $0.password = nil },
      { $0.authentication = .negotiated }, { $0.bypass = [] }, { $0.bypass = ["a", "b"] },
      { $0.trustStore = .file("/a") }, { $0.trustStore = .file("/b") }, { $0.trustStore = .pem(Data()) },
    ]
    let proxies = changes.map { change in
      var proxy = ProxyServer(.http, host: "p", port: 1, username: "u", password: "s", bypass: ["a"])
      change(&proxy)
      return proxy
    }
    #expect(Set(proxies).count == changes.count)
  }

  @Test("Credentials are read and in no description") func credentials() throws {
    let server = try #require(ProxyServer("http://an%40n:se%3Acret:x@p:1", bypass: []))
    #expect(server.username == "an@n" && server.password == "se:cret:x")
    #expect(ProxyServer("http://ann:a%-0b@p:1", bypass: [])?.password == "a%-0b")
    var text = ""
    dump(server, to: &text)
    dump(Proxy.server(server), to: &text)
    var options = TransportOptions()
    options.proxy = .server(server)
    dump(options, to: &text)
    text += "\(server) \(String(reflecting: server)) \(Proxy.server(server)) \(options) \([server])"
    #expect(!text.contains("cret") && !text.contains("an@n"))
  }

  @Test(
    "Hosts of no_proxy have no proxy",
    arguments: [
      ("a.test", "http://a.test", true), ("a.test", "http://b.a.test", true),
      (".a.test", "http://a.test", true),
      ("*.a.test", "http://b.a.test", true), ("a.test", "http://ba.test", false),
      ("A.Test.", "http://a.test.", true),
      ("a.test:80", "http://a.test", true), ("a.test:81", "http://a.test", false), ("*", "https://any", true),
      ("10.0.0.0/8", "http://10.1.2.3", true), ("10.0.0.0/8", "http://11.1.2.3", false),
      ("10.0.0.1", "http://10.0.0.1", true), ("0.1", "http://10.0.0.1", false),
      ("169.254/16", "http://169.254.3.4", true),
      ("192.168.1.128/25", "http://192.168.1.200", true), ("192.168.1.128/25", "http://192.168.1.100", false),
      ("::1", "http://[::1]:8080", true), ("[::1]", "http://[0:0::1]", true),
      ("[::1]:80", "http://[::1]:81", false),
      ("fd00::/8", "http://[fd12::3]", true), ("fd00::/8", "http://[fe80::1]", false),
      ("10.0.0.0/99", "http://10.0.0.1", false),
      ("0.0.0.0/0", "http://1.2.3.4", true), ("0.0.0.0/0", "http://[::1]", false),
      ("", "http://a.test", false), ("10.0.0.0/+8", "http://10.1.2.3", false),
      ("10.0.0.0/-0", "http://11.1.2.3", false), ("a.test:+80", "http://a.test", false),
      ("[::1]:80", "http://[::1]", true), ("[::1]:", "http://[::1]", true),
      ("[::1]:+80", "http://[::1]", false),
      ("[::1]:x", "http://[::1]", false), ("[::1]x", "http://[::1]", false),
      ("localhost", "http://127.0.0.1", false),
      // An octal number: the address is 8.8.8.8.
      ("10.0.0.0/8", "http://010.8.8.8", false), ("8.8.8.8", "http://010.8.8.8", true),
      ("010.0.0.0/8", "http://10.8.8.8", false), ("10.0.0.0/8", "http://[::ffff:010.8.8.8]", false),
      ("10.0.0.0/8", "http://10.1", true), ("127.0.0.0/8", "http://0x7F.1", true),
      ("127.0.0.1", "http://2130706433", true), ("1", "http://127.1", false),
    ])
  func bypass(entry: String, url: String, isCovered: Bool) throws {
    #expect(ProxyBypass([entry]).covers(try origin(url)) == isCovered)
  }

  @Test("Each scheme has its own proxy, with its own exceptions") func schemes() throws {
    var options = TransportOptions()
    options.proxy = .perScheme(
      http: .http("p", port: 1, bypass: ["a.test"]),
      https: .perScheme(http: .none, https: .socks5h("s", bypass: ["b.test"])))
    let table = try #require(ProxyTable.named(by: options, system: nil))
    let http = ProxyServer(.http, host: "p", port: 1, bypass: ["a.test"])
    #expect(table.choice(for: try origin("http://b.test")) == .server(http))
    #expect(table.choice(for: try origin("http://a.test")) == .direct)
    #expect(table.choice(for: try origin("https://b.test")) == .direct)
    guard case .server(let server) = table.choice(for: try origin("https://a.test")) else {
      Issue.record("no proxy")
      return
    }
    #expect(server.kind == .socks5h)
  }

  @Test("A scheme without its own setting uses the proxies of the configuration, or of the environment")
  func schemeOfEnvironment() throws {
    var options = TransportOptions()
    options.proxy = .perScheme(http: .none, https: .environment)
    let system = ProxyTable(ProxyServer(.http, host: "p", port: 1, bypass: ["a.test"]))
    let table = try #require(ProxyTable.named(by: options, system: system))
    #expect(table.choice(for: try origin("http://b.test")) == .direct)
    #expect(table.choice(for: try origin("https://a.test")) == .direct)
    #expect(table.choice(for: try origin("https://b.test")) != .direct)
    let other = try #require(ProxyTable.named(by: options, system: nil))
    #expect(other.choice(for: try origin("https://b.test")) == .environment)
    #expect(!other.isDirect)
  }

  @Test("Connections to a Unix-domain socket use only the proxies that the program names") func socket()
    throws
  {
    let server = ProxyServer(.http, host: "p", port: 1)
    func choices(_ proxy: Proxy, system: ProxyTable? = nil) throws -> [ProxyTable.Choice?] {
      var options = TransportOptions()
      options.unixSocket = "/run/a"
      options.proxy = proxy
      let profile = ConnectionProfile(options: options, systemProxies: system)
      return try ["http://a.test", "https://a.test"].map { profile.proxies?.choice(for: try origin($0)) }
    }
    #expect(try choices(.environment) == [.direct, .direct])
    #expect(
      try choices(.perScheme(http: .environment, https: .server(server))) == [.direct, .server(server)])
    #expect(try choices(.server(server)) == [.server(server), .server(server)])
    #expect(try choices(.environment, system: ProxyTable(server)) == [.server(server), .server(server)])
    #expect(ConnectionProfile().proxies == nil, "without a socket, the environment determines the proxy")
  }

  @Test("Names without a dot can be exempt") func namesWithoutDot() throws {
    let proxy = ProxyTable.Choice.server(ProxyServer(.http, host: "p", port: 1))
    let table = ProxyTable(http: ProxyTable.ProxyEntry(proxy, excludesSimpleNames: true))
    #expect(table.choice(for: try origin("http://intranet")) == .direct)
    #expect(table.choice(for: try origin("http://a.test")) != .direct)
    #expect(table.choice(for: try origin("http://[::1]")) != .direct)
    for address in ["134744072", "0x8080808", "010"] {
      #expect(table.choice(for: try origin("http://\(address)")) != .direct, "\(address)")
    }
  }

  @Test(
    "Addresses",
    arguments: [
      ("1.2.3.4", 4), ("::", 16), ("::1", 16), ("1:2:3:4:5:6:7:8", 16), ("::ffff:1.2.3.4", 16),
      ("fe80::1%25eth0", 16),
      ("1.2.3", 0), ("1.2.3.256", 0), ("1:2", 0), ("1::2::3", 0), (":::", 0), ("1:2:3:4:5:6:7:8:9", 0),
      ("g::", 0),
      ("+1.2.3.4", 0), ("", 0), ("1:2:3:4:5:6::8", 16), ("1:2:3:4:5:6:7::8", 0), ("1.2.3.4::", 0),
      ("::-1", 0), ("0.0.0.0", 4), ("010.8.8.8", 0), ("1.2.3.00", 0), ("1.2.3.", 0), ("1.2..4", 0),
      ("::ffff:010.8.8.8", 0),
    ])
  func addresses(text: String, count: Int) {
    #expect(IPAddress(text: text)?.bytes.count ?? 0 == count)
  }

  @Test(
    "The host of a URL may spell an address in other ways",
    arguments: [
      ("1.2.3.4", [1, 2, 3, 4]), ("010.8.8.8", [8, 8, 8, 8]), ("0x7f.1", [127, 0, 0, 1]),
      ("0X7F.0.0.1", [127, 0, 0, 1]), ("1.2.772", [1, 2, 3, 4]), ("1.131844", [1, 2, 3, 4]),
      ("2130706433", [127, 0, 0, 1]), ("4294967295", [255, 255, 255, 255]), ("0", [0, 0, 0, 0]),
      ("4294967296", []), ("1.16777216", []), ("1.2.65536", []), ("1.2.3.256", []), ("256.1", []),
      ("08", []), ("0x", []), ("0x+1", []), ("+1", []), ("-1", []), ("1.2.3.4.5", []), ("1.", []), (".1", []),
      ("", []), ("a.test", []), ("1.a", []), ("99999999999999999999", []),
    ] as [(String, [UInt8])])
  func hosts(text: String, bytes: [UInt8]) {
    #expect(IPAddress(host: text)?.bytes ?? [] == bytes)
  }
}
