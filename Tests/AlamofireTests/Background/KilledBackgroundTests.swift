import Alamofire
import Foundation
import HTTPTestServer
import Randomness
import Testing

/// A program that is killed again and again while it transfers files in both directions.
@Suite(.timeLimit(.minutes(30))) struct KilledBackgroundTests {
  private static let count = 7
  private static let size = 300_000

  /// The requests that the server has seen: the first byte that each download asked for, and the complete uploads.
  private final class Traffic: Sendable {
    /// The resumable uploads by name.
    let endpoints: [String: UploadEndpoint]
    let starts = Mutex<[String: [Int]]>([:])
    let uploads = Mutex<[String: [[UInt8]]]>([:])

    init(count: Int) {
      var endpoints: [String: UploadEndpoint] = [:]
      for number in 0..<count {
        endpoints["draft-\(number)"] = UploadEndpoint(.draft)
        endpoints["tus-\(number)"] = UploadEndpoint(.tus)
      }
      self.endpoints = endpoints
    }
  }

  /// The contents by name, each created once, because a sanitizer makes that slow.
  private static let contents = Mutex<[String: [UInt8]]>([:])

  private static func bytes(_ name: String) -> [UInt8] {
    contents.withLock { contents in
      if let known = contents[name] { return known }
      var state = UInt64(truncatingIfNeeded: name.utf8.reduce(7) { $0 &* 31 &+ Int($1) })
      let bytes = (0..<size).map { _ in
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return UInt8(truncatingIfNeeded: state >> 33)
      }
      contents[name] = bytes
      return bytes
    }
  }

  private static func routes(_ traffic: Traffic) -> Routes {
    let uploads = traffic.endpoints.reduce(Routes.none) { $0.adding($1.value, at: "/\($1.key)") }
    return
      uploads
      .adding("/{name}", methods: ["GET"]) { request, names in
        let whole = bytes(names[0])
        let start = request.header("Range").flatMap { Int($0.dropFirst(6).dropLast()) } ?? 0
        traffic.starts.withLock { $0[names[0], default: []].append(start) }
        var reply = Reply.data(Array(whole[start...])).with(header: "ETag", value: #""v""#)
        if start > 0 {
          reply.status = 206
          reply = reply.with(header: "Content-Range", value: "bytes \(start)-\(size - 1)/\(size)")
        }
        return reply.with(effect: .slowDrip(bytesPerStep: 20_000, interval: .milliseconds(5)))
      }
      .adding("/{name}", methods: ["PUT", "POST"]) { request, names in
        traffic.uploads.withLock { $0[names[0], default: []].append(request.body) }
        return .text("stored")
      }
  }

  /// The least number of kills: `ALAMOFIRE_KILLS`, or 30.
  private static var kills: Int {
    ProcessInfo.processInfo.environment["ALAMOFIRE_KILLS"].flatMap { Int($0) } ?? 30
  }

  @Test("Every file arrives, every completion is delivered once, and no file is sent twice or left")
  func killedAtAnyMoment() async throws {
    var kills = 0
    while kills < Self.kills {
      let count = try await transferFiles()
      guard count >= 0 else { return }
      kills += count
    }
  }

  /// Transfers all files by processes that are killed. Returns the number of kills; negative after a failure.
  private func transferFiles() async throws -> Int {
    let folder = try TemporaryFolder()
    let traffic = Traffic(count: Self.count)
    let server = try HTTPTestServer(routes: Self.routes(traffic))
    let names = (0..<Self.count).flatMap { number in
      ["download", "put", "post", "draft", "tus"].map { "\($0)-\(number)" }
    }
    for name in names { _ = try folder.file("body-\(name)", Data(Self.bytes(name))) }
    let words = ["background", String(server.url("/").dropLast()), folder.url.path, "\(Self.count)"]
    var kills = 0
    while true {
      let child = try ChildProcess(words, folder: folder.url, complaints: folder["complaints"])
      // Later, the longer it takes, because a machine under load needs longer to start a process.
      var random = Seed.generator(kills)
      let killer = Self.kill(
        child, after: .microseconds(Int.random(in: 0...200_000 + 20_000 * kills, using: &random)))
      let end = await child.end()
      killer.cancel()
      _ = await killer.result
      switch end {
      case .killed: kills += 1
      case .exited(0):
        try check(folder, traffic, names)
        return kills
      case .exited(let status):
        Issue.record("status \(status) after \(kills) kills: \(child.said)")
        return -1
      }
    }
  }

  private static func kill(_ child: ChildProcess, after delay: Duration) -> Task<Void, any Error> {
    Task {
      try await Task.sleep(for: delay)
      child.kill()
    }
  }

  private func check(_ folder: TemporaryFolder, _ traffic: Traffic, _ names: [String]) throws {
    let lines = try String(contentsOf: folder["log"], encoding: .utf8).split(separator: "\n")
    let outcomes = Dictionary(grouping: lines) { String($0.split(separator: " ")[0]) }
    #expect(lines.count == names.count, "each completion is delivered once: \(lines)")
    for name in names {
      let outcome = outcomes[name]?.first.map { $0.split(separator: " ").dropFirst().joined(separator: " ") }
      let bodies = traffic.uploads.withLock { $0[name] } ?? []
      if name.hasPrefix("download") {
        #expect(outcome == "ok")
        #expect(try Data(contentsOf: folder[name]) == Data(Self.bytes(name)))
        // Never again from the start, after a part was there.
        let starts = traffic.starts.withLock { $0[name] } ?? []
        #expect(starts == starts.sorted(), "\(starts)")
      } else if let endpoint = traffic.endpoints[name] {
        #expect(outcome == "ok", "\(name): \(outcome ?? "none")")
        // An upload whose creation was not noted has no bytes. No byte of the others was sent again.
        let contents = endpoint.uploads.map(\.content).filter { !$0.isEmpty }
        #expect(contents == [Self.bytes(name)] && endpoint.processedCount == 1, "\(name)")
        #expect(endpoint.receivedByteCount == Self.size, "\(name)")
      } else if name.hasPrefix("put") {
        #expect(outcome == "ok")
        #expect(bodies.allSatisfy { $0 == Self.bytes(name) } && !bodies.isEmpty)
      } else {
        // URLError.backgroundSessionWasDisconnected: the server may have it.
        #expect(outcome == "ok" || outcome == "error -997", "\(outcome ?? "none")")
        #expect(bodies.count <= 1 && bodies.allSatisfy { $0 == Self.bytes(name) }, "a POST was sent twice")
        if outcome == "ok" { #expect(bodies.count == 1) }
      }
    }
    // Foundation stores its cookies in `debug`.
    let known = names + names.map { "body-\($0)" } + ["complaints", "debug", "journal", "log"]
    let left = try folder.names.filter { !known.contains($0) && !$0.hasSuffix(".lock") }
    #expect(left == [])
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder["journal"].path) == ["lock"])
  }
}
