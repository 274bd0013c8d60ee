import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@testable import Alamofire

/// The connections of an event source, without a transport.
@Suite("Connections of event sources") struct EventReadingTests {
  private func source(
    lastEventID: String = "", reconnects: Bool? = nil, most: Int? = nil,
    _ change: (inout EventStreamReader.Limits) -> Void = { _ in }
  ) -> EventSource {
    var limits = EventStreamReader.Limits()
    change(&limits)
    return EventSource(
      EventSource.Settings(
        lastEventID: lastEventID, policy: EventStreamReconnection.Policy(), limits: limits,
        reconnects: reconnects, maximumFailureCount: most))
  }

  private func head(_ status: Int = 200, type: String? = "text/event-stream") -> ResponseHead {
    ResponseHead(
      status: status, fields: type.map { [HTTPHeader(name: "Content-Type", value: $0)] } ?? [])
  }

  private func read(_ text: String, by source: EventSource) -> (data: [String], failure: TransportFailure?) {
    let (events, failure) = Data(text.utf8).withUnsafeBytes { source.read($0) }
    return (events.map { "\($0.id):\($0.data)" }, failure)
  }

  private func lastEventID(_ source: EventSource, _ method: String = "GET") throws -> String? {
    let request = try URLRequest(url: "http://a.test/", method: HTTPMethod(rawValue: method))
    return source.fields(for: request).first { $0.name == "Last-Event-ID" }?.value
  }

  @Test("The ID of the last event is kept from one connection to the next") func identifiers() throws {
    let source = source(lastEventID: "5")
    #expect(source.lastEventID == "5" && !source.isReadingEvents)
    #expect(try lastEventID(source) == "5")
    source.begin(head())
    #expect(read("data: a\n\nid: 7\ndata: b\n\nid: 8\n", by: source).data == ["5:a", "7:b"])
    #expect(source.lastEventID == "7" && source.isReadingEvents)
    #expect(source.delay(isClean: true, random: 0.5) != nil && !source.isReadingEvents)
    #expect(source.lastEventID == "7")
    #expect(try lastEventID(source) == "7")
    source.begin(head())
    #expect(read("data: c\n\n", by: source).data == ["7:c"])
    #expect(try lastEventID(source) == "7", "a retrier has asked for this connection")
    #expect(!source.isReadingEvents && read("data: d\n\n", by: source).data == [])
  }

  @Test(
    "Another connection follows for safe methods, unless the settings decide", arguments: [nil, true, false])
  func methods(setting: Bool?) throws {
    for (method, isSafe) in [("GET", true), ("HEAD", true), ("POST", false)] {
      let source = source(reconnects: setting)
      #expect(!source.reconnects)
      _ = try lastEventID(source, method)
      #expect(source.reconnects == setting ?? isSafe, "\(method)")
    }
  }

  @Test("Events before a line that is too long are passed on with the failure") func limits() {
    let source = source { $0.line = 10 }
    source.begin(head())
    let result = read("data: a\n\ndata: 0123456789\n\n", by: source)
    #expect(result.data == [":a"] && result.failure?.kind == .dataLengthExceedsMaximum)
  }

  @Test("Connections count that a retrier has asked for, until an event arrives or another run begins")
  func askedConnections() throws {
    let source = source(most: 2)
    for _ in 0..<3 { _ = try lastEventID(source) }
    #expect(source.delay(isClean: false, random: 0) == nil, "the third connection is the last one")
    source.beginAgain()
    _ = try lastEventID(source)
    #expect(source.delay(isClean: false, random: 0) != nil)
    _ = try lastEventID(source)
    source.begin(head())
    #expect(read("data: a\n\n", by: source).data == [":a"])
    for _ in 0..<2 { _ = try lastEventID(source) }
    #expect(source.delay(isClean: false, random: 0) != nil, "two connections without an event")
    _ = try lastEventID(source)
    #expect(source.delay(isClean: false, random: 0) == nil)
  }

  @Test("Another run begins with the shortest delay") func delayOfNextRun() {
    let source = source()
    for expected in [6, 9] { #expect(source.delay(isClean: false, random: 1) == .seconds(expected)) }
    source.beginAgain()
    #expect(source.delay(isClean: false, random: 1) == .seconds(6))
  }

  @Test("Failures in a row are counted, and delays grow with them, until an event arrives") func failures() {
    let source = source(most: 3)
    func delays(_ count: Int, isClean: Bool) -> [Duration?] {
      (0..<count).map { _ in source.delay(isClean: isClean, random: 1) }
    }
    #expect(delays(4, isClean: false) == [.seconds(6), .seconds(9), .seconds(15), nil])
    source.begin(head())
    #expect(read("data: a\n\n", by: source).data == [":a"])
    // The connection with the event does not count.
    #expect(delays(5, isClean: false) == [.seconds(6), .seconds(9), .seconds(15), .seconds(27), nil])
    source.begin(head())
    _ = read(": a comment\n\n", by: source)
    #expect(delays(1, isClean: true) == [nil], "a comment is no event")
    source.begin(head())
    _ = read("data: a\n\n", by: source)
    #expect(source.delay(isClean: true, random: 0.5) == .seconds(3))
  }

  private typealias Reason = AFError.ResponseValidationFailureReason

  @Test("A response that is no event stream is refused with the reason, its type and its body")
  func refusals()
    throws
  {
    let accepted = ["text/event-stream"]
    for (head, text) in [
      (head(500), "\(Reason.unacceptableStatusCode(code: 500))"),
      (
        head(type: "text/html"),
        "\(Reason.unacceptableContentType(acceptableContentTypes: accepted, responseContentType: "text/html"))"
      ),
      (head(type: nil), "\(Reason.missingContentType(acceptableContentTypes: accepted))"),
    ] {
      let source = source()
      source.begin(head)
      #expect(!source.isReadingEvents && source.refusedBody == nil)
      #expect(read("data: a\n\n", by: source).data == [])
      let refusal = try #require(source.refusal)
      #expect("\(refusal.reason)" == text && source.refusedBody == Data("data: a\n\n".utf8))
    }
    let form = source()
    form.begin(head(500, type: "application/x-www-form-urlencoded"))
    _ = read("password=s3cret&name=a", by: form)
    let text = try #require(form.refusal?.errorDescription)
    #expect(
      text.contains("name=a") && !text.contains("s3cret"), "the type says where the secrets are: \(text)")
  }

  @Test("A refused body is read up to 64 KiB") func refusedBody() {
    let source = source()
    source.begin(head(500))
    let part = String(repeating: "x", count: 32_768)
    #expect(read(part, by: source).failure == nil && read(part, by: source).failure == nil)
    #expect(source.refusedBody?.count == 65_536)
    #expect(read("y", by: source).failure != nil && source.refusedBody?.count == 65_536)
  }

  @Test("The end of an event stream is a failure if another connection follows") func validation() throws {
    let url = try #require(URL(string: "http://a.test/"))
    func response(_ status: Int) throws -> HTTPURLResponse {
      try #require(HTTPURLResponse(url: url, statusCode: status, httpVersion: nil, headerFields: nil))
    }
    func succeeds(_ source: EventSource, _ status: Int) throws -> Bool {
      if case .success = source.validation(try response(status)) { true } else { false }
    }
    for reconnects in [false, true] {
      let source = source(reconnects: reconnects)
      _ = try lastEventID(source)
      #expect(try !succeeds(source, 200) && succeeds(source, 204))
      source.begin(head())
      #expect(try succeeds(source, 200))
      if case .success = source.validationOfEnd { #expect(!reconnects) } else { #expect(reconnects) }
      source.begin(head(204))
      #expect(try succeeds(source, 204))
      if case .failure = source.validationOfEnd { Issue.record("204 is the end") }
      source.begin(head(500))
      #expect(try !succeeds(source, 500))
    }
  }
}
