import Alamofire
import Foundation
import Testing

/// Downloads in segments from nginx, which limits the rate of each connection.
///
/// The environment variable `ALAMOFIRE_SEGMENT_MEGABYTES` sets the size of the file, such as 1000. The times are then
/// compared: with 4 segments, a download has to be at least 3.5 times as fast as one stream.
@Suite(.needsNginx, .timeLimit(.minutes(5))) struct SegmentedDownloadServerTests {
  private static let measuredMegabytes =
    ProcessInfo.processInfo.environment["ALAMOFIRE_SEGMENT_MEGABYTES"].flatMap { Int($0) }

  private func download(_ server: NginxServer, segments: Int, to file: URL) async throws -> Duration {
    let session = server.makeSession()
    let started = ContinuousClock.now
    _ = try await session.segmentedDownload(server.url(.http, "/limited/file"), segments: segments, to: file)
      .value
    return ContinuousClock.now - started
  }

  @Test("Four connections transfer a file of a server that limits each of them")
  func limitedConnections() async throws {
    let megabytes = Self.measuredMegabytes ?? 8
    let rate = max(4, megabytes / 80)
    let server = try await NginxServer(
      NginxConfiguration(locations: "location /limited/ { alias files/; limit_rate \(rate)m; }"))
    var content = Data(count: megabytes << 20)
    for start in stride(from: 0, to: content.count, by: 4096) {
      withUnsafeBytes(of: start) { content.replaceSubrange(start..<(start + 8), with: $0) }
    }
    try server.serve(content, as: "file")
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
      "segments-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let (one, four) = (folder.appendingPathComponent("one"), folder.appendingPathComponent("four"))
    let slow = try await download(server, segments: 1, to: one)
    let fast = try await download(server, segments: 4, to: four)
    let isEqual = FileManager.default.contentsEqual(atPath: one.path, andPath: four.path)
    #expect(isEqual)
    let requests = try await server.loggedRequests(to: "/limited/file", count: 6)
    // On a slow machine, a segment may end before another begins, which then uses its connection.
    #expect(Set(requests.map(\.connection)).count >= (Self.measuredMegabytes == nil ? 3 : 5))
    #expect(requests.allSatisfy { $0.status == 206 })
    if Self.measuredMegabytes != nil {
      print("\(megabytes) MB: one stream \(slow), four segments \(fast), ratio \(slow / fast)")
      #expect(slow / fast >= 3.5)
    }
  }
}
