import Alamofire
import Foundation
import Testing

@Suite struct DecodingErrorTests {
  private struct Album: Decodable {
    struct Track: Decodable {
      let title: String
    }

    let name: String
    let tracks: [Track]
  }

  private func message(_ json: String) -> String? {
    do {
      _ = try JSONDecoder().decode(Album.self, from: Data(json.utf8))
      return nil
    } catch {
      return AFError.responseSerializationFailed(reason: .decodingFailed(error: error)).errorDescription
    }
  }

  @Test(
    "The message names the coding path and the mismatch",
    arguments: [
      ("{}", #"There is no value for the key "name" at the top."#),
      (#"{"name": "x", "tracks": [{"title": "a"}, {}]}"#, #"no value for the key "title" at tracks[1]."#),
      (#"{"name": 1, "tracks": []}"#, "Expected a String at name, found a number."),
      (#"{"name": "x", "tracks": [{"title": null}]}"#, "Expected a String at tracks[0].title, found null."),
      ("[]", "Expected an object at the top, found an array."),
      ("<html>", "not valid JSON"), ("", "."),
    ])
  func messages(json: String, expected: String) {
    let prefix = "The body of the response could not be decoded: "
    #expect(message(json)?.hasPrefix(prefix) == true)
    #expect(message(json)?.contains(expected) == true, "\(message(json) ?? "no error")")
    #expect(message(json)?.contains("..") == false)
  }
}
