import HTTPWire
import Testing

@Suite("Messages of DNS")
struct NameMessageTests {
  private let question: [UInt8] =
    [0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0x61, 4] + Array("test".utf8) + [0, 0, 1, 0, 1]

  private func message(_ records: [[UInt8]], flags: [UInt8] = [0x81, 0x80], count: UInt8? = nil) -> [UInt8] {
    [0, 0] + flags + [0, 1, 0, count ?? UInt8(records.count), 0, 0, 0, 0] + question[12...] + records.joined()
  }

  private func address(_ last: UInt8, seconds: UInt8 = 60, kind: UInt8 = 1, _ name: [UInt8] = [0xC0, 12])
    -> [UInt8]
  {
    name + [0, kind, 0, 1, 0, 0, 0, seconds, 0, 4, 192, 0, 2, last]
  }

  private func ip(_ last: UInt8) throws -> IPAddress {
    try #require(IPAddress(.v4, bytes: [192, 0, 2, last]))
  }

  @Test("A question has its bytes") func questions() {
    #expect(NameMessage.question("A.test.", .v4) == question)
    #expect(NameMessage.question("a.test", .v6)?.suffix(5) == [0, 0, 28, 0, 1])
    let long = String(repeating: "a", count: 63)
    #expect(NameMessage.question("\(long).test", .v4) != nil)
    for name in [
      "", ".", "a..b", ".a", "\(long)a.test", Array(repeating: long, count: 4).joined(separator: "."),
    ] {
      #expect(NameMessage.question(name, .v4) == nil, "\(name)")
    }
  }

  @Test("Addresses of an answer are read") func answers() throws {
    func answer(_ message: [UInt8]) -> NameMessage.Answer? { NameMessage.answer(message, to: question, .v4) }
    #expect(answer(message([])) == .addresses([], seconds: 0))
    #expect(
      answer(message([address(1), address(2, seconds: 30)]))
        == .addresses([try ip(1), try ip(2)], seconds: 30))
    // A name that is an alias of another name, which has an uncompressed record.
    let alias: [UInt8] = [0xC0, 12, 0, 5, 0, 1, 0, 0, 0, 9, 0, 2, 0xC0, 12]
    #expect(answer(message([alias, address(1, [1, 0x62, 0])])) == .addresses([try ip(1)], seconds: 9))
    #expect(answer(message([address(1, kind: 28)])) == .addresses([], seconds: 0))
    #expect(answer(message([], flags: [0x81, 0x83])) == .noSuchName)
    #expect(answer(message([], flags: [0x81, 0x82])) == .refused(code: 2))
    let long: [UInt8] = [0xC0, 12, 0, 1, 0, 1, 0xFF, 0, 0, 0, 0, 4, 192, 0, 2, 1]
    #expect(answer(message([long])) == .addresses([try ip(1)], seconds: 0))
    var capital = message([address(1)])
    capital[13] = 0x41
    #expect(answer(capital) == .addresses([try ip(1)], seconds: 60))
  }

  @Test("Of thousands of addresses, 32 public ones and 32 others are used") func manyAddresses() throws {
    // Each one stands there twice.
    let records = (0..<2).flatMap { _ in
      (0..<2_000).map { number -> [UInt8] in
        let place = [UInt8(number / 250), UInt8(number % 250 + 1)]
        return [0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4] + (number < 1_000 ? [10, 0] : [8, 8]) + place
      }
    }
    var bytes = message(records, count: 0)
    (bytes[6], bytes[7]) = (UInt8(records.count >> 8), UInt8(records.count & 0xFF))
    guard case .addresses(let found, let seconds) = NameMessage.answer(bytes, to: question, .v4) else {
      return _ = Issue.record("the answer was not read")
    }
    #expect(seconds == 60 && found.count == 64 && Set(found).count == 64)
    #expect(found.prefix(32).allSatisfy { !$0.isPublic } && found.suffix(32).allSatisfy(\.isPublic))
  }

  @Test("A response to another question is ignored") func otherQuestion() throws {
    let good = message([address(1), address(2)])
    #expect(NameMessage.answer(good, to: question, .v4) != nil)
    for length in 0..<good.count {
      #expect(NameMessage.answer(Array(good.prefix(length)), to: question, .v4) == nil, "\(length)")
    }
    // The id, the flags, the number of questions, the name and the type of the question.
    for position in [0, 1, 2, 4, 5, 12, 13, 15, 20, 21, 23] {
      var other = good
      other[position] ^= 0x80
      #expect(NameMessage.answer(other, to: question, .v4) == nil, "\(position)")
    }
    #expect(NameMessage.answer(question, to: question, .v4) == nil)
    #expect(NameMessage.answer(message([address(1)], count: 9), to: question, .v4) == nil)
  }

  @Test("Random messages crash no parser") func randomMessages() {
    var state: UInt64 = 42
    func next() -> UInt8 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return UInt8(truncatingIfNeeded: state >> 33)
    }
    for _ in 0..<3000 {
      var bytes = message([address(1), address(2)])
      for _ in 0..<6 { bytes[24 + Int(next()) % (bytes.count - 24)] = next() }
      _ = NameMessage.answer(bytes, to: question, .v4)
    }
  }
}
