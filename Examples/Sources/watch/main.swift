// A service for a container: requests URLs again and again, and writes a line for each response, until SIGTERM:
//
//     WATCH_URLS="https://example.com https://example.org" WATCH_SECONDS=30 swift run watch

import Alamofire
import Glibc

/// Ends the program because of its environment.
func refuse(_ sentence: String) -> Never {
  try? FileHandle.standardError.write(contentsOf: Data("watch: \(sentence)\n".utf8))
  exit(2)
}

let environment = ProcessInfo.processInfo.environment
let urls = (environment["WATCH_URLS"] ?? "").split(separator: " ").map { String($0) }
guard !urls.isEmpty else { refuse("Name the URLs in WATCH_URLS, with spaces between them.") }
guard let seconds = Double(environment["WATCH_SECONDS"] ?? "60"), (0.1...86_400).contains(seconds) else {
  refuse("WATCH_SECONDS is to be a number from 0.1 to 86400.")
}

/// Makes a session that stores nothing and waits for no host longer than ten seconds.
func makeSession() -> Session {
  let configuration = URLSessionConfiguration.af.ephemeral
  configuration.urlCache = nil
  configuration.timeoutIntervalForRequest = 10
  var options = TransportOptions()
  options.timeLimits.total = .seconds(10)
  options.bodySizeLimit = 10_000_000
  // Written at once, also into a pipe.
  let log = RequestLog { try? FileHandle.standardOutput.write(contentsOf: Data("\($0)\n".utf8)) }
  return Session(configuration: configuration, eventMonitors: [log], transportOptions: options)
}

/// Requests all URLs at once, again and again.
func watch() async {
  let session = makeSession()
  while !Task.isCancelled {
    await withTaskGroup(of: Void.self) { group in
      for url in urls { group.addTask { _ = await session.request(url).serializingData().response } }
    }
    try? await Task.sleep(for: .seconds(seconds))
  }
}

let watching = Task { await watch() }
// The first process of a container is ended by no signal that it does not handle.
let signals = [SIGTERM, SIGINT].map { number in
  signal(number, SIG_IGN)
  let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
  source.setEventHandler { watching.cancel() }
  source.resume()
  return source
}
await watching.value
withExtendedLifetime(signals) {}
