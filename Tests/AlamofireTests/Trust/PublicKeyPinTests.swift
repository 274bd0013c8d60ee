import Alamofire
import Testing

@Suite("Pins") struct PublicKeyPinTests {
  @Test("The format of curl is accepted") func curlFormat() throws {
    let pin = try PublicKeyPin(Known.pin)
    #expect(pin.digest.count == 32)
    #expect(try PublicKeyPin(Known.pin.replacingOccurrences(of: "sha256/", with: "sha256//")) == pin)
  }

  @Test("A slash can be the first character") func slash() throws {
    let text = "sha256//" + String(repeating: "A", count: 42) + "="
    let pin = try PublicKeyPin(text)
    #expect(pin.description == text)
    #expect(pin.digest.first == 0xFC)
    #expect(try PublicKeyPin("sha256///" + String(repeating: "A", count: 42) + "=") == pin)
  }

  @Test(
    "An invalid pin is a clear error",
    arguments: [
      "", "sha256/", "sha256//", "sha1/2jmj7l5rSw0yVb/vlWAYkK/YBwk=",
      "SHA256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
      "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", "sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU",
      "sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU==",
      "sha256/47DEQpj8HBSa+/TImW 5JCeuQeRkm5NMpJWZG3hSuFU=",
      "sha256/47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU=", "sha256/AAAA",
      "sha256/" + String(repeating: "=", count: 44),
      "sha256/" + String(repeating: "A", count: 100_000),
      " sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
      "sha256/\u{E9}7DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuF=",
    ])
  func invalidPins(text: String) throws {
    let error = #expect(throws: PublicKeyPin.Invalid.self) { try PublicKeyPin(text) }
    let message = try #require(error?.localizedDescription)
    #expect(message.contains("sha256/") && message.count < 300)
    #expect(throws: PublicKeyPin.Invalid.self) { try PublicKeysTrustEvaluator(pins: [Known.pin, text]) }
  }
}
