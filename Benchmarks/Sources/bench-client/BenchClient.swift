import Foundation
import Scorecard

/// One run of one client, in a separate process so that its processor time and memory can be measured.
///
///     bench-client urlsession|alamofire --url URL --ca FILE --protocol http1|https1|h2 --row ROW
///                  --requests N --concurrency C [--warmup N] [--pause MICROSECONDS]
///     bench-client body --row ROW --url URL --warmup-url URL --file FILE --bytes N
///     bench-client socket --row ROW --port PORT --messages N --size BYTES --window N --connections N
///                  [--pause MICROSECONDS]
///     bench-client held --row ROW --url URL --warmup-url URL --ca FILE
///
/// Prints a `RunFigures`, a `BodyFigures`, a `SocketFigures` or a `HeldFigures` as one line of JSON.
@main struct BenchClient {
  static func main() async {
    do {
      let words = CommandLine.arguments.dropFirst()
      switch words.first {
      case "body": try say(await measureBody(words.dropFirst()))
      case "socket": try say(await measureSocket(words.dropFirst()))
      case "held": try say(await measureHeld(words.dropFirst()))
      default: try say(await measure(words))
      }
    } catch {
      FileHandle.standardError.write(Data("bench-client: \(error)\n".utf8))
      exit(1)
    }
  }

  private static func say(_ figures: some Encodable) throws {
    print(String(decoding: try JSONEncoder().encode(figures), as: UTF8.self))
  }

  private static func measureBody(_ words: some Sequence<String>) async throws -> BodyFigures {
    let arguments = try Arguments(words, options: ["url", "warmup-url", "row", "file", "bytes"])
    guard let row: BodyRow = try arguments.choice("row") else { throw Arguments.Problem("--row is missing") }
    let client = BodyClient(
      url: try url(arguments.required("url")), warmup: try url(arguments.required("warmup-url")),
      file: URL(fileURLWithPath: try arguments.required("file")), bytes: try arguments.count("bytes") ?? 0)
    return try await client.move(row)
  }

  private static func measureSocket(_ words: some Sequence<String>) async throws -> SocketFigures {
    let arguments = try Arguments(
      words, options: ["row", "port", "messages", "size", "window", "connections", "pause"])
    guard let row: SocketRow = try arguments.choice("row") else {
      throw Arguments.Problem("--row is missing")
    }
    raiseDescriptorLimit()
    let work = SocketRow.Work(
      messages: try arguments.count("messages") ?? 1, size: try arguments.count("size") ?? 64,
      window: try arguments.count("window") ?? 1, connections: try arguments.count("connections") ?? 1)
    let client = SocketClient(
      url: try url("ws://127.0.0.1:\(arguments.required("port"))/"), work: work,
      pause: UInt32(clamping: try arguments.count("pause") ?? 0))
    return try await client.measure(row)
  }

  private static func measureHeld(_ words: some Sequence<String>) async throws -> HeldFigures {
    let arguments = try Arguments(words, options: ["row", "url", "warmup-url", "ca"])
    guard let row: HeldRow = try arguments.choice("row") else { throw Arguments.Problem("--row is missing") }
    raiseDescriptorLimit()
    let setting = ClientSetting(
      url: try url(arguments.required("url")), allowsHTTP2: false,
      authority: try arguments.required("ca"), concurrency: row.connections)
    let client = HeldClient(
      setting, warmup: try url(arguments.required("warmup-url")), requests: row.requests)
    return try await client.measure()
  }

  private static func raiseDescriptorLimit() {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  }

  private static func url(_ text: String) throws -> URL {
    guard let url = URL(string: text) else { throw Arguments.Problem("'\(text)' is no URL") }
    return url
  }

  private static func measure(_ words: some Sequence<String>) async throws -> RunFigures {
    let arguments = try Arguments(
      words, options: ["url", "ca", "protocol", "row", "requests", "concurrency", "warmup", "pause"])
    let concurrency = try arguments.count("concurrency") ?? 1
    let requests = try arguments.count("requests") ?? 1000
    let loop = ClosedLoop(
      client: try client(arguments, concurrency: concurrency),
      row: try arguments.choice("row") ?? .getData, concurrency: concurrency,
      pause: UInt32(clamping: try arguments.count("pause") ?? 0))
    _ = try await loop.perform(try arguments.count("warmup") ?? max(200, 2 * concurrency))

    let marks = CountingMarks()
    let processor = Clock.processor()
    let start = Clock.monotonic()
    marks?.reset()
    let log = try await loop.perform(requests)
    let counts = marks?.read()
    let seconds = Double(Clock.monotonic() - start) / 1e9
    let cpuSeconds = Double(Clock.processor() - processor) / 1e9
    let quantiles = log.quantiles([0.5, 0.99])
    return RunFigures(
      requests: requests, seconds: seconds, cpuSeconds: cpuSeconds, medianMicroseconds: quantiles[0],
      p99Microseconds: quantiles[1], peakMegabytes: Memory.peakMegabytes(), counts: counts)
  }

  private static func client(_ arguments: Arguments, concurrency: Int) throws -> any GetClient {
    let url = try url(arguments.required("url"))
    let wire: WireProtocol = try arguments.choice("protocol") ?? .http1
    let setting = ClientSetting(
      url: url, allowsHTTP2: wire == .h2, authority: arguments["ca"] ?? "", concurrency: concurrency)
    switch arguments.words.first.flatMap(Client.init(rawValue:)) {
    case .urlsession: return StockClient(setting)
    case .alamofire: return AlamofireClient(setting)
    case .floor, nil: throw Arguments.Problem("the first word must be urlsession or alamofire")
    }
  }
}
