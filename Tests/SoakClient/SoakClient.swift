import Alamofire

/// A process that uses the library heavily and prints measurements of itself as one line of JSON.
///
///     SoakClient requests <url> <authority> <count> <concurrency>
///     SoakClient sessions <url> <authority> <count>
///     SoakClient sockets  <url without a path> <authority> <count>
///     SoakClient download <url> <destination> <file for resume data> <crash point>
///     SoakClient background <url> <folder> <count>
///     SoakClient segments <url> <destination> <number of segments>
///     SoakClient cookies  <authority> <url> ...
///     SoakClient cache    <folder> <seed>
///     SoakClient ticket   <url> ...
///     SoakClient early    <url> <authority> <bytes> <url that takes a second>
@main
enum SoakClient {
  static func main() async throws {
    let words = Array(CommandLine.arguments.dropFirst())
    if words.first == "download" { return try await DurableDownload(words).run() }
    if words.first == "background" { return try await BackgroundTransfers(words).run() }
    if words.first == "segments" { return try Self.print(await SegmentedDownloadRun(words).run()) }
    if words.first == "cookies" { return try await CookieRequests(words).run() }
    if words.first == "ticket" { return try Self.print(await TicketRequests(words).run()) }
    if words.first == "cache" { return try CacheWriting(words).run() }
    guard (4...5).contains(words.count), let count = Int(words[3]), count > 0 else {
      throw Failure(
        description:
          "usage: SoakClient requests|sessions|sockets|download|background|segments|cookies|cache|ticket|early <url> <authority> <number> ..."
      )
    }
    let further = words.count == 5 ? words[4] : ""
    var options = TransportOptions()
    options.trustStore = .file(words[2])
    switch (words[0], words.count, Int(further)) {
    case ("requests", 5, let concurrency?) where concurrency > 0:
      try Self.print(await RequestSoak.run(words[1], options, count: count, concurrency: concurrency))
    case ("sessions", 4, _): try Self.print(await SessionSoak.run(words[1], options, count: count))
    case ("sockets", 4, _): try Self.print(await SocketSoak.run(words[1], options, count: count))
    case ("early", 5, nil):
      try Self.print(await EarlyAnswer.run(words[1], options, bytes: count, clock: further))
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
