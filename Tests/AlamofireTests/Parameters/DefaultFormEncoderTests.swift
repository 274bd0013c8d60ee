import Foundation
import Testing

@testable import Alamofire

@Suite("The default form encoder") struct DefaultFormEncoderTests {
  private struct Value: Encodable {
    struct Inner: Encodable {
      let flags = [true, false]
      let empty: String? = nil
    }

    let text = "a b+c/d?é"
    let numbers = [3, 1, 2]
    let date = Date(timeIntervalSinceReferenceDate: 1.5)
    let data = Data([0, 255])
    let inner = Inner()
    let camelCase: Int? = nil
  }

  @Test("It has the options of an encoder that is made without arguments") func options() throws {
    let shared = URLEncodedFormParameterEncoder.default.encoder
    let made = URLEncodedFormEncoder()
    let options = { (encoder: URLEncodedFormEncoder) in
      Mirror(reflecting: encoder).children.map { "\($0.label ?? ""): \($0.value)" }
        .filter { !$0.hasPrefix("allowed:") }
    }
    #expect(options(shared) == options(made) && options(made).count > 8)
    #expect(shared.allowedCharacters == made.allowedCharacters)
    let (first, second): (String, String) = (try shared.encode(Value()), try made.encode(Value()))
    #expect(first == second && first.contains("numbers"))
  }

  @Test("Each one is an encoder of its own, whose characters can be changed") func changes() throws {
    let changed = URLEncodedFormParameterEncoder.default
    changed.encoder.allowedCharacters = CharacterSet(charactersIn: "b")
    let text: String = try changed.encoder.encode(["b": "a"])
    #expect(text == "b=%61")
    let other: String = try URLEncodedFormParameterEncoder.default.encoder.encode(["b": "a"])
    #expect(other == "b=a")
  }
}
