import AFCommand
import Foundation
import HTTPTestServer
import Testing

/// Versions of a resource: `-c` never joins parts of two of them, as far as the server tells them apart.
@Suite(.timeLimit(.minutes(5))) struct ContinuationTests {
  private let server: HTTPTestServer
  private let folder: Folder
  private let old = HTTPHeader(name: "Last-Modified", value: "Mon, 01 Jan 2024 10:00:00 GMT")

  init() throws {
    server = try HTTPTestServer()
    folder = try Folder()
  }

  private var path: String { folder.path("f") }

  private func content(_ name: String = "f") -> String? {
    FileManager.default.contents(atPath: folder.path(name)).map { String(decoding: $0, as: UTF8.self) }
  }

  private var names: [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []).sorted()
  }

  /// Downloads the first four of ten bytes.
  private func breakOff(_ fields: HTTPHeader..., arguments: [String]? = nil) async throws {
    var reply = Reply.text("0123456789").with(effect: .closeAfterBody(bytes: 4))
    reply.headers += fields
    server.enqueue(reply)
    var terminal = Terminal()
    terminal.folder = folder.path
    let run = await terminal.run((arguments ?? ["-o", path]) + [server.url("/f")])
    #expect(run.status == .failure)
    #expect(content() == "0123")
    _ = try await server.takeRequest()
  }

  private func part(_ text: String, _ range: String, tag: String? = nil) -> Reply {
    var reply = Reply.text(text).with(header: "Content-Range", value: "bytes \(range)")
    reply.status = 206
    if let tag { reply = reply.with(header: "ETag", value: tag) }
    return reply
  }

  @Test("The rest is requested on condition that the entity tag is the same", arguments: [["-o"], ["-d"]])
  func entityTag(option: [String]) async throws {
    try await breakOff(
      HTTPHeader(name: "ETag", value: "\"v1\""), old,
      arguments: option == ["-o"] ? ["-o", path] : option)
    #expect(names == ["f", "f.af-continue"])
    server.enqueue(part("456789", "4-9/10", tag: "\"v1\""))
    let run = await Terminal().run("-co", path, server.url("/f"))
    let request = try await server.takeRequest()
    #expect(run.status == .success)
    #expect(request.header("Range") == "bytes=4-")
    #expect(request.header("If-Range") == "\"v1\"")
    #expect(content() == "0123456789")
    #expect(names == ["f"])
  }

  @Test("A file is continued where a link leads") func link() async throws {
    for (name, target) in [("f", "target"), ("g", "missing")] {
      try FileManager.default.createSymbolicLink(
        atPath: folder.path(name), withDestinationPath: folder.path(target))
    }
    _ = try folder.file("target", "0123")
    server.enqueue(part("456789", "4-9/10"), .text("whole"))
    let run = await Terminal().run("-co", path, server.url("/f"))
    #expect(run.status == .success && content("target") == "0123456789", "\(run.error)")
    #expect(try await server.takeRequest().header("Range") == "bytes=4-")
    let other = await Terminal().run("-co", folder.path("g"), server.url("/f"))
    #expect(other.status == .success && content("missing") == "whole", "\(other.error)")
    #expect(try await server.takeRequest().header("Range") == nil)
    #expect(names == ["f", "g", "missing", "target"])
  }

  @Test("The journal of a link is next to the file to which it leads") func journalOfLink() async throws {
    try FileManager.default.createSymbolicLink(atPath: folder.path("l"), withDestinationPath: "f")
    try await breakOff(HTTPHeader(name: "ETag", value: "\"v1\""), arguments: ["-o", folder.path("l")])
    #expect(names == ["f", "f.af-continue", "l"])
    server.enqueue(part("4567", "4-7/10", tag: "\"v1\""))
    #expect(await Terminal().run("-co", folder.path("l"), server.url("/f")).status == .failure)
    #expect(try await server.takeRequest().header("If-Range") == "\"v1\"")
    server.enqueue(part("89", "8-9/10", tag: "\"v1\""))
    #expect(await Terminal().run("-co", path, server.url("/f")).status == .success)
    #expect(try await server.takeRequest().header("If-Range") == "\"v1\"")
    #expect(content() == "0123456789")
    #expect(names == ["f", "l"])
  }

  @Test("A file is not continued beside a journal of another user, which is neither read nor changed")
  func foreignJournal() async throws {
    try await breakOff(HTTPHeader(name: "ETag", value: "\"v1\""))
    let journal = path + ".af-continue"
    // Only an administrator can give a file away.
    guard geteuid() == 0, chown(journal, 12_345, 12_345) == 0 else { return }
    let lines = try #require(FileManager.default.contents(atPath: journal))
    let count = server.requestCount
    let run = await Terminal().run("-co", path, server.url("/f"))
    #expect(
      run.status == .usage && run.error.contains("'\(journal)' belongs to another user"), "\(run.error)")
    #expect(server.requestCount == count && content() == "0123", "the end of any version is appended")
    try await breakOff(HTTPHeader(name: "ETag", value: "\"v2\""))
    #expect(FileManager.default.contents(atPath: journal) == lines, "the journal of a partial file")
    server.enqueue(.text("0123456789"))
    #expect(await Terminal().run("-o", path, server.url("/f")).status == .success)
    #expect(content() == "0123456789")
    #expect(FileManager.default.contents(atPath: journal) == lines, "the journal of a complete file")
  }

  @Test(
    "A journal of the user, also with a second name, and one of the owner of the file are used",
    arguments: ["second name", "owner"])
  func ownJournal(kind: String) async throws {
    try await breakOff(HTTPHeader(name: "ETag", value: "\"v1\""))
    let journal = path + ".af-continue"
    if kind == "owner" {
      guard geteuid() == 0, chown(path, 12_345, 12_345) == 0, chown(journal, 12_345, 12_345) == 0 else {
        return
      }
    } else {
      try FileManager.default.linkItem(atPath: journal, toPath: folder.path("other"))
    }
    server.enqueue(part("456789", "4-9/10", tag: "\"v1\""))
    let run = await Terminal().run("-co", path, server.url("/f"))
    #expect(run.status == .success && content() == "0123456789", "\(run.error)")
    #expect(try await server.takeRequest().header("If-Range") == "\"v1\"", "any version is appended")
    #expect(names == (kind == "owner" ? ["f"] : ["f", "other"]))
  }

  @Test(
    "A file that another run has written since the rest was requested is left alone",
    arguments: [200, 206, 416], [true, false])
  func writtenMeanwhile(status: Int, isComplete: Bool) async throws {
    if status != 416 {
      try await breakOff(HTTPHeader(name: "ETag", value: "\"v1\""))
    } else {
      _ = try folder.file("f", "0123")
    }
    let (file, journal) = (path, path + ".af-continue")
    let version = Data("ETag: \"v2\"\nContent-Length: 10\n".utf8)
    let server = try HTTPTestServer(
      routes: .none.adding("/f") { [self] _, _ in
        // What another run does: it replaces the file and its journal.
        let content = isComplete ? "ABCDEFGHIJ" : "ABCD"
        try? Data(content.utf8).write(to: URL(fileURLWithPath: file))
        if isComplete {
          try? FileManager.default.removeItem(atPath: journal)
        } else {
          try? version.write(to: URL(fileURLWithPath: journal))
        }
        if status == 206 { return part("456789", "4-9/10", tag: "\"v1\"") }
        if status == 200 { return Reply.text("wxyz") }
        return Reply.status(416).with(header: "Content-Range", value: "bytes */4")
      })
    let run = await Terminal().run("-co", path, server.url("/f"))
    #expect(run.status == .failure && run.error.contains("has changed since"), "\(run.error)")
    #expect(content() == (isComplete ? "ABCDEFGHIJ" : "ABCD"))
    #expect(FileManager.default.contents(atPath: journal) == (isComplete ? nil : version))
  }

  @Test(
    "A file that another run has written since the whole file was requested is left alone",
    arguments: [true, false])
  func appearedMeanwhile(isNew: Bool) async throws {
    let (file, journal) = (path, path + ".af-continue")
    if !isNew {
      // No byte counts if the beginning of the journal is lost.
      try await breakOff(HTTPHeader(name: "ETag", value: "\"v1\""))
      let lines = try #require(FileManager.default.contents(atPath: journal))
      let end = try #require(lines.firstIndex(of: 0x0A))
      try Data(lines[(end + 1)...]).write(to: URL(fileURLWithPath: journal))
    }
    let server = try HTTPTestServer(
      routes: .none.adding("/f") { _, _ in
        // What another run does until its file is complete.
        try? Data("ABCDEFGHIJ".utf8).write(to: URL(fileURLWithPath: file))
        try? FileManager.default.removeItem(atPath: journal)
        return Reply.text("wxyz")
      })
    let run = await Terminal().run("-co", path, server.url("/f"))
    #expect(server.recordedRequests.map { $0.header("Range") } == [nil])
    #expect(run.status == .failure && run.error.contains("has changed since"), "\(run.error)")
    #expect(content() == "ABCDEFGHIJ" && names == ["f"])
  }

  @Test("A file that was removed since its rest was requested is saved as a whole") func removedMeanwhile()
    async throws
  {
    try await breakOff(HTTPHeader(name: "ETag", value: "\"v1\""))
    let file = path
    let server = try HTTPTestServer(
      routes: .none.adding("/f") { _, _ in
        try? FileManager.default.removeItem(atPath: file)
        return Reply.text("wxyz")
      })
    let run = await Terminal().run("-co", path, server.url("/f"))
    #expect(run.status == .success, "\(run.error)")
    #expect(content() == "wxyz")
  }

  @Test("A file that has changed on the server is replaced, and its next part is conditional too")
  func changed() async throws {
    try await breakOff(HTTPHeader(name: "ETag", value: "\"v1\""))
    server.enqueue(
      Reply.text("abcdefghijkl").with(header: "ETag", value: "\"v2\"").with(
        effect: .closeAfterBody(bytes: 6)))
    #expect(await Terminal().run("-co", path, server.url("/f")).status == .failure)
    #expect(content() == "abcdef")
    _ = try await server.takeRequest()
    server.enqueue(part("ghijkl", "6-11/12", tag: "\"v2\""))
    #expect(await Terminal().run("-co", path, server.url("/f")).status == .success)
    #expect(try await server.takeRequest().header("If-Range") == "\"v2\"")
    #expect(content() == "abcdefghijkl")
  }

  @Test("A date is a condition only if it is a second older than the response")
  func dates() async throws {
    let date = HTTPHeader(name: "Date", value: "Mon, 01 Jan 2024 10:00:01 GMT")
    try await breakOff(old, date)
    server.enqueue(part("4567", "4-7/10"))
    _ = await Terminal().run("-co", path, server.url("/f"))
    #expect(try await server.takeRequest().header("If-Range") == old.value)
    try await breakOff(old, HTTPHeader(name: "Date", value: old.value))
    server.enqueue(part("456789", "4-9/10"))
    _ = await Terminal().run("-co", path, server.url("/f"))
    #expect(try await server.takeRequest().header("If-Range") == nil)
  }

  @Test("A weak entity tag is not a condition")
  func weakTag() async throws {
    try await breakOff(HTTPHeader(name: "ETag", value: "W/\"v1\""))
    server.enqueue(part("456789", "4-9/10", tag: "W/\"v1\""))
    #expect(await Terminal().run("-co", path, server.url("/f")).status == .success)
    let request = try await server.takeRequest()
    #expect(request.header("If-Range") == nil && request.header("Range") == "bytes=4-")
    #expect(content() == "0123456789")
  }

  @Test("A server that ignores the condition is found out by the tag, the date or the length")
  func ignoredCondition() async throws {
    let parts = [
      part("efghij", "4-9/10", tag: "\"v2\""), part("efghijk", "4-10/11"),
      part("efghij", "4-9/10"), part("efghij", "4-9/10", tag: "W/\"v1\""),
      part("efghij", "4-9/10").with(header: "Last-Modified", value: old.value),
      part("efghij", "4-9/10").with(header: "Last-Modified", value: "Tue, 02 Jan 2024 10:00:00 GMT"),
      part("efghij", "4-9/10", tag: "\"v1\""),
    ]
    let tag = HTTPHeader(name: "ETag", value: "\"v1\"")
    let date = HTTPHeader(name: "Date", value: "Mon, 01 Jan 2024 11:00:00 GMT")
    for (index, part) in parts.enumerated() {
      if index < 5 { try await breakOff(tag) } else { try await breakOff(old, date) }
      server.enqueue(part)
      let run = await Terminal().run("-co", path, server.url("/f"))
      #expect(run.status == .failure)
      #expect(run.error.contains("has changed") && run.error.contains(path))
      #expect(content() == "0123")
      _ = try await server.takeRequest()
    }
  }

  @Test("A server that sends less than the missing part does not complete the file")
  func shortPart() async throws {
    try await breakOff(HTTPHeader(name: "ETag", value: "\"v1\""))
    server.enqueue(part("45", "4-5/10", tag: "\"v1\""))
    let run = await Terminal().run("-co", path, server.url("/f"))
    #expect(run.status == .failure)
    #expect(run.error.contains("af -c -o \(path)"))
    #expect(content() == "012345")
    #expect(names == ["f", "f.af-continue"])
  }

  @Test("A status of 416 without a length completes a file of the known length only")
  func unsatisfiable() async throws {
    try await breakOff()
    server.enqueue(.status(416))
    #expect(await Terminal().run("-co", path, server.url("/f")).status == .clientError)
    _ = try folder.file("f", "0123456789")
    server.enqueue(.status(416))
    #expect(await Terminal().run("-co", path, server.url("/f")).status == .success)
    #expect(content() == "0123456789")
    #expect(names == ["f"])
  }

  @Test("A file that was longer is not complete because it has become as short as the part")
  func shortened() async throws {
    try await breakOff()
    server.enqueue(.status(416).with(header: "Content-Range", value: "bytes */4"))
    #expect(await Terminal().run("-co", path, server.url("/f")).status == .clientError)
    #expect(content() == "0123")
  }

  @Test("The version is known for a name as long as the file system allows", arguments: [243, 244, 255])
  func longName(count: Int) async throws {
    let path = folder.path(String(repeating: "x", count: count))
    let tag = HTTPHeader(name: "ETag", value: "\"v1\"")
    var reply = Reply.text("0123456789").with(effect: .closeAfterBody(bytes: 4))
    reply.headers.append(tag)
    server.enqueue(reply)
    #expect(await Terminal().run("-o", path, server.url("/f")).status == .failure)
    _ = try await server.takeRequest()
    #expect(names.count == 2 && names.allSatisfy { $0.utf8.count <= 255 })
    server.enqueue(part("456789", "4-9/10", tag: "\"v1\""))
    let run = await Terminal().run("-co", path, server.url("/f"))
    #expect(run.status == .success, "\(run.error)")
    #expect(try await server.takeRequest().header("If-Range") == "\"v1\"")
    #expect(FileManager.default.contents(atPath: path) == Data("0123456789".utf8))
    #expect(names.count == 1)
  }

  @Test("A response without the rest leaves the part", arguments: [204, 203, 304])
  func otherStatus(status: Int) async throws {
    try await breakOff(HTTPHeader(name: "ETag", value: "\"v1\""))
    server.enqueue(Reply.status(status).with(header: "ETag", value: "\"v1\""))
    _ = await Terminal().run("-co", path, server.url("/f"))
    #expect(content() == "0123")
  }

  @Test("Bytes that follow the announced part are not appended", arguments: [true, false])
  func longerPart(isChunked: Bool) async throws {
    try await breakOff(HTTPHeader(name: "ETag", value: "\"v1\""))
    let reply = part("456789 and more", "4-9/10", tag: "\"v1\"")
    server.enqueue(isChunked ? reply.framed(.chunked) : reply)
    #expect(await Terminal().run("-co", path, server.url("/f")).status == .failure)
    #expect(content()?.hasPrefix("0123") == true && content()?.contains("more") == false)
  }

  @Test("The part of an encoded body is replaced by the whole file", arguments: [["\"v1\""], []])
  func encodedBody(tags: [String]) async throws {
    // gzip with an uncompressed block of ten bytes, of which four arrive.
    let head: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 1, 10, 0, 0xF5, 0xFF]
    var reply = Reply(body: .bytes(head + Array("0123456789".utf8) + [UInt8](repeating: 0, count: 8)))
      .with(header: "Content-Encoding", value: "gzip").with(effect: .closeAfterBody(bytes: head.count + 4))
    reply.headers += tags.map { HTTPHeader(name: "ETag", value: $0) }
    server.enqueue(reply)
    let run = await Terminal().run("-o", path, server.url("/f"))
    #expect(run.status == .failure && content() == "0123")
    #expect(run.error.contains("The received part is in \(path).\n"), "\(run.error)")
    #expect(names == ["f", "f.af-continue"])
    _ = try await server.takeRequest()
    server.enqueue(.text("0123456789"))
    let second = await Terminal().run("-co", path, server.url("/f"))
    #expect(second.status == .success, "\(second.error)")
    #expect(try await server.takeRequest().header("Range") == nil)
    #expect(content() == "0123456789" && names == ["f"])
  }

  @Test("A part of a coded file is not appended") func codedPart() async throws {
    try await breakOff()
    server.enqueue(part("456789", "4-9/10").with(header: "Content-Encoding", value: "x-other"))
    #expect(await Terminal().run("-co", path, server.url("/f")).status == .failure)
    #expect(content() == "0123")
  }

  @Test(
    "-c excludes another range, whose bytes need not follow the bytes of the file",
    arguments: [nil, "0123"] as [String?])
  func otherRange(started: String?) async throws {
    if let started { _ = try folder.file("f", started) }
    let value = try folder.file("value", "bytes=6-9")
    let session = try folder.file(
      "session", #"{"headers": [{"name": "Range", "value": "bytes=6-9"}], "cookies": []}"#)
    for words in [
      ["Range:bytes=6-9"], ["range:bytes=6-9"], ["Range:", "Range:bytes=6-9"], ["Range;"],
      ["Range:@\(value)"], ["--session-read-only", session], ["--offline", "Range:bytes=6-9"],
      ["--curl", "Range:bytes=6-9"],
    ] {
      let run = await Terminal().run(["-c", "-o", path, server.url("/f")] + words)
      #expect(run.status == .usage && run.error.contains("the field Range"), "\(words): \(run.error)")
      #expect(run.output.isEmpty, "\(words)")
    }
    #expect(server.requestCount == 0 && content() == started)
    server.enqueue(.text("0123456789"))
    let omitted = await Terminal().run(
      "-c", "-o", path, server.url("/f"), "--session-read-only", session, "Range:bytes=6-9", "Range:")
    #expect(omitted.status == .success, "\(omitted.error)")
    #expect(try await server.takeRequest().header("Range") == started.map { _ in "bytes=4-" })
    #expect(content() == "0123456789")
  }

  @Test("A part that the arguments request is saved, and a device has no continuation")
  func otherFiles() async throws {
    server.enqueue(part("23", "2-3/10"), .text("x").with(header: "ETag", value: "\"v1\""))
    #expect(await Terminal().run("-o", path, server.url("/f"), "Range:bytes=2-3").status == .success)
    #expect(content() == "23")
    #expect(await Terminal().run("-o", "/dev/null", server.url("/f")).status == .success)
    #expect(!FileManager.default.fileExists(atPath: "/dev/null.af-continue"))
    #expect(names == ["f"])
  }
}
