import HTTPWire
import Testing

@Suite("Strict-Transport-Security")
struct StrictTransportTests {
  @Test(
    "Valid fields are parsed",
    arguments: [
      ("max-age=31536000", 31_536_000, false), ("max-age=\"31536000\"", 31_536_000, false),
      ("MAX-AGE = 1 ; IncludeSubDomains", 1, true), (";; max-age=5;;includeSubDomains;", 5, true),
      ("includeSubDomains;max-age=0", 0, true), ("max-age=1; preload; x=\"a;b\\\"c\"", 1, false),
      ("max-age=99999999999999999999", Int64.max, false), ("max-age=1; includeSubDomainsToo", 1, false),
    ])
  func fields(value: String, maxAge: Int64, includesSubdomains: Bool) {
    #expect(
      StrictTransportField(value)
        == StrictTransportField(maxAge: maxAge, includesSubdomains: includesSubdomains))
  }

  @Test(
    "Invalid fields are ignored",
    arguments: [
      "", ";", "includeSubDomains", "max-age", "max-age=", "max-age=-1", "max-age=1.5", "max-age=1s",
      "max-age=1; max-age=2", "max-age=1; Max-Age=1", "max-age=1, includeSubDomains",
      "max-age=1 includeSubDomains", "max-age=1; includeSubDomains=1",
      "max-age=1; includeSubDomains; includesubdomains",
      "max-age=\"1", "max-age=1; x=\"open", "=1; max-age=1", "max-age=1; x=", "max-age=1; x; x",
    ])
  func brokenFields(value: String) {
    #expect(StrictTransportField(value) == nil)
  }

  @Test(
    "Policies are for names and not for addresses",
    arguments: [
      ("example.com", "example.com"), ("EXAMPLE.com.", "example.com"),
      ("bücher.example", "xn--bcher-kva.example"),
      ("localhost", "localhost"), ("1e100.net", "1e100.net"), ("a.0xzz", "a.0xzz"), ("127.0.0.1", nil),
      ("127.1", nil), ("2130706433", nil), ("0x7f.0x1", nil), ("a.0x", nil), ("1.2.3.4.", nil),
      ("[::1]", nil),
      ("::1", nil), ("", nil), (".", nil), ("a..b", nil), ("a:80", nil), ("u@a", nil), ("a/b", nil),
    ] as [(String, String?)])
  func names(text: String, name: String?) {
    #expect(HostPolicyName(text)?.name == name)
  }

  private func table(_ field: String, of host: String, at now: Int64 = 100) throws -> StrictTransportTable {
    var table = StrictTransportTable(limit: 10)
    _ = table.note(
      try #require(StrictTransportField(field)), of: try #require(HostPolicyName(host)), now: now)
    return table
  }

  @Test(
    "A policy covers the host, and subdomains if it includes them",
    arguments: [
      ("max-age=10", "a.test", 100, true), ("max-age=10", "a.test", 109, true),
      ("max-age=10", "a.test", 110, false),
      ("max-age=10", "b.a.test", 100, false), ("max-age=10", "test", 100, false),
      ("max-age=10", "ba.test", 100, false),
      ("max-age=10; includeSubDomains", "b.a.test", 109, true),
      ("max-age=10; includeSubDomains", "c.b.a.test", 109, true),
      ("max-age=10; includeSubDomains", "b.a.test", 110, false),
      ("max-age=10; includeSubDomains", "ba.test", 100, false),
      ("max-age=10; includeSubDomains", "test", 100, false), ("max-age=0", "a.test", 100, false),
      ("max-age=9223372036854775807", "a.test", .max - 1, true),
    ])
  func protection(field: String, host: String, now: Int64, isProtected: Bool) throws {
    let table = try table(field, of: "a.test")
    #expect(table.protects(try #require(HostPolicyName(host)), now: now) == isProtected)
  }

  @Test("The last policy of a host counts, and max-age=0 removes it") func lastPolicy() throws {
    var table = try table("max-age=1000; includeSubDomains", of: "a.test")
    let (host, below) = (try #require(HostPolicyName("a.test")), try #require(HostPolicyName("b.a.test")))
    let answer1 = table.note(StrictTransportField(maxAge: 50, includesSubdomains: false), of: host, now: 100)
    #expect(answer1)
    #expect(!table.protects(below, now: 100))
    #expect(!table.protects(host, now: 150))
    let answer2 = table.note(StrictTransportField(maxAge: 0, includesSubdomains: false), of: host, now: 110)
    #expect(answer2)
    #expect(!table.protects(host, now: 110))
    let answer3 = table.note(StrictTransportField(maxAge: 0, includesSubdomains: false), of: host, now: 110)
    #expect(!answer3)
  }

  @Test("A subdomain sets its own policy, not its superdomain's") func subdomains() throws {
    var table = try table("max-age=1000; includeSubDomains", of: "a.test")
    let below = try #require(HostPolicyName("b.a.test"))
    _ = table.note(StrictTransportField(maxAge: 10, includesSubdomains: false), of: below, now: 100)
    _ = table.note(StrictTransportField(maxAge: 0, includesSubdomains: false), of: below, now: 101)
    // RFC 6797 §8.2: the superdomain still covers it.
    #expect(table.protects(below, now: 101))
  }

  @Test("Preloaded hosts are not removed") func preloadedHosts() throws {
    var table = StrictTransportTable(limit: 1)
    let (host, below) = (try #require(HostPolicyName("a.test")), try #require(HostPolicyName("b.a.test")))
    table.preload(host, includingSubdomains: false)
    #expect(table.protects(host, now: .max))
    #expect(!table.protects(below, now: 0))
    table.preload(host, includingSubdomains: true)
    _ = table.note(StrictTransportField(maxAge: 0, includesSubdomains: false), of: host, now: 0)
    #expect(table.protects(below, now: 0))
    let answer4 = table.forgetAll()
    #expect(!answer4)
    #expect(table.protects(host, now: 0))
    #expect(table.hosts(now: 0).isEmpty)
  }

  @Test("New hosts replace expired ones only") func limit() throws {
    var table = StrictTransportTable(limit: 3)
    func host(_ number: Int) throws -> HostPolicyName { try #require(HostPolicyName("h\(number).test")) }
    for number in 0..<5 {
      let field = StrictTransportField(maxAge: Int64(10 + number), includesSubdomains: false)
      let answer5 = table.note(field, of: try host(number), now: 0)
      #expect(answer5 == (number < 3))
    }
    #expect(table.hosts(now: 0) == ["h0.test", "h1.test", "h2.test"])
    let field = StrictTransportField(maxAge: 100, includesSubdomains: false)
    let answer6 = table.note(field, of: try host(0), now: 5)
    #expect(answer6, "one that is there already")
    let answer7 = table.note(field, of: try host(7), now: 11)
    #expect(answer7)
    #expect(table.hosts(now: 11) == ["h0.test", "h2.test", "h7.test"])
  }

  @Test("A full table looks for expired policies only when one may have expired") func fullTable() throws {
    var table = StrictTransportTable(limit: 100)
    func note(_ number: Int, maxAge: Int64, now: Int64) throws -> Bool {
      let host = try #require(HostPolicyName("h\(number).test"))
      return table.note(StrictTransportField(maxAge: maxAge, includesSubdomains: false), of: host, now: now)
    }
    for number in 0..<100 { _ = try note(number, maxAge: number == 0 ? 100 : 10_000, now: 0) }
    // The first host renews its policy.
    _ = try note(0, maxAge: 1_000, now: 50)
    for number in 100..<1_000 { _ = try note(number, maxAge: 10_000, now: 99) }
    #expect(table.steps == 0, "no policy may have expired")
    for number in 100..<1_000 { _ = try note(number, maxAge: 10_000, now: 200) }
    #expect(table.steps == 100 && table.hosts(now: 200).count == 100)
    // A shorter time counts, too.
    _ = try note(1, maxAge: 100, now: 200)
    let early = try note(1_000, maxAge: 10_000, now: 299)
    #expect(!early)
    let late = try note(1_000, maxAge: 10_000, now: 300)
    #expect(late && table.steps == 200)
    #expect(table.hosts(now: 300).contains("h1000.test") && !table.hosts(now: 300).contains("h1.test"))
  }

  @Test("A host replaces a policy that was read from a file, when that has expired") func readPolicies()
    throws
  {
    var table = StrictTransportTable(limit: 2)
    try table.read(text: "# strict-transport-security 1\na.test 100\nb.test 200\n")
    let host = try #require(HostPolicyName("c.test"))
    let field = StrictTransportField(maxAge: 1_000, includesSubdomains: false)
    let answers = [99, 100].map { (now: Int64) in table.note(field, of: host, now: now) }
    #expect(answers == [false, true])
    #expect(table.hosts(now: 100) == ["b.test", "c.test"])
  }

  @Test("A repeated policy is rarely written") func repeatedPolicy() throws {
    var table = try table("max-age=1000", of: "a.test", at: 0)
    let host = try #require(HostPolicyName("a.test"))
    let field = StrictTransportField(maxAge: 1000, includesSubdomains: false)
    let worthy = (1...100).filter { now in table.note(field, of: host, now: Int64(now)) }
    #expect(worthy == [11, 22, 33, 44, 55, 66, 77, 88, 99])
    #expect(table.protects(host, now: 1099))
  }

  @Test("A written table is parsed") func serialization() throws {
    var table = try table("max-age=1000; includeSubDomains", of: "a.test")
    _ = table.note(
      StrictTransportField(maxAge: 5, includesSubdomains: false), of: try #require(HostPolicyName("b.test")),
      now: 100)
    _ = table.note(
      StrictTransportField(maxAge: 1, includesSubdomains: false), of: try #require(HostPolicyName("c.test")),
      now: 100)
    let text = table.text(now: 102)
    #expect(text == "# strict-transport-security 1\na.test 1100 includeSubDomains\nb.test 105\n")
    var copy = StrictTransportTable(limit: 10)
    try copy.read(text: text)
    #expect(copy.text(now: 0) == text)
    #expect(copy.protects(try #require(HostPolicyName("x.a.test")), now: 1099))
  }

  @Test(
    "Broken files",
    arguments: [
      ("", .otherFile), ("a.test 5\n", .otherFile), ("-----BEGIN PRIVATE KEY-----\n", .otherFile),
      ("# strict-transport-security 2\n", .otherFile),
      ("# strict-transport-security 1\na.test\n", .brokenLine(2)),
      ("# strict-transport-security 1\na.test 5\nb.test x\n", .brokenLine(3)),
      ("# strict-transport-security 1\na.test -5\n", .brokenLine(2)),
      ("# strict-transport-security 1\na.test +5\n", .brokenLine(2)),
      ("# strict-transport-security 1\na.test -0\n", .brokenLine(2)),
      ("# strict-transport-security 1\n127.0.0.1 5\n", .brokenLine(2)),
      ("# strict-transport-security 1\na.test 5 includesubdomains\n", .brokenLine(2)),
      ("# strict-transport-security 1\na.test 5 includeSubDomains x\n", .brokenLine(2)),
      ("# strict-transport-security 1\na.te", .brokenLine(2)),
    ] as [(String, HostStorageError)])
  func brokenFiles(text: String, error: HostStorageError) {
    var table = StrictTransportTable(limit: 10)
    #expect(throws: error) { try table.read(text: text) }
    #expect(table.hosts(now: 0).isEmpty)
    #expect(error.errorDescription?.hasSuffix(".") == true)
  }

  @Test(
    "URLs are upgraded",
    arguments: [
      ("http://a.test", "https://a.test"), ("http://a.test/", "https://a.test/"),
      ("http://a.test:80/x?y#z", "https://a.test/x?y#z"), ("http://a.test:8080/x", "https://a.test:8080/x"),
      ("http://a.test:443/x", "https://a.test:443/x"), ("HTTP://A.TEST./x", "https://a.test./x"),
      ("http://b.a.test?q", "https://b.a.test?q"), ("https://a.test/", nil), ("http://other.test/", nil),
    ] as [(String, String?)])
  func upgrades(url: String, upgraded: String?) throws {
    let hosts = StrictTransportSecurity(storage: MemoryStorage(StrictTransportTable(limit: 10)))
    hosts.preload("a.test")
    let result = hosts.upgrade(url, try #require(Origin(url: url)))
    #expect(result?.url == upgraded)
    #expect(result?.origin == upgraded.flatMap { Origin(url: $0) })
  }

  @Test("Only the first field of a secure response counts") func secureResponses() throws {
    let hosts = StrictTransportSecurity(storage: MemoryStorage(StrictTransportTable(limit: 10)))
    func head(_ values: String...) -> ResponseHead {
      ResponseHead(
        status: 200, fields: values.map { HTTPHeader(name: "strict-transport-security", value: $0) })
    }
    func note(_ head: ResponseHead, _ url: String) throws {
      hosts.note(head, of: try #require(Origin(url: url)))
    }
    try note(head("max-age=100"), "http://a.test/")
    try note(head("max-age=100"), "https://127.0.0.1/")
    try note(head("max-age=100"), "https://[::1]/")
    try note(head("broken", "max-age=100"), "https://b.test/")
    try note(head(), "https://c.test/")
    #expect(hosts.hosts.isEmpty)
    try note(head("max-age=100", "max-age=0"), "https://d.test:8443/")
    #expect(hosts.hosts == ["d.test"])
    #expect(hosts.protects("D.test."))
    hosts.forget("d.test")
    #expect(!hosts.protects("d.test"))
    #expect(!hosts.preload("10.0.0.1"))
  }
}

/// A table in memory, at the beginning of 1970.
final class MemoryStorage<Table: HostPolicyTable>: HostPolicyStorage {
  private let table: Mutex<Table>
  let error: HostStorageError? = nil

  init(_ table: Table) { self.table = Mutex(table) }

  func read<Value: Sendable>(_ body: (Table, Int64) -> Value) -> Value { table.withLock { body($0, 0) } }
  func change(_ body: (inout Table, Int64) -> Bool) { _ = table.withLock { body(&$0, 0) } }
  func save() throws(HostStorageError) {}
}
