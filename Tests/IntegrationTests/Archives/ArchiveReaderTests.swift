import Alamofire
import Foundation
import HTTPTestServer
import Testing

/// Archives of `RequestRecorder` as a third-party reader understands them.
@Suite(.needsArchiveReader, .timeLimit(.minutes(5))) struct ArchiveReaderTests {
  @Test("Another program reads requests, bodies and redirects of an archive") func archive() async throws {
    let server = try HTTPTestServer(routes: .none)
    let entries = try await recordedEntries(server)
    let target = "/there?a=b%20c&token=redacted"
    #expect(
      entries.map(\.request) == [
        "POST \(server.url("/here")) HTTP/1.1", "POST \(server.url(target)) HTTP/1.1",
        "POST \(server.url("/upload")) HTTP/1.1",
      ])
    #expect(entries.map(\.response) == ["HTTP/1.1 307", "HTTP/1.1 200", "HTTP/1.1 200"])
    #expect(entries.map(\.requestType) == ["application/json", "application/json", "text/plain"])
    #expect(
      entries.allSatisfy {
        $0.isConsistent && $0.address == "127.0.0.1" && $0.host == "127.0.0.1:\(server.port)"
      })
    #expect(entries.map(\.redirect) == [target, "", ""])
    let bodies = try entries.prefix(2).map {
      try JSONDecoder().decode([String: String].self, from: Data(($0.requestBody ?? "").utf8))
    }
    #expect(bodies == Array(repeating: ["user": "ann", "password": "redacted"], count: 2))
    try #require(entries.count == 3)
    #expect(entries[1].query == [["a", "b%20c"], ["token", "redacted"]])
    #expect(entries[1].responseBody == #"{"id": 1, "token": "redacted"}"#)
    #expect(entries[2].requestBody == "text" && entries[2].responseBody == "grüße")
  }

  /// Sends a redirected POST and an upload, and has their archive read.
  private func recordedEntries(_ server: HTTPTestServer) async throws -> [ArchiveReader.Entry] {
    server.enqueue(
      .redirect(to: "/there?a=b%20c&token=planted", status: 307), .json(#"{"id": 1, "token": "planted"}"#),
      .text("grüße"))
    let recorder = RequestRecorder(bodyLimit: 1_000)
    let session = Session(configuration: .isolated, eventMonitors: [recorder])
    let form = ["user": "ann", "password": "planted"]
    _ = await session.request(server.url("/here"), method: .post, parameters: form, encoder: .json)
      .serializingData().response
    let upload = session.upload(
      Data("text".utf8), to: server.url("/upload"), headers: [.contentType("text/plain")])
    _ = await upload.serializingData().response
    recorder.queue.sync {}
    let folder = try ServerProcess.makeFolder("archive")
    defer { try? FileManager.default.removeItem(at: folder) }
    let file = folder.appendingPathComponent("requests.har")
    try recorder.har().write(to: file)
    return try await ArchiveReader.entries(of: file)
  }
}
