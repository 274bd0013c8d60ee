import Alamofire
import HTTPTestServer
import Synchronization

/// The program of `Scripts/path`, which sends one request and writes the covered lines to a file.
///
///     path serve                   answers requests until the end of standard input; prints its URL
///     path WAY URL FILE            sends one request to that URL and writes the profile of it
///
/// The server is another process because it uses HTTPWire as well.
@main struct PathProgram {
  static func main() async {
    let words = Array(CommandLine.arguments.dropFirst())
    do {
      if words == ["serve"] {
        try serve()
      } else if words.count == 3, let way = Way(rawValue: words[0]), let url = URL(string: words[1]) {
        try await measure(way, url, profile: words[2])
      } else {
        throw Problem("the arguments are serve, or WAY URL FILE")
      }
    } catch {
      FileHandle.standardError.write(Data("path: \(error)\n".utf8))
      exit(1)
    }
  }

  private static func serve() throws {
    let count = Mutex(0)
    let routes = Routes.standard.adding("/unavailable-once") { _, _ in
      count.withLock {
        $0 += 1
        return $0 % 2 == 1 ? .status(503) : .text("available")
      }
    }
    let server = try HTTPTestServer(routes: routes)
    print(server.baseURL)
    fflush(nil)
    while readLine() != nil {}
    server.stop()
  }

  private static func measure(_ way: Way, _ server: URL, profile: String) async throws {
    let session = Session()
    for _ in 0..<3 {
      _ = try await session.request(server.appending(path: way.warmup)).serializingData().value
    }
    // The loop runs for a moment after the end of a request. The lines of the loop belong to that request.
    try await Task.sleep(for: .milliseconds(200))
    Profile.reset()
    try await way.send(by: session, to: server)
    try await Task.sleep(for: .milliseconds(200))
    try Profile.write(to: profile)
  }
}

/// A reason for a missing measurement.
struct Problem: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}
