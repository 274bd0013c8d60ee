import HTTPWire
import Randomness
import Testing

@Suite("Fields of a response in HTTP/2") struct ResponseFieldsTests {
  typealias Response = ResponseFields

  enum Event {
    case field(String, String)
    case end(stream: Bool = false)
    case data(Int)
    case streamEnd
  }

  enum Result: Equatable {
    case keep
    case deliver(Int, [HTTPHeader])
    case inform(Int, [HTTPHeader])
    case trailers([HTTPHeader])
    case refuseHead
    case refuse(HeadViolation)

    init(_ action: Response.Action) {
      switch action {
      case .keep: self = .keep
      case .deliver(let head): self = .deliver(head.status, head.block.fields)
      case .inform(let head): self = .inform(head.status, head.block.fields)
      case .trailers(let block): self = .trailers(block.fields)
      case .refuseHead: self = .refuseHead
      case .refuse(let violation): self = .refuse(violation)
      }
    }

    init(_ violation: HeadViolation?) { self = violation.map { .refuse($0) } ?? .keep }
  }

  static func take(_ response: inout Response, _ event: Event) -> Result {
    switch event {
    case .field(let name, let value):
      Array(name.utf8).withUnsafeBytes { name in
        Array(value.utf8).withUnsafeBytes { Result(response.received(name: name, value: $0)) }
      }
    case .end(let endsStream): Result(response.sectionEnded(endsStream: endsStream))
    case .data(let count): Result(response.dataReceived(count))
    case .streamEnd: Result(response.streamEnded())
    }
  }

  /// Returns the results other than `keep`, up to the first violation.
  static func results(_ events: [Event], to method: String = "GET", limit: Int = 262_144)
    -> [Result]
  {
    var response = Response(to: method, headerSizeLimit: limit)
    var results: [Result] = []
    for event in events {
      let result = take(&response, event)
      if result != .keep { results.append(result) }
      if case .refuse = result { break }
      if result == .refuseHead { break }
    }
    return results
  }

  static let status = Event.field(":status", "200")

  @Test("A head, a body and trailers") func whole() {
    let events: [Event] = [
      .field(":status", "103"), .field("link", "</a>"), .end(), Self.status, .field("a", "1"),
      .field("content-length", "5"), .field("a", "2"), .end(), .data(3), .data(0), .data(2), .field("t", "x"),
      .end(stream: true),
    ]
    #expect(
      Self.results(events) == [
        .inform(103, [.init(name: "link", value: "</a>")]),
        .deliver(
          200,
          [
            .init(name: "a", value: "1"), .init(name: "content-length", value: "5"),
            .init(name: "a", value: "2"),
          ]),
        .trailers([.init(name: "t", value: "x")]),
      ])
  }

  @Test("A delivered head is one of HTTP/2 with its marks") func head() throws {
    var response = Response(to: "GET")
    for event in [
      Event.field(":status", "100"), .field("set-cookie", "a=1"), .end(), Self.status, .field("etag", "x"),
    ] {
      _ = Self.take(&response, event)
    }
    guard case .deliver(let head) = response.sectionEnded(endsStream: true) else {
      Issue.record("the head is not delivered")
      return
    }
    #expect(head.version == .http2)
    #expect(head.block.marks == .reusable, "the fields of the informational head are not its own")
    #expect(String(decoding: head.block.bytes, as: UTF8.self) == "etag: x\r\n")
  }

  @Test("White space around a value is not part of it") func whiteSpace() {
    let events: [Event] = [
      Self.status, .field("a", " \tx y\t "), .field("b", "  "), .field("content-length", " 0 "),
      .end(stream: true),
    ]
    #expect(
      Self.results(events) == [
        .deliver(
          200,
          [
            .init(name: "a", value: "x y"), .init(name: "b", value: ""),
            .init(name: "content-length", value: "0"),
          ])
      ])
  }

  @Test("The status comes first, once, and has three digits") func statuses() {
    let pseudo = HeadViolation.pseudoField(":status")
    let cases: [(String, [Event], HeadViolation)] = [
      ("none", [.end()], pseudo), ("none before a field", [.field("a", "1")], pseudo),
      ("twice", [Self.status, Self.status], pseudo),
      ("after a field", [Self.status, .field("a", "1"), .field(":status", "200")], pseudo),
      ("another pseudo-header field", [Self.status, .field(":path", "/")], .pseudoField(":path")),
      ("another one first", [.field(":method", "GET")], .pseudoField(":method")),
      ("a colon alone", [.field(":", "")], .pseudoField(":")),
      ("in capitals", [.field(":Status", "200")], .pseudoField(":Status")),
      ("in trailers", [Self.status, .end(), .field(":status", "200")], pseudo),
      (
        "in trailers after a field", [Self.status, .end(), .field("a", "1"), .field(":status", "200")],
        pseudo
      ),
      ("none in the head after an informational one", [.field(":status", "100"), .end(), .end()], pseudo),
      ("101", [.field(":status", "101"), .end()], .unrequestedUpgrade),
      (
        "an informational head that ends the stream", [.field(":status", "103"), .end(stream: true)],
        .frameOrder
      ),
    ]
    for (name, events, violation) in cases {
      #expect(Self.results(events).last == .refuse(violation), "\(name)")
    }
    for value in ["", "20", "2000", "2x0", "099", "000", " 200", "200 ", "+20", "-20", "２００"] {
      #expect(Self.results([.field(":status", value)]) == [.refuse(pseudo)], "\(value)")
    }
    for status in [199, 200, 204, 599, 999] {
      let results = Self.results([.field(":status", "\(status)"), .end()])
      #expect(results == [status < 200 ? .inform(status, []) : .deliver(status, [])], "\(status)")
    }
  }

  @Test("Names are tokens in lower case") func names() {
    for name in ["", "A", "aB", "a b", "a:b", "é", "a\0", "a\r\nb", "a "] {
      #expect(Self.results([Self.status, .field(name, "1")]) == [.refuse(.fieldName(name))], "\(name)")
      let trailer = Self.results([Self.status, .end(), .field(name, "1")])
      #expect(trailer.last == .refuse(.fieldName(name)), "\(name)")
    }
    #expect(Self.results([Self.status, .field("a!#$%&'*+-.^_`|~9", "1")]).isEmpty)
  }

  @Test("Values have no NUL, CR and LF") func values() {
    for byte in [0x00, 0x0A, 0x0D] as [UInt8] {
      for position in 0..<20 {
        var value = [UInt8](repeating: 0x61, count: 20)
        value[position] = byte
        let text = String(decoding: value, as: UTF8.self)
        let violation = HeadViolation.fieldValue(field: "x", character: byte)
        #expect(Self.results([Self.status, .field("x", text)]) == [.refuse(violation)])
        #expect(Self.results([Self.status, .end(), .field("x", text)]).last == .refuse(violation))
      }
    }
    #expect(Self.results([Self.status, .field("x", "a\tb\u{1}\u{7F}é")]).isEmpty)
  }

  @Test("Fields of connections of HTTP/1.1 are refused") func connectionFields() {
    for name in ["connection", "keep-alive", "proxy-connection", "upgrade", "te", "transfer-encoding"] {
      #expect(Self.results([Self.status, .field(name, "close")]) == [.refuse(.connectionField(name))])
      #expect(Self.results([Self.status, .end(), .field(name, "x")]).last == .refuse(.connectionField(name)))
    }
    #expect(Self.results([Self.status, .field("te", "trailers"), .field("trailer", "x")]).isEmpty)
  }

  @Test("Name, value and 32 bytes of each field count, in all sections") func size() {
    let small: [Event] = [
      .field(":status", "103"), .end(), Self.status, .field("ab", "cd"), .end(), .field("t", ""),
      .end(stream: true),
    ]
    let size = 2 * (7 + 3 + 32) + (4 + 32) + (1 + 32)
    #expect(Self.results(small, limit: size).count == 3)
    #expect(Self.results(small, limit: size - 1).last == .refuseHead)
    #expect(Self.results([Self.status], limit: 41) == [.refuseHead])
    let endless = [Event](repeating: .field("a", ""), count: 10_000)
    #expect(Self.results([Self.status] + endless) == [.refuseHead])
    let heads = (0..<10_000).flatMap { _ in [Event.field(":status", "103"), .end()] }
    #expect(Self.results(heads).last == .refuseHead)
  }

  @Test("The body is as long as its length") func bodyLength() {
    let length: [Event] = [Self.status, .field("content-length", "5"), .end()]
    for end in [[Event.streamEnd], [.field("t", ""), .end(stream: true)]] {
      for count in 0..<5 {
        #expect(Self.results(length + [.data(count)] + end).last == .refuse(.bodyLength), "\(count)")
      }
      #expect(Self.results(length + [.data(2), .data(3)] + end).last != .refuse(.bodyLength))
    }
    #expect(Self.results(length + [.data(6)]).last == .refuse(.bodyLength))
    #expect(Self.results(length + [.data(5), .data(1)]).last == .refuse(.bodyLength))
    #expect(
      Self.results([Self.status, .field("content-length", "5"), .end(stream: true)]) == [.refuse(.bodyLength)]
    )
    #expect(Self.results([Self.status, .end(), .data(1_000), .streamEnd]).count == 1)
    #expect(Self.results([Self.status, .field("content-length", "x")]) == [.refuse(.contentLength)])
    let two: [Event] = [Self.status, .field("content-length", "5"), .field("content-length", "6")]
    #expect(Self.results(two) == [.refuse(.contradictingContentLengths)])
    let early: [Event] = [.field(":status", "103"), .field("content-length", "9"), .end()]
    let late = Self.results(early + length + [.data(5), .streamEnd])
    #expect(
      late.count == 2 && late.last != .refuse(.bodyLength), "lengths of informational heads do not count")
    let trailer: [Event] = [.data(5), .field("content-length", "9"), .end(stream: true)]
    #expect(Self.results(length + trailer).count == 2, "nor do lengths in trailers")
  }

  @Test("Responses without a body have no DATA, whatever their length says") func noBody() {
    let cases: [(String, String, String)] = [
      ("HEAD", "HEAD", "200"), ("204", "GET", "204"), ("304", "GET", "304"),
    ]
    for (name, method, status) in cases {
      let head: [Event] = [.field(":status", status), .field("content-length", "5")]
      #expect(Self.results(head + [.end(stream: true)], to: method).count == 1, "\(name)")
      #expect(Self.results(head + [.end(), .data(0), .streamEnd], to: method).count == 1, "\(name)")
      #expect(Self.results(head + [.end(), .data(1)], to: method).last == .refuse(.bodyLength), "\(name)")
    }
    let tunnel: [Event] = [Self.status, .field("content-length", "5"), .end(), .data(1), .streamEnd]
    #expect(Self.results(tunnel, to: "CONNECT").count == 1, "a tunnel has no length")
    let refused: [Event] = [
      .field(":status", "403"), .field("content-length", "5"), .end(), .data(1), .streamEnd,
    ]
    #expect(Self.results(refused, to: "CONNECT").last == .refuse(.bodyLength))
    var response = Response(to: "HEAD")
    for event in [Self.status, .field("content-length", "5"), .end()] { _ = Self.take(&response, event) }
    #expect(response.contentLength == 5)
  }

  @Test("Frames come in order") func order() {
    let end: [Event] = [Self.status, .end(stream: true)]
    let cases: [(String, [Event])] = [
      ("DATA before the head", [.data(1)]), ("an end before the head", [.streamEnd]),
      ("DATA between heads", [.field(":status", "100"), .end(), .data(0)]),
      ("DATA after the end", end + [.data(0)]),
      ("an end after the end", end + [.streamEnd]), ("a field after the end", end + [.field("a", "1")]),
      ("a section after the end", end + [.end(stream: true)]),
      ("trailers without an end", [Self.status, .end(), .field("a", "1"), .end()]),
      ("DATA after trailers", [Self.status, .end(), .end(stream: true), .data(1)]),
      ("a section after DATA has ended", [Self.status, .end(), .streamEnd, .end(stream: true)]),
    ]
    for (name, events) in cases { #expect(Self.results(events).last == .refuse(.frameOrder), "\(name)") }
  }

  @Test("Differing locations of a redirect are refused") func locations() {
    func events(_ status: String, _ second: String) -> [Event] {
      [.field(":status", status), .field("location", "/a"), .field("location", second), .end()]
    }
    #expect(Self.results(events("302", "/b")) == [.refuse(.contradictingLocations)])
    #expect(Self.results(events("302", "/a")).first != .refuse(.contradictingLocations))
    #expect(Self.results(events("201", "/b")).first != .refuse(.contradictingLocations))
  }

  @Test("Violations have messages") func messages() {
    let violations: [HeadViolation] = [
      .pseudoField(":a\n"), .connectionField("te"), .frameOrder, .bodyLength,
    ]
    #expect(Set(violations.map(\.message)).count == 4)
    for violation in violations {
      #expect(violation.message.contains("RFC 9113") && !violation.message.contains("\n"))
    }
  }

  @Test("Random responses deliver one head, and one end", arguments: 0..<4 as Range<UInt64>)
  func walks(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let events: [Event] = [
      Self.status, .field(":status", "103"), .field(":status", "304"), .field("content-length", "3"),
      .field("a", "b"),
      .field("A", "b"), .end(), .end(stream: true), .data(1), .data(2), .streamEnd, .field("te", "x"),
    ]
    for walk in 0..<5_000 {
      var response = Response(
        to: ["GET", "HEAD", "CONNECT"].randomElement(using: &random) ?? "GET", headerSizeLimit: 300)
      var heads = 0
      var trailers = 0
      for _ in 0..<20 {
        let result = Self.take(&response, events.randomElement(using: &random) ?? .streamEnd)
        switch result {
        case .deliver: heads += 1
        case .trailers:
          trailers += 1
          #expect(heads == 1, "seed \(seed), walk \(walk)")
        case .keep, .inform, .refuseHead, .refuse: break
        }
        if case .inform = result { #expect(heads == 0, "seed \(seed), walk \(walk)") }
      }
      #expect(heads <= 1 && trailers <= 1, "seed \(seed), walk \(walk)")
      #expect(response.bodyCount == 0 || heads == 1, "seed \(seed), walk \(walk)")
    }
  }
}
