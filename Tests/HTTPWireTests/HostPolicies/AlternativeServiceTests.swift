import HTTPWire
import Testing

@Suite("Alt-Svc")
struct AlternativeServiceTests {
  private typealias Offer = AlternativeField.Offer

  private func offer(
    _ host: String?, _ port: Int, _ maxAge: Int64 = 86_400, persists: Bool = false
  ) -> AlternativeField.Offer {
    var field = AlternativeField(#"h2=":1""#)
    guard case .services(let offers) = field, var offer = offers.first else {
      preconditionFailure("h2 is known")
    }
    field = nil
    (offer.host, offer.port, offer.maxAge, offer.persists) = (host, port, maxAge, persists)
    return offer
  }

  @Test("Valid fields are parsed") func validFields() {
    let table: [(String, AlternativeField)] = [
      ("clear", .clear), (" clear ", .clear), (#"h2=":443""#, .services([offer(nil, 443)])),
      (#"h2="alt.test:8443"; ma=60; persist=1"#, .services([offer("alt.test", 8443, 60, persists: true)])),
      (#"h2="ALT.test:443";ma="60""#, .services([offer("alt.test", 443, 60)])),
      (#"h3=":443"; ma=60, h2=":444""#, .services([offer(nil, 444)])),
      (#"h3=":443", h3-29=":443""#, .services([])),
      (#"h2c=":80", http%2F1.1=":443""#, .services([])), (#"h2="[::1]:443""#, .services([offer("::1", 443)])),
      (#"h2=":1"; persist=2; v="46,43""#, .services([offer(nil, 1)])),
      (#"h2=":1",,h2=":2" ,"#, .services([offer(nil, 1), offer(nil, 2)])),
      (#"h2=":1"; ma=99999999999999999999"#, .services([offer(nil, 1, .max)])),
    ]
    for (value, field) in table { #expect(AlternativeField(value) == field, "\(value)") }
  }

  @Test(
    "Invalid fields are ignored",
    arguments: [
      "", ",", "CLEAR", "clear, h2=\":1\"", "h2", "h2=", "h2=:443", "h2=\"443\"", "h2=\":\"", "h2=\":0\"",
      "h2=\":70000\"", "h2=\":+443\"", "h2=\":-1\"", "h2=\"a b:1\"", "h2=\"u@a:1\"", "h2=\":1\"; ma",
      "h2=\":1\"; ma=x", "h2=\":1\" ma=1",
      "h2=\":1", "h2=\":1\"; ma=\"1", "h3=\"x\"", "h2=\":1\";",
    ])
  func brokenFields(value: String) {
    #expect(AlternativeField(value) == nil)
  }

  @Test("A service whose host is too long is not noted") func longHost() {
    #expect(AlternativeField("h2=\"\(String(repeating: "a", count: 255)):443\"") != nil)
    #expect(AlternativeField("h2=\"\(String(repeating: "a", count: 256)):443\"") == nil)
  }

  private let origin = Origin(scheme: "https", host: "a.test", port: 8443)
  private let service = AlternativeService(host: "alt.test", port: 9443)

  private func table(_ value: String, age: Int64 = 0, limit: Int = 10) throws -> AlternativeTable {
    var table = AlternativeTable(limit: limit)
    _ = table.note(try #require(AlternativeField(value)), of: origin, age: age, now: 100)
    return table
  }

  @Test("A service is chosen until it expires") func expiry() throws {
    let table = try table(#"h2="alt.test:9443"; ma=60"#)
    #expect(table.choice(for: origin, now: 159) == service)
    #expect(table.choice(for: origin, now: 160) == nil)
    for other in [
      Origin(scheme: "https", host: "a.test", port: 443), Origin(scheme: "https", host: "b.test", port: 8443),
    ] {
      #expect(table.choice(for: other, now: 100) == nil)
    }
    let old = try self.table(#"h2="alt.test:9443"; ma=60"#, age: 50)
    #expect(old.choice(for: origin, now: 109) == service)
    #expect(old.choice(for: origin, now: 110) == nil)
    #expect(try self.table(#"h2="alt.test:9443"; ma=60"#, age: 60).isEmpty)
  }

  @Test(
    "Later fields replace earlier ones",
    arguments: ["clear", #"h3=":443""#, #"h2=":8443""#, #"h2=":22""#])
  func replacement(value: String) throws {
    var table = try table(#"h2="alt.test:9443"; persist=1"#)
    let answer1 = table.note(try #require(AlternativeField(value)), of: origin, now: 100)
    #expect(answer1)
    #expect(table.isEmpty)
  }

  @Test(
    "Permitted ports of a service",
    arguments: [
      (443, 443, true), (443, 8443, false), (443, 22, false), (8443, 443, true), (8443, 9443, true),
      (8443, 25, false),
      (444, 444, true), (444, 445, false),
    ])
  func ports(from: Int, to: Int, isFit: Bool) {
    #expect(
      AlternativeService(host: "b", port: to).isFit(for: Origin(scheme: "https", host: "a", port: from))
        == isFit)
  }

  @Test("A failed service is not used for a while") func failure() throws {
    var table = try table(#"h2="alt.test:9443", h2="other.test:9443""#)
    table.failed(service, of: origin, now: 200)
    #expect(table.choice(for: origin, now: 200) == AlternativeService(host: "other.test", port: 9443))
    #expect(table.choice(for: origin, now: 200 + AlternativeTable.failureInterval) == service)
    // Announcing it again does not end that time.
    _ = table.note(try #require(AlternativeField(#"h2="alt.test:9443""#)), of: origin, now: 300)
    #expect(table.choice(for: origin, now: 300) == nil)
    let answer2 = table.forget(host: "a.test")
    #expect(answer2)
    #expect(table.isEmpty)
  }

  @Test("A failed service is used again after the clock was set back") func clockSetBack() throws {
    var table = try table(#"h2="alt.test:9443""#)
    table.failed(service, of: origin, now: 80_000)
    #expect(table.choice(for: origin, now: 79_990) == nil, "a thread may have read the clock earlier")
    #expect(table.choice(for: origin, now: 80_000 - 3_600) == service)
    #expect(table.choice(for: origin, now: 80_000 + AlternativeTable.failureInterval - 1) == nil)
    #expect(table.choice(for: origin, now: 80_000 + AlternativeTable.failureInterval) == service)
  }

  @Test("The number of services is limited") func limit() throws {
    let many = (0..<20).map { "h2=\":\(9000 + $0)\"" }.joined(separator: ",")
    var table = try table(many, limit: 2)
    for port in 9000..<(9000 + AlternativeTable.mostServices) {
      #expect(table.choice(for: origin, now: 100)?.port == port)
      table.failed(AlternativeService(host: "a.test", port: port), of: origin, now: 100)
    }
    #expect(table.choice(for: origin, now: 100) == nil)
    for (index, host) in ["b", "c"].enumerated() {
      let field = try #require(AlternativeField("h2=\":9000\"; ma=\(10 + index)"))
      _ = table.note(field, of: Origin(scheme: "https", host: host, port: 8443), now: 100)
    }
    let left = ["a.test", "b", "c"].filter {
      table.choice(for: Origin(scheme: "https", host: $0, port: 8443), now: 800) != nil
        || table.choice(for: Origin(scheme: "https", host: $0, port: 8443), now: 100) != nil
    }
    #expect(left == ["a.test", "c"], "the one that expires first has gone")
  }

  @Test("Of many origins, an eighth is evicted at a time: those that expire first") func eviction() throws {
    var table = AlternativeTable(limit: 800)
    func origin(_ number: Int) -> Origin { Origin(scheme: "https", host: "h\(number).test", port: 8443) }
    func note(_ numbers: Range<Int>) throws {
      for number in numbers {
        let field = try #require(AlternativeField("h2=\":9000\"; ma=\(1_000 + number)"))
        _ = table.note(field, of: origin(number), now: 100)
      }
    }
    func kept(below count: Int) -> [Int] {
      (0..<count).filter { table.choice(for: origin($0), now: 100) != nil }
    }
    try note(0..<800)
    #expect(kept(below: 800).count == 800 && table.steps == 0)
    try note(800..<801)
    #expect(kept(below: 801) == Array(101...800))
    try note(801..<2_000)
    #expect(kept(below: 2_000) == Array(2_000 - kept(below: 2_000).count..<2_000))
    #expect(table.steps <= 12_000, "\(table.steps) steps for 1,200 origins")
  }

  @Test("A repeated field is written when its lifetime has changed noticeably") func repeatedFields() throws {
    var table = AlternativeTable(limit: 10)
    let field = try #require(AlternativeField(#"h2="alt.test:9443"; persist=1; ma=1000"#))
    let shorter = try #require(AlternativeField(#"h2="alt.test:9443"; persist=1; ma=10"#))
    let moments: [(now: Int64, isWritten: Bool)] = [
      (100, true), (101, false), (110, false), (111, true), (112, false), (122, true), (5_000, true),
    ]
    for (now, isWritten) in moments {
      let answer = table.note(field, of: origin, now: now)
      #expect(answer == isWritten, "at \(now)")
    }
    let answers = (0..<2).map { _ in table.note(shorter, of: origin, now: 5_000) }
    #expect(answers == [true, false], "it expires earlier")
    var copy = AlternativeTable(limit: 10)
    try copy.read(text: table.text(now: 5_000))
    let isNews = copy.note(shorter, of: origin, now: 5_000)
    #expect(!isNews, "it is in the file")
  }

  @Test("Services beyond the limit do not count as a change") func manyPersistentServices() throws {
    let many = (0...AlternativeTable.mostServices).map { "h2=\":\(9000 + $0)\"; persist=1" }
    let field = try #require(AlternativeField(many.joined(separator: ",")))
    var table = AlternativeTable(limit: 2)
    let answers = (0..<2).map { _ in table.note(field, of: origin, now: 100) }
    #expect(answers == [true, false])
  }

  @Test("Only persistent services are written") func persistentServices() throws {
    let table = try table(#"h2="[::1]:9443"; persist=1; ma=60, h2="b.test:9443""#)
    let text = table.text(now: 100)
    #expect(text == "# alternative-services 1\na.test 8443 ::1 9443 160\n")
    var copy = AlternativeTable(limit: 10)
    try copy.read(text: text)
    #expect(copy.choice(for: origin, now: 100) == AlternativeService(host: "::1", port: 9443))
    #expect(copy.text(now: 160) == "# alternative-services 1\n")
  }

  @Test(
    "Broken files",
    arguments: [
      "a.test 8443 b.test 9443", "a.test 8443 b.test 9443 x", "a.test 0 b.test 9443 5",
      "a.test 8443 b.test 22 5",
      "a.test +8443 b.test 9443 5", "a.test 8443 b.test +9443 5", "a.test 8443 b.test 9443 +5",
      "a.test 8443 b.test 9443 -0", "a.test 8443 b.test 9443 9223372036854775808", "a/b 8443 b.test 9443 5",
      "a.test 8443 b:c 9443 5", "A.test 8443 b.test 9443 5",
    ])
  func brokenFiles(line: String) {
    var table = AlternativeTable(limit: 10)
    #expect(throws: HostStorageError.brokenLine(2)) {
      try table.read(text: "# alternative-services 1\n\(line)\n")
    }
    #expect(table.isEmpty)
  }

  @Test("The age of a response counts", arguments: [("50", true), ("70", false), ("70, 0", false)])
  func ageOfResponse(age: String, isUsed: Bool) {
    let services = AlternativeServices(storage: MemoryStorage(AlternativeTable(limit: 10)))
    let fields = [
      HTTPHeader(name: "Alt-Svc", value: #"h2="alt.test:9443"; ma=60"#), HTTPHeader(name: "Age", value: age),
    ]
    services.note(ResponseHead(status: 200, fields: fields), of: origin)
    #expect((services.choice(for: origin) == service) == isUsed)
  }

  @Test("Only secure responses are read") func secureResponses() throws {
    let services = AlternativeServices(storage: MemoryStorage(AlternativeTable(limit: 10)))
    let head = ResponseHead(
      status: 200,
      fields: [
        HTTPHeader(name: "Alt-Svc", value: #"h3=":443""#),
        HTTPHeader(name: "Alt-Svc", value: #"h2="alt.test:9443""#),
      ])
    services.note(head, of: Origin(scheme: "http", host: "a.test", port: 8443))
    #expect(services.choice(for: Origin(scheme: "http", host: "a.test", port: 8443)) == nil)
    services.note(ResponseHead(status: 421, fields: head.block.fields), of: origin)
    #expect(services.choice(for: origin) == nil, "a misdirected request (RFC 7838 §6)")
    services.note(head, of: origin)
    #expect(services.choice(for: origin) == service)
    #expect(service.text == "alt.test:9443")
    #expect(AlternativeService(host: "::1", port: 443).text == "[::1]")
    services.forget("A.test")
    #expect(services.choice(for: origin) == nil)
  }
}
