import AFCommand
import Alamofire
import ChildProcesses
import Foundation
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Randomness
import Testing

/// The journal next to a partial file of `-c` after a crash.
@Suite("Journals of --continue", .timeLimit(.minutes(5))) struct ContinuationJournalTests {
  private let server: HTTPTestServer
  private let folder: Folder

  init() throws {
    server = try HTTPTestServer()
    folder = try Folder()
  }

  private static let boot = PartialFile.boot
  private static let appended = JournalRecord.wrote(ByteRanges(first: .max))

  private static func journal(boot: String, _ records: [JournalRecord]) throws -> Data {
    let description = TransferDescription(
      kind: .download, url: "", method: "GET", fields: [:], created: 0, boot: "")
    let version = Representation(length: 10, validator: "\"v1\"")
    let all = [.described(description), .identified(version, boot: boot)] + records
    return try #require(Journal.standard.lines(of: all))
  }

  /// Continues a file. Returns the range that was requested.
  private func requested(_ file: String, _ journal: Data) async throws -> String? {
    let path = folder.path("f")
    try Data(file.utf8).write(to: URL(fileURLWithPath: path))
    try journal.write(to: URL(fileURLWithPath: path + ".af-continue"))
    let server = try HTTPTestServer(
      routes: .none.adding("/f") { request, _ in
        Self.reply(
          from: request.header("Range").flatMap { Int($0.dropFirst("bytes=".count).dropLast()) } ?? 0)
      })
    let run = await Terminal.pipe.run("-c", "-o", path, server.url("/f"))
    #expect(run.status == .success, "\(run.error)")
    #expect(content == "0123456789")
    #expect(names == ["f"])
    return server.recordedRequests.last?.header("Range")
  }

  private static func reply(from start: Int) -> Reply {
    var reply = Reply.text(String("0123456789".dropFirst(start))).with(header: "ETag", value: "\"v1\"")
    guard start > 0 else { return reply }
    reply = reply.with(header: "Content-Range", value: "bytes \(start)-9/10")
    reply.status = 206
    return reply
  }

  private var content: String? {
    FileManager.default.contents(atPath: folder.path("f")).map { String(decoding: $0, as: UTF8.self) }
  }

  private var names: [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []).sorted()
  }

  private func written() throws -> JournalState {
    let bytes = try #require(FileManager.default.contents(atPath: folder.path("f.af-continue")))
    return try #require(Journal.standard.state(of: bytes))
  }

  @Test("In the same boot all bytes of the file count, in another one those on the disk")
  func boots() async throws {
    #expect(try await requested("0123", try Self.journal(boot: Self.boot, [Self.appended])) == "bytes=4-")
    let noted = JournalRecord.present(ByteRanges(first: 3))
    let other = try Self.journal(boot: "another", [noted, Self.appended])
    #expect(try await requested("012xxxx", other) == "bytes=3-")
    #expect(try await requested("xxxx", try Self.journal(boot: "another", [Self.appended])) == nil)
    #expect(try await requested("01", other) == "bytes=2-", "the file is shorter")
  }

  @Test("A journal of a later version, one that contradicts itself, and a damaged one begin again")
  func unusable() async throws {
    let json = #"{"shrunk":{"size":3}}"#
    let sum = try #require(OpenSSLHashes().text(.sha256, Array(json.utf8)))
    let good = try Self.journal(boot: Self.boot, [Self.appended])
    #expect(try await requested("xxxx", good + Data("\(sum.prefix(16)) \(json)\n".utf8)) == nil)
    #expect(try await requested("xxxx", Data("torn".utf8) + good) == nil)
    let gap = try Self.journal(boot: Self.boot, [.wrote(ByteRanges([1..<4]))])
    #expect(try await requested("xxxx", gap) == nil)
  }

  @Test("The bytes of a download that broke off are noted to be on the disk, and its journal has no URL")
  func brokenOff() async throws {
    for (arguments, count) in [(["-o"], 4), (["-c", "-o"], 6)] {
      let start = count == 6 ? 4 : 0
      server.enqueue(Self.reply(from: start).with(effect: .closeAfterBody(bytes: count - start)))
      let run = await Terminal.pipe.run(arguments + [folder.path("f"), server.url("/f?secret")])
      #expect(run.status == .failure)
      #expect(content == String("0123456789".prefix(count)))
      let state = try written()
      #expect(state.receivedSize(boot: "another", fileSize: .max) == Int64(count))
      #expect(state.receivedSize(boot: Self.boot, fileSize: 10) == 10, "later bytes are appended")
      #expect(state.representation == Representation(length: 10, validator: "\"v1\""))
      #expect(state.description.url.isEmpty)
    }
  }

  @Test("A continued download of another boot counts its new bytes") func continuedInAnotherBoot()
    async throws
  {
    let path = folder.path("f")
    try Data("012xx".utf8).write(to: URL(fileURLWithPath: path))
    try Self.journal(boot: "another", [.present(ByteRanges(first: 3)), Self.appended])
      .write(to: URL(fileURLWithPath: path + ".af-continue"))
    server.enqueue(Self.reply(from: 3).with(effect: .closeAfterBody(bytes: 4)))
    #expect(await Terminal.pipe.run("-c", "-o", path, server.url("/f")).status == .failure)
    #expect(content == "0123456")
    #expect(try written().receivedSize(boot: Self.boot, fileSize: 7) == 7)
    #expect(try written().receivedSize(boot: "third", fileSize: 7) == 7)
  }

  @Test(
    "What follows a damaged line in a journal is there in the next run",
    arguments: ["torn", "torn\n", String(repeating: "\0", count: 100)])
  func continuedAfterDamage(damage: String) async throws {
    let path = folder.path("f")
    try Data("012xx".utf8).write(to: URL(fileURLWithPath: path))
    let journal = try Self.journal(boot: "another", [.present(ByteRanges(first: 3)), Self.appended])
    try (journal + Data(damage.utf8)).write(to: URL(fileURLWithPath: path + ".af-continue"))
    server.enqueue(Self.reply(from: 3).with(effect: .closeAfterBody(bytes: 4)), Self.reply(from: 7))
    #expect(await Terminal.pipe.run("-c", "-o", path, server.url("/f")).status == .failure)
    #expect(content == "0123456")
    #expect(try written().receivedSize(boot: Self.boot, fileSize: 7) == 7, "the lines are not found")
    #expect(await Terminal.pipe.run("-c", "-o", path, server.url("/f")).status == .success)
    #expect(server.recordedRequests.map { $0.header("Range") } == ["bytes=3-", "bytes=7-"])
    #expect(content == "0123456789")
    #expect(names == ["f"])
  }

  #if !THREAD_SANITIZER  // It keeps a part of its memory in a file.
    @Test("A full disk leaves no journal") func fullDisk() async throws {
      server.enqueue(Self.reply(from: 0))
      let run = try await ChildRun(
        ["/bin/sh", "-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""]
          + [Programs.af, "-o", folder.path("f"), server.url("/f")])
      #expect(run.status == 1 && run.complaints.contains("File too large"), "\(run.complaints)")
      #expect(names == ["f"])
    }
  #endif

  @Test("An empty file with the name of a journal counts as none", arguments: [["-o"], ["-d"]])
  func emptyJournal(option: [String]) async throws {
    _ = try folder.file("f.af-continue", "")
    var terminal = Terminal.pipe
    terminal.folder = folder.path
    server.enqueue(Self.reply(from: 0).with(effect: .closeAfterBody(bytes: 4)), Self.reply(from: 4))
    let arguments = option == ["-o"] ? ["-o", folder.path("f")] : option
    #expect(await terminal.run(arguments + [server.url("/f")]).status == .failure)
    #expect(names == ["f", "f.af-continue"])
    _ = try await server.takeRequest()
    #expect(await terminal.run("-c", "-o", folder.path("f"), server.url("/f")).status == .success)
    #expect(try await server.takeRequest().header("If-Range") == "\"v1\"")
    #expect(content == "0123456789")
    #expect(names == ["f"])
  }

  @Test("An empty journal is removed with the end of its file") func emptyJournalOfWholeFile() async throws {
    _ = try folder.file("f.af-continue", "")
    // Without a validator and a length there is nothing to write into a journal.
    server.enqueue(Reply(body: .parts(["0123"])).framed(.chunked))
    #expect(await Terminal.pipe.run("-o", folder.path("f"), server.url("/f")).status == .success)
    #expect(names == ["f"])
  }

  @Test("A journal that was cut or damaged at any byte counts no byte that was not flushed", .seeded)
  func damage() throws {
    var generator = Seed.generator()
    let whole = try Self.journal(boot: "another", [.present(ByteRanges(first: 3)), Self.appended])
    let firstLine = try #require(whole.firstIndex(of: UInt8(ascii: "\n"))) + 1
    for position in 0..<whole.count {
      let cut = PartialFileJournal(whole.prefix(position), fileSize: 7)
      #expect((cut == nil) == (position < firstLine - 1), "\(position)")
      #expect([0, 3].contains(cut?.offset ?? 0), "\(position)")
      var changed = whole
      changed[position] ^= 1 << UInt8.random(in: 0...7, using: &generator)
      #expect([0, 3].contains(PartialFileJournal(changed, fileSize: 7)?.offset), "\(position)")
    }
  }
}
