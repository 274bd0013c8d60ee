import HTTPWire
import Testing

@Suite("Reconnection of event streams") struct EventStreamReconnectionTests {
  private static func reader(_ text: String) throws -> EventStreamReader {
    var reader = EventStreamReader()
    try Array(text.utf8).withUnsafeBytes { bytes in
      var position = 0
      while try reader.read(bytes, from: &position) != nil {}
    }
    return reader
  }

  private static func head(_ status: Int, _ contentType: String?) -> ResponseHead {
    ResponseHead(status: status, fields: contentType.map { [.contentType($0)] } ?? [])
  }

  @Test("The range of delays doubles up to the limit, and an event resets it") func backoff() {
    var policy = EventStreamReconnection.Policy()
    policy.initialDelay = .seconds(1)
    policy.maximumDelay = .seconds(10)
    var reconnection = EventStreamReconnection(policy: policy)
    #expect(
      (0..<6).map { _ in reconnection.connectionEnded(nil, random: 1) }
        == [2, 3, 5, 9, 10, 10].map { .seconds($0) })
    #expect(reconnection.connectionEnded(nil, random: 0) == .seconds(1))
    #expect(reconnection.connectionEnded(nil, random: 0.5) == .seconds(5.5))
    reconnection.eventReceived()
    #expect(reconnection.connectionEnded(nil, random: 1) == .seconds(2))
    #expect(reconnection.connectionEnded(nil, random: 7) == .seconds(3))
    #expect(reconnection.connectionEnded(nil, random: -7) == .seconds(1))
  }

  @Test("The delay of the server holds until another one") func serverDelay() throws {
    var reconnection = EventStreamReconnection()
    #expect(reconnection.connectionEnded(nil, random: 0) == .seconds(3))
    #expect(reconnection.connectionEnded(try Self.reader("retry: 500\n"), random: 0) == .milliseconds(500))
    #expect(reconnection.connectionEnded(try Self.reader("data\n"), random: 0) == .milliseconds(500))
    #expect(reconnection.connectionEnded(nil, random: 0) == .milliseconds(500))
    #expect(
      reconnection.connectionEnded(try Self.reader("retry: 99999999999999\n"), random: 1) == .seconds(300))
  }

  @Test("A delay of zero widens with each failure") func zeroDelay() throws {
    var reconnection = EventStreamReconnection()
    let delays = try (0..<3).map { _ in
      reconnection.connectionEnded(try Self.reader("retry: 0\n"), random: 1)
    }
    #expect(delays == [.milliseconds(100), .milliseconds(200), .milliseconds(400)])
  }

  @Test("The number of failures has no limit") func manyFailures() {
    var reconnection = EventStreamReconnection()
    for _ in 0..<10_000 { _ = reconnection.connectionEnded(nil, random: 1) }
    #expect(reconnection.connectionEnded(nil, random: 1) == .seconds(300))
  }

  @Test("The last event ID is repeated") func lastEventID() throws {
    var reconnection = EventStreamReconnection()
    let fields = [
      HTTPHeader.accept("text/event-stream"), HTTPHeader(name: "Cache-Control", value: "no-cache"),
    ]
    #expect(reconnection.fields == fields)
    _ = reconnection.connectionEnded(try Self.reader("id: é1\ndata\n\nid: 2\n"), random: 0)
    #expect(reconnection.fields == fields + [HTTPHeader(name: "Last-Event-ID", value: "é1")])
    _ = reconnection.connectionEnded(nil, random: 0)
    #expect(reconnection.lastEventID == "é1")
    // The caller's last event ID may have a control character, which cannot be sent.
    #expect(EventStreamReconnection(lastEventID: "1\u{1}").fields == fields)
    _ = reconnection.connectionEnded(try Self.reader("id\n\n"), random: 0)
    #expect(reconnection.lastEventID == "")
    #expect(reconnection.hasResetID && reconnection.fields == fields)
  }

  @Test(
    "The caller's ID counts until the server sends one",
    arguments: [
      ("data\n\n", false), ("id\n", false), ("id\n\n", true), ("id: 1\n\nid\n\n", true), ("id: 1\n\n", false),
      ("id: 1\u{1}\n\n", false),
    ])
  func resetID(text: String, isReset: Bool) throws {
    var reconnection = EventStreamReconnection()
    _ = reconnection.connectionEnded(try Self.reader(text), random: 0)
    #expect(reconnection.hasResetID == isReset)
    _ = reconnection.connectionEnded(nil, random: 0)
    #expect(reconnection.hasResetID == isReset)
  }

  @Test(
    "The response decides",
    arguments: [
      (head(200, "text/event-stream"), .read), (head(200, "Text/Event-Stream; charset=utf-8"), .read),
      (head(204, nil), .stop), (head(204, "text/event-stream"), .stop),
      (head(200, nil), .fail(.contentType(nil))), (head(200, "text/html"), .fail(.contentType("text/html"))),
      (head(206, "text/event-stream"), .fail(.status(206))), (head(503, nil), .fail(.status(503))),
      (head(404, "text/event-stream"), .fail(.status(404))),
    ] as [(ResponseHead, EventStreamReconnection.Decision)])
  func response(head: ResponseHead, decision: EventStreamReconnection.Decision) {
    #expect(EventStreamReconnection().decision(about: head) == decision)
    if case .fail(let error) = decision { #expect(error.message.hasSuffix(".")) }
  }

  @Test("After a clean end the delay is the server's, give or take a tenth") func cleanEnd() throws {
    for (random, expected) in [(0, 900), (0.5, 1000), (1, 1100), (9, 1100), (-9, 900)] as [(Double, Int)] {
      var reconnection = EventStreamReconnection()
      reconnection.eventReceived()
      let delay = reconnection.connectionEnded(
        try Self.reader("retry: 1000\n"), isClean: true, random: random)
      #expect(abs(delay / .milliseconds(1) - Double(expected)) < 0.001, "\(random): \(delay)")
    }
    var policy = EventStreamReconnection.Policy()
    policy.maximumDelay = .seconds(1)
    var reconnection = EventStreamReconnection(policy: policy)
    #expect(reconnection.connectionEnded(nil, isClean: true, random: 1) == .seconds(1))
  }

  @Test("Clean ends without an event are failures from the second one on") func emptyConnections() throws {
    var reconnection = EventStreamReconnection()
    let reader = try Self.reader("retry: 1000\n")
    let afterFirst = reconnection.connectionEnded(reader, isClean: true, random: 1)
    #expect(abs(afterFirst / .milliseconds(1) - 1100) < 0.001, "\(afterFirst)")
    #expect(reconnection.connectionEnded(reader, isClean: true, random: 1) == .seconds(3))
    #expect(reconnection.connectionEnded(reader, isClean: true, random: 1) == .seconds(5))
    reconnection.eventReceived()
    let afterEvent = reconnection.connectionEnded(reader, isClean: true, random: 1)
    #expect(abs(afterEvent / .milliseconds(1) - 1100) < 0.001, "\(afterEvent)")
    // A server that asks for no delay is not asked in a loop.
    reconnection.eventReceived()
    #expect(
      reconnection.connectionEnded(try Self.reader("retry: 0\n"), isClean: true, random: 1)
        == .milliseconds(100))
  }

  /// Notes a redirect of a request to `https://a.example/`.
  private static func redirect(
    _ reconnection: inout EventStreamReconnection, to url: String, _ status: Int, method: String = "GET"
  ) {
    let decision = Redirect.decide(
      status: status, location: url,
      request: Redirect.Request(
        url: "https://a.example/", origin: Origin(scheme: "https", host: "a.example", port: nil),
        method: method,
        hasBody: false), redirectCount: 0, limit: 20, protectedHeaders: [])
    guard case .follow(let plan) = decision else {
      Issue.record("\(decision)")
      return
    }
    reconnection.redirected(by: plan, from: method, status: status)
  }

  @Test("Permanent redirects are remembered up to the first temporary one") func redirects() {
    let url = "https://a.example/"
    var reconnection = EventStreamReconnection()
    #expect(reconnection.target(of: url) == url)
    Self.redirect(&reconnection, to: "https://b.example/", 301)
    Self.redirect(&reconnection, to: "https://c.example/", 308)
    Self.redirect(&reconnection, to: "https://d.example/", 307)
    Self.redirect(&reconnection, to: "https://e.example/", 301)
    #expect(reconnection.target(of: url) == "https://c.example/")
    Self.redirect(&reconnection, to: "https://f.example/", 301)
    #expect(reconnection.target(of: url) == "https://f.example/")
    #expect(reconnection.target(of: "https://x.example/") == "https://x.example/")
    #expect(reconnection.target(of: url) == url)
  }

  @Test("A redirect that changes the method or leaves TLS is not remembered") func redirectsToOtherRequests()
  {
    let url = "https://a.example/"
    var reconnection = EventStreamReconnection()
    #expect(reconnection.target(of: url) == url)
    Self.redirect(&reconnection, to: "https://b.example/", 301, method: "POST")
    #expect(reconnection.target(of: url) == url)
    Self.redirect(&reconnection, to: "http://b.example/", 301)
    #expect(reconnection.target(of: url) == url)
    Self.redirect(&reconnection, to: "https://b.example/", 308, method: "POST")
    #expect(reconnection.target(of: url) == "https://b.example/")
  }
}
