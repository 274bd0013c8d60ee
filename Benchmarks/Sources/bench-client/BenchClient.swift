import Foundation
import Scorecard

/// One run of one client, in a process of its own so that processor time and memory are its own.
///
///     bench-client urlsession|alamofire --url URL --ca FILE --protocol http1|https1|h2 --row ROW
///                  --requests N --concurrency C [--warmup N] [--pause MICROSECONDS]
///
/// Prints a `RunFigures` as one line of JSON.
@main struct BenchClient {
  static func main() async {
    do {
      let figures = try await measure(CommandLine.arguments.dropFirst())
      let line = try JSONEncoder().encode(figures)
      print(String(decoding: line, as: UTF8.self))
    } catch {
      FileHandle.standardError.write(Data("bench-client: \(error)\n".utf8))
      exit(1)
    }
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
    let text = try arguments.required("url")
    guard let url = URL(string: text) else { throw Arguments.Problem("'\(text)' is no URL") }
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
