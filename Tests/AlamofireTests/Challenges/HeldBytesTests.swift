import Foundation
import HTTPWire
import Testing

@testable import Alamofire

/// The bytes of a challenge that wait for a decision.
@Suite("Bytes that are held") struct HeldBytesTests {
  private func append(_ text: String, to held: inout HeldBytes) {
    Data(text.utf8).withUnsafeBytes { held.append($0) }
  }

  @Test("A body up to the limit is held, and a longer one is refused, whatever follows") func limit() throws {
    var held = HeldBytes(limit: 5)
    append("012", to: &held)
    append("34", to: &held)
    #expect(held.count == 5)
    #expect(try held.challenge() == Data("01234".utf8))
    append("5", to: &held)
    append("6", to: &held)
    #expect(held.count == 0, "nothing of it is needed")
    let error = #expect(throws: TransportFailure.self) { try held.challenge() }
    #expect(error?.kind == .dataLengthExceedsMaximum)
  }

  @Test("Without a limit each body is held") func unlimited() throws {
    var held = HeldBytes()
    append(String(repeating: "x", count: HeldBytes.challengeLimit + 1), to: &held)
    #expect(try held.challenge().count == HeldBytes.challengeLimit + 1)
  }
}
