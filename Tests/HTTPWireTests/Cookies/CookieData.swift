import FoundationEssentials

/// The published test cases for cookies, in a folder beside the package if they are installed.
enum CookieData {
  struct Case: Decodable {
    struct Pair: Decodable {
      let name: String
      let value: String
    }

    let test: String
    let received: [String]
    let sent: [Pair]
    let sentTo: String?

    enum CodingKeys: String, CodingKey {
      case test, received, sent
      case sentTo = "sent-to"
    }
  }

  struct Date: Decodable {
    let test: String
    let expected: String?
  }

  static func cases() throws -> [Case] {
    guard let data = contents("cookies/http-state-parser.json") else { return [] }
    return try JSONDecoder().decode([Case].self, from: data)
  }

  /// Returns the cases of one set, without its comments.
  static func dates(_ set: String) throws -> [Date] {
    guard let data = contents("cookies/http-state-dates/\(set).json") else { return [] }
    let lines = String(decoding: data, as: UTF8.self).split(separator: "\n").filter { !$0.hasPrefix("//") }
    return try JSONDecoder().decode([Date].self, from: Data(lines.joined(separator: "\n").utf8))
  }

  private static func contents(_ path: String) -> Data? {
    let root = #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
    let folder = ProcessInfo.processInfo.environment["ALAMOFIRE_TEST_DATA"] ?? "/\(root)/../shared/data"
    return FileManager.default.contents(atPath: folder + "/" + path)
  }
}
