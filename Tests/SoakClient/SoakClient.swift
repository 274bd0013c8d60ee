import Alamofire

/// A process that does much with the library and says what it left behind, as one line of JSON.
///
///     SoakClient requests <url> <authority> <count> <concurrency>
///     SoakClient sessions <url> <authority> <count>
///     SoakClient early    <url> <authority> <bytes>
@main
enum SoakClient {
  static func main() async throws {
    let words = Array(CommandLine.arguments.dropFirst())
    let numbers = words.dropFirst(3).compactMap { Int($0) }
    guard words.count >= 4, numbers.count == words.count - 3, numbers.allSatisfy({ $0 > 0 }) else {
      throw Failure(description: "usage: SoakClient requests|sessions|early <url> <authority> <number> ...")
    }
    var options = TransportOptions()
    options.trustStore = .file(words[2])
    switch (words[0], numbers.count) {
    case ("requests", 2):
      try Self.print(await RequestSoak.run(words[1], options, count: numbers[0], concurrency: numbers[1]))
    case ("sessions", 1): try Self.print(await SessionSoak.run(words[1], options, count: numbers[0]))
    case ("early", 1): try Self.print(await EarlyAnswer.run(words[1], options, bytes: numbers[0]))
    default: throw Failure(description: "this is not something to soak in: \(words)")
    }
  }

  private static func print(_ report: some Encodable) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    Swift.print(String(decoding: try encoder.encode(report), as: UTF8.self))
  }

  struct Failure: Error, CustomStringConvertible {
    let description: String
  }
}
