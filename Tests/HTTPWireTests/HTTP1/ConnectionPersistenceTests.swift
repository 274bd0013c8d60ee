import HTTPWire
import Testing

@Suite("Persistence by the fields of a response") struct ConnectionPersistenceTests {
  private static func persistence(_ lines: [String], isFromProxy: Bool = false) -> ConnectionPersistence? {
    var assembly = ResponseAssembly()
    for line in lines + [""] { ResponseAssemblyTests.feed(&assembly, line) }
    return assembly.head.map {
      ConnectionPersistence($0, framing: assembly.framing, isFromProxy: isFromProxy)
    }
  }

  static let responses: [([String], Bool)] = [
    (["HTTP/1.1 200 OK"], true), (["HTTP/1.0 200 OK"], false),
    (["HTTP/1.1 200 OK", "Connection: close"], false), (["HTTP/1.1 200 OK", "connection: CLOSE"], false),
    (["HTTP/1.1 200 OK", "Connection: x-a , Close\t, b"], false),
    (["HTTP/1.1 200 OK", "Connection: keep-alive, close"], false),
    (["HTTP/1.1 200 OK", "Connection: x-a", "A: b", "CONNECTION: close"], false),
    (["HTTP/1.1 200 OK", "Connection: keep-alive"], true),
    (["HTTP/1.1 200 OK", "Connection: x-close"], true),
    (["HTTP/1.1 200 OK", "Connection: close-x, xclose, closed, clos, \"close\", close=1"], true),
    (["HTTP/1.1 200 OK", "Connection:"], true), (["HTTP/1.1 200 OK", "Connection: ,, ,"], true),
    (["HTTP/1.1 200 OK", "Connection: ,close"], false), (["HTTP/1.1 200 OK", "Connection: close,"], false),
    (["HTTP/1.1 200 OK", "X-Connection: close"], true), (["HTTP/1.1 200 OK", "Connections: close"], true),
    (["HTTP/1.1 200 OK", "Proxy-Connection: close"], true),
    (["HTTP/1.0 200 OK", "Connection: Keep-Alive"], true),
    (["HTTP/1.0 200 OK", "Connection: a, keep-alive"], true),
    (["HTTP/1.0 200 OK", "Connection: x-keep-alive"], false),
    (["HTTP/1.0 200 OK", "Connection: keep-alive, close"], false),
    (["HTTP/1.0 200 OK", "Proxy-Connection: keep-alive"], false),
    (["HTTP/1.0 200 OK", "Keep-Alive: timeout=5"], false),
    (["HTTP/1.1 200 OK", "Transfer-Encoding: chunked"], true),
    (["HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "Content-Length: 5"], false),
    (["HTTP/1.1 200 OK", "Transfer-Encoding: identity"], false),
    (["HTTP/1.0 200 OK", "Connection: keep-alive", "Transfer-Encoding: chunked"], false),
  ]

  @Test("Version, Connection and framing decide", arguments: responses)
  func persistence(lines: [String], isPersistent: Bool) {
    #expect(Self.persistence(lines)?.isPersistent == isPersistent)
  }

  @Test("Proxy-Connection counts for responses of proxies alone") func proxies() {
    for (version, value, isPersistent) in [
      ("1.0", "keep-alive", true), ("1.0", "Keep-Alive, x", true), ("1.0", "close", false),
      ("1.1", "close", false),
      ("1.1", "keep-alive", true),
    ] {
      let lines = ["HTTP/\(version) 200 OK", "Proxy-Connection: \(value)"]
      #expect(Self.persistence(lines, isFromProxy: true)?.isPersistent == isPersistent, "\(lines)")
    }
    #expect(
      Self.persistence(
        ["HTTP/1.1 200 OK", "Connection: close", "Proxy-Connection: keep-alive"], isFromProxy: true)?
        .isPersistent == false)
  }

  static let hints: [(String, Int?)] = [
    ("timeout=5", 5), ("timeout=5, max=100", 5), ("max=100,TIMEOUT = 30", 30), ("timeout=0", 0),
    ("timeout=1", 1),
    ("timeout=", nil), ("timeout=x", nil), ("timeout=-1", nil), ("timeout", nil), ("max=5", nil),
    ("xtimeout=5", nil),
    ("timeout=5s", nil), ("", nil), ("timeout=99999999999999999999", 1_000_000), ("300", nil),
  ]

  @Test("The hint of Keep-Alive shortens the idle time by a second", arguments: hints)
  func hint(value: String, seconds: Int?) throws {
    let persistence = try #require(Self.persistence(["HTTP/1.1 200 OK", "Keep-Alive: \(value)"]))
    #expect(persistence.isPersistent)
    #expect(persistence.announcedIdleTime == seconds)
    #expect(persistence.idleTime == .seconds(min(118, max(0, (seconds ?? 200) - 1))))
  }

  @Test("Lists of fields are searched for whole tokens") func lists() {
    let block = FieldBlock([
      HTTPHeader(name: "A", value: "one,Two ,\tthree"), HTTPHeader(name: "a", value: "four"),
    ])
    for token: StaticString in ["one", "two", "three", "four"] { #expect(block.lists(token, in: "A")) }
    for token: StaticString in ["on", "one,two", "", "wo", "fourth"] { #expect(!block.lists(token, in: "A")) }
    #expect(!block.lists("one", in: "B"))
  }
}
