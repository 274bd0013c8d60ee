import HTTPWire
import Randomness
import Testing

@Suite("The fields of the last request") struct RequestHeadMemoryTests {
  private static func writer(
    _ fields: [HTTPHeader], _ method: String = "GET", of origin: Origin = origins[0],
    content: RequestHeadWriter.Content = .none, omitsExpect: Bool = false
  ) -> RequestHeadWriter {
    RequestHeadWriter(
      method: method, url: "http://a.example/b", origin: origin, fields: fields, content: content,
      form: .origin, omitsExpect: omitsExpect)
  }

  private static let origins = [("http", "a.example"), ("http", "b.example"), ("https", "a.example")].map {
    Origin(scheme: $0.0, host: $0.1, port: 8080)
  }

  /// Fields that are equal as texts but not as bytes, and fields that concern one request alone.
  private static let sections: [[(String, String)]] = [
    [], [("Accept", "*/*")], [("Accept", "*/*"), ("X-K", "K")], [("Accept", "*/*"), ("X-K", "\u{212A}")],
    [("X-E", "e\u{0323}\u{0307}")], [("X-E", "e\u{0307}\u{0323}")], [("X-E", "\u{1EB9}\u{0307}")],
    [("accept", "*/*")], [("Host", "b.example")], [("Expect", "100-continue")],
    [("Expect", "100-continue"), ("TE", "trailers")],
    [("TE", "trailers")], [("TE", "trailers"), ("Connection", "TE")], [("Connection", "close")],
    [("Upgrade", "x")], [("Content-Length", "5")], [("Transfer-Encoding", "chunked")],
    [("X-Long", String(repeating: "a", count: 5_000))], [("Bad name", "x")], [("X", "a\nb")],
  ]

  /// Returns what was written, or the violation.
  private static func outcome(
    _ writer: RequestHeadWriter, _ memory: inout RequestHeadMemory
  ) -> Result<(RequestHeadWriter.Summary, [UInt8]), RequestHeadViolation> {
    var buffer: [UInt8] = [1, 2, 3]
    do throws(RequestHeadViolation) {
      return .success((try writer.write(into: &buffer, &memory), buffer))
    } catch {
      #expect(buffer == [1, 2, 3])
      return .failure(error)
    }
  }

  @Test("Every head is written as without a memory") func equal() {
    let seed = Seed.current
    var state = seed
    func random(_ count: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(truncatingIfNeeded: state >> 33) % count
    }
    var memory = RequestHeadMemory()
    var fields: [HTTPHeader] = []
    var origin = Self.origins[0]
    for step in 0..<4_000 {
      // The same fields and the same origin come several times in a row.
      if random(6) == 0 { origin = Self.origins[random(3)] }
      if random(3) == 0 {
        fields = Self.sections[random(Self.sections.count)].map { HTTPHeader(name: $0.0, value: $0.1) }
      }
      let contents: [RequestHeadWriter.Content] = [.none, .none, .length(5), .length(0), .chunked]
      let writer = Self.writer(
        fields, ["GET", "POST", "HEAD"][random(3)], of: origin, content: contents[random(5)],
        omitsExpect: random(4) == 0)
      var fresh = RequestHeadMemory()
      switch (Self.outcome(writer, &memory), Self.outcome(writer, &fresh)) {
      case (.success(let one), .success(let other)):
        #expect(one.0 == other.0 && one.1 == other.1, "seed \(seed), step \(step), \(fields)")
      case (.failure(let one), .failure(let other)):
        #expect(one == other, "seed \(seed), step \(step), \(fields)")
      case (let one, let other):
        Issue.record("seed \(seed), step \(step), \(fields): \(one), \(other)")
      }
    }
  }

  @Test("Fields that are equal as texts are not copied for one another") func sameText() throws {
    // The Kelvin sign is canonically equivalent to the letter.
    let (letter, sign) = ([HTTPHeader(name: "X", value: "K")], [HTTPHeader(name: "X", value: "\u{212A}")])
    #expect(letter == sign)
    var memory = RequestHeadMemory()
    var buffer: [UInt8] = []
    for _ in 0..<2 { _ = try Self.writer(letter).write(into: &buffer, &memory) }
    #expect(
      !memory.append(sign, of: Self.origins[0], to: &buffer)
        && memory.append(letter, of: Self.origins[0], to: &buffer))
  }

  @Test("The third head with the same fields is copied") func copied() throws {
    let fields = [HTTPHeader(name: "Accept", value: "*/*")]
    var memory = RequestHeadMemory()
    var buffer: [UInt8] = []
    #expect(!memory.append(fields, of: Self.origins[0], to: &buffer))
    for _ in 0..<2 { _ = try Self.writer(fields).write(into: &buffer, &memory) }
    buffer.removeAll()
    #expect(memory.append(fields, of: Self.origins[0], to: &buffer))
    #expect(String(decoding: buffer, as: UTF8.self) == "Host: a.example:8080\r\nAccept: */*\r\n")
    #expect(!memory.append([], of: Self.origins[0], to: &buffer))
  }
}
