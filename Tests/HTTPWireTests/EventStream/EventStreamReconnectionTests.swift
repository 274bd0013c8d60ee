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
    var reconnection = EventStreamReconnection(url: "https://a.example/", policy: policy)
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
    var reconnection = EventStreamReconnection(url: "https://a.example/")
    #expect(reconnection.connectionEnded(nil, random: 0) == .seconds(3))
    #expect(reconnection.connectionEnded(try Self.reader("retry: 500\n"), random: 0) == .milliseconds(500))
    #expect(reconnection.connectionEnded(try Self.reader("data\n"), random: 0) == .milliseconds(500))
    #expect(reconnection.connectionEnded(nil, random: 0) == .milliseconds(500))
    #expect(
      reconnection.connectionEnded(try Self.reader("retry: 99999999999999\n"), random: 1) == .seconds(300))
  }

  @Test("A delay of zero widens with each failure") func zeroDelay() throws {
    var reconnection = EventStreamReconnection(url: "https://a.example/")
    let delays = try (0..<3).map { _ in
      reconnection.connectionEnded(try Self.reader("retry: 0\n"), random: 1)
    }
    #expect(delays == [.milliseconds(100), .milliseconds(200), .milliseconds(400)])
  }

  @Test("The number of failures has no limit") func manyFailures() {
    var reconnection = EventStreamReconnection(url: "https://a.example/")
    for _ in 0..<10_000 { _ = reconnection.connectionEnded(nil, random: 1) }
    #expect(reconnection.connectionEnded(nil, random: 1) == .seconds(300))
  }

  @Test("The last event ID is repeated") func lastEventID() throws {
    var reconnection = EventStreamReconnection(url: "https://a.example/")
    let fields = [
      HTTPHeader.accept("text/event-stream"), HTTPHeader(name: "Cache-Control", value: "no-store"),
    ]
    #expect(reconnection.fields == fields)
    _ = reconnection.connectionEnded(try Self.reader("id: é1\ndata\n\nid: 2\n"), random: 0)
    #expect(reconnection.fields == fields + [HTTPHeader(name: "Last-Event-ID", value: "é1")])
    _ = reconnection.connectionEnded(nil, random: 0)
    #expect(reconnection.lastEventID == "é1")
    // A control character cannot be sent.
    _ = reconnection.connectionEnded(try Self.reader("id: 1\u{1}\n\n"), random: 0)
    #expect(reconnection.lastEventID == "1\u{1}" && reconnection.fields == fields)
    _ = reconnection.connectionEnded(try Self.reader("id\n\n"), random: 0)
    #expect(reconnection.lastEventID == "")
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
    #expect(EventStreamReconnection(url: "https://a.example/").decision(about: head) == decision)
    if case .fail(let error) = decision { #expect(error.message.hasSuffix(".")) }
  }

  @Test("Permanent redirects are kept up to the first temporary one") func redirects() {
    var reconnection = EventStreamReconnection(url: "https://a.example/")
    reconnection.redirected(to: "https://b.example/", status: 301)
    reconnection.redirected(to: "https://c.example/", status: 308)
    #expect(reconnection.url == "https://c.example/")
    reconnection.redirected(to: "https://d.example/", status: 307)
    reconnection.redirected(to: "https://e.example/", status: 301)
    #expect(reconnection.url == "https://c.example/")
    _ = reconnection.connectionEnded(nil, random: 0)
    #expect(reconnection.url == "https://c.example/")
    reconnection.redirected(to: "https://f.example/", status: 301)
    #expect(reconnection.url == "https://f.example/")
  }
}
