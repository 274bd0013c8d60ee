import AFCommand
import Foundation
import HTTPTestServer
import Synchronization
import Testing

/// Downloads in segments, and checksums.
@Suite(.timeLimit(.minutes(5))) struct SegmentTests {
  private let server: HTTPTestServer
  private let folder: Folder

  init() throws {
    server = try HTTPTestServer()
    folder = try Folder()
  }

  /// A file that is divided into segments.
  private let bytes = Data((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 / 7) })
  /// The SHA-256 of "body".
  private let checksum = "sha256:230d8358dc8e8890b4c58deeb62912ee2f20357ae92a5cc861b98e68fe31acb5"

  @Test("A file with the expected checksum is saved")
  func match() async throws {
    server.enqueue(.text("body"))
    let run = await Terminal().run("-o", folder.path("f"), "--checksum", checksum, server.url("/"))
    #expect(run.status == .success, "\(run.error)")
    #expect(FileManager.default.contents(atPath: folder.path("f")) == Data("body".utf8))
    #expect(run.bytes.isEmpty)
  }

  @Test("A file with another checksum is removed, and the failure names the option")
  func mismatch() async {
    server.enqueue(.text("other"))
    let run = await Terminal().run("-o", folder.path("f"), "--checksum", checksum, server.url("/"))
    #expect(run.status == .failure)
    #expect(run.error.contains("--checksum"))
    #expect(!FileManager.default.fileExists(atPath: folder.path("f")))
  }

  @Test("A file with another digest than the server sends is removed, and the failure names the digest")
  func digestOfServer() async {
    let wrong = "sha-256=:\(Data(repeating: 1, count: 32).base64EncodedString()):"
    for option in [["--segments", "2"], ["--checksum", checksum]] {
      server.enqueue(.text("body").with(header: "Repr-Digest", value: wrong))
      let run = await Terminal().run(option + ["-o", folder.path("f"), server.url("/")])
      #expect(run.status == .failure)
      #expect(run.error.contains("digest that the server has sent, but 230d8358dc8e"), "\(run.error)")
      #expect(!run.error.contains("--checksum"), "\(run.error)")
      #expect(!FileManager.default.fileExists(atPath: folder.path("f")))
    }
  }

  @Test("Segments are requested at a time, and make the whole file")
  func segments() async throws {
    let count = 5_000_000
    let whole = await Terminal.pipe.run(server.url("/range/\(count)")).bytes
    server.forgetRequests()
    let run = await Terminal().run(
      "-o", folder.path("f"), "--segments", "3", server.url("/range/\(count)"), "X-A:1")
    #expect(run.status == .success, "\(run.error)")
    #expect(FileManager.default.contents(atPath: folder.path("f")) == whole)
    let requests = server.recordedRequests
    #expect(requests.count > 1)
    #expect(requests.allSatisfy { $0.header("Range") != nil && $0.header("X-A") == "1" })
  }

  @Test("-d gives the file the name that the server suggests, and never replaces a file")
  func suggestedName() async throws {
    var terminal = Terminal()
    terminal.folder = folder.path
    for name in ["evil.txt", "evil-1.txt"] {
      server.enqueue(
        .text("body").with(header: "Content-Disposition", value: #"attachment; filename="../../evil.txt""#))
      let run = await terminal.run("-d", "--segments", "2", "--checksum", checksum, server.url("/dir/x"))
      #expect(run.status == .success, "\(run.error)")
      #expect(run.error.contains("Saved in \(name)\n"))
      #expect(FileManager.default.contents(atPath: folder.path(name)) == Data("body".utf8))
    }
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == [
        "evil-1.txt", "evil.txt",
      ])
  }

  @Test("A file with a name that the server suggests is never the part of a later download")
  func plantedPart() async throws {
    var terminal = Terminal()
    terminal.folder = folder.path
    let file = HeldFile(bytes)
    file.isWhole.store(true, ordering: .relaxed)
    let server = try HTTPTestServer(routes: file.routes)
    for suffix in ["partial", "ranges", "ranges.new"] {
      let name = "file.bin.alamofire-\(suffix)"
      self.server.enqueue(
        .text("planted").with(header: "Content-Disposition", value: "attachment; filename=\(name)"))
      let run = await terminal.run("-d", self.server.url("/x"))
      #expect(run.error.contains("Saved in \(name)-1\n"), "\(run.error)")
    }
    let run = await terminal.run("-o", folder.path("file.bin"), "--segments", "1", server.url("/file"))
    #expect(run.status == .success, "\(run.error)")
    #expect(FileManager.default.contents(atPath: folder.path("file.bin")) == bytes)
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    #expect(names.count { $0.hasSuffix("-1") } == 3 && names.count == 4, "\(names)")
  }

  @Test("-d continues the file of an earlier run")
  func continuedName() async throws {
    var terminal = Terminal()
    terminal.folder = folder.path
    let broken = HeldFile(bytes)
    let server = try HTTPTestServer(routes: broken.routes)
    #expect(await terminal.run("-d", "--segments", "1", server.url("/file")).status != .success)
    #expect(FileManager.default.fileExists(atPath: folder.path("file.af-download.alamofire-partial")))
    broken.isWhole.store(true, ordering: .relaxed)
    server.forgetRequests()
    #expect(await terminal.run("-d", "--segments", "1", server.url("/file")).status == .success)
    #expect(FileManager.default.contents(atPath: folder.path("file")) == bytes)
    #expect(server.recordedRequests.first?.header("Range")?.hasPrefix("bytes=0-") == false)
  }

  @Test("Digest answers the challenges to segments")
  func digest() async {
    let url = server.url("/digest-auth/auth/ann/secret")
    let run = await Terminal().run(
      "-A", "digest", "-a", "ann:secret", "--segments", "2", "-o", folder.path("f"), url)
    #expect(run.status == .success, "\(run.error)")
    #expect(FileManager.default.contents(atPath: folder.path("f"))?.isEmpty == false)
    let refused = await Terminal().run(
      "-A", "digest", "-a", "ann:wrong", "--segments", "2", "-o", folder.path("g"), url)
    #expect(refused.status == .clientError)
  }

  @Test("A pipe or a device is not replaced by a file", arguments: [["--segments", "2"], ["--checksum"]])
  func specialFiles(option: [String]) async throws {
    let option = option == ["--checksum"] ? option + [checksum] : option
    let pipe = folder.path("p")
    try #require(mkfifo(pipe, 0o600) == 0)
    try FileManager.default.createSymbolicLink(atPath: folder.path("l"), withDestinationPath: "p")
    for path in [pipe, folder.path("l")] {
      let run = await Terminal.pipe.run(option + ["-o", path, server.url("/")])
      #expect(run.status == .usage && run.error.contains("'\(path)' is no regular file"), "\(run.error)")
    }
    #expect(server.requestCount == 0)
    #expect(kind("p") == S_IFIFO && kind("l") == S_IFLNK)
  }

  @Test("A file is written where a link leads, and the link stays", arguments: ["target", "missing"])
  func links(target: String) async throws {
    _ = try folder.file("target", "old")
    let link = folder.path("l")
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: target)
    server.enqueue(.text("body"))
    let run = await Terminal.pipe.run("--checksum", checksum, "-o", link, server.url("/"))
    #expect(run.status == .success, "\(run.error)")
    #expect(kind("l") == S_IFLNK && kind(target) == S_IFREG)
    #expect(FileManager.default.contents(atPath: folder.path(target)) == Data("body".utf8))
  }

  @Test("A file that is replaced keeps its permissions", arguments: [mode_t(0o600), 0o755, 0o640])
  func permissions(mode: mode_t) async throws {
    let path = try folder.file("f", "old")
    let link = folder.path("l")
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "f")
    #expect(chmod(path, mode) == 0)
    for name in [path, link] {
      server.enqueue(.text("body"))
      let run = await Terminal.pipe.run("--checksum", checksum, "-o", name, server.url("/"))
      #expect(run.status == .success, "\(run.error)")
      #expect(FileManager.default.contents(atPath: path) == Data("body".utf8))
      var information = stat()
      #expect(stat(path, &information) == 0 && information.st_mode & 0o7777 == mode, "\(name)")
    }
  }

  @Test(
    "A file that is replaced lends the new one no rights of its owner or its group",
    arguments: [mode_t(0o4755), 0o2755, 0o6700])
  func privileges(mode: mode_t) async throws {
    let path = try folder.file("f", "old")
    func permissions() -> mode_t? {
      var information = stat()
      return stat(path, &information) == 0 ? information.st_mode & 0o7777 : nil
    }
    #expect(chmod(path, mode) == 0)
    server.enqueue(.text("body"))
    let run = await Terminal.pipe.run("--checksum", checksum, "-o", path, server.url("/"))
    #expect(run.status == .success, "\(run.error)")
    #expect(permissions() == mode & 0o777)
    #expect(chmod(path, mode) == 0)
    try PrivateFile.write(Data("new".utf8), to: path, keepsMode: true)
    #expect(permissions() == mode & 0o777)
  }

  @Test("A file that must not be written is not replaced", .enabled(if: geteuid() != 0))
  func readOnlyFile() async throws {
    let path = try folder.file("f", "old")
    #expect(chmod(path, 0o444) == 0)
    let run = await Terminal.pipe.run("--checksum", checksum, "-o", path, server.url("/"))
    #expect(run.status == .usage && run.error.contains("'\(path)' cannot be written"), "\(run.error)")
    #expect(FileManager.default.contents(atPath: path) == Data("old".utf8))
    #expect(server.requestCount == 0)
  }

  private func kind(_ name: String) -> mode_t? {
    var information = stat()
    return lstat(folder.path(name), &information) == 0 ? information.st_mode & S_IFMT : nil
  }

  @Test("A failure has the exit status of its response")
  func failure() async {
    let run = await Terminal().run("-o", folder.path("f"), "--segments", "2", server.url("/status/404"))
    #expect(run.status == .clientError)
    #expect(!FileManager.default.fileExists(atPath: folder.path("f")))
  }

  @Test(
    "Options that do not fit are refused",
    arguments: [
      ["--segments", "2"], ["--checksum", "sha256:00"], ["--segments", "0", "-o", "f"],
      ["--checksum", "md5:00", "-o", "f"],
      ["--checksum", "sha256:00", "-o", "f"], ["--segments", "2", "-co", "f"],
      ["--segments", "2", "-o", "f", "-f", "a=b"], ["--segments", "2", "-o", "f", "Range:bytes=0-9"],
      ["--segments", "2", "-o", "f", "Range:@file"], ["--segments", "2", "-d", "--timing"],
      ["--segments", "2", "-d", "-h"], ["--segments", "2", "-d", "-v"], ["--segments", "2", "-d", "-b"],
      ["--segments", "2", "-d", "-p", "h"], ["--segments", "2", "-q", "-d", "--timing"],
    ])
  func mistakes(arguments: [String]) {
    #expect(throws: UsageError.self) { try ArgumentParser.parse(["example.com"] + arguments) }
  }

  @Test("The request of segments can be shown in parts") func offline() async {
    let words = ["--offline", "-p", "H", "--segments", "2", "-o", folder.path("f"), server.url("/x")]
    let run = await Terminal.pipe.run(words)
    #expect(run.status == .success && run.output.hasPrefix("GET /x HTTP/1.1\n"), "\(run.error)")
  }

  @Test("A Range field of a session is refused before anything is sent")
  func rangeOfSession() async throws {
    let field = #"{"name": "Range", "value": "bytes=0-9"}"#
    let session = try folder.file("s.json", #"{"headers": [\#(field)], "cookies": []}"#)
    let words = ["--segments", "2", "-o", folder.path("f"), "--session", session, server.url("/")]
    let run = await Terminal.pipe.run(words)
    #expect(run.status == .usage && run.error.contains("leave out the field Range"), "\(run.error)")
    #expect(server.requestCount == 0)
    server.enqueue(.text("body"))
    let other = await Terminal.pipe.run(words + ["Range:"])
    #expect(other.status == .success, "\(other.error)")
  }
}

/// A file with ranges. At first the server refuses every part but the first.
private final class HeldFile: Sendable {
  let isWhole = Atomic(false)
  private let bytes: Data

  init(_ bytes: Data) { self.bytes = bytes }

  var routes: Routes {
    Routes.none.adding("/file", methods: ["GET"]) { [self] request, _ in reply(to: request) }
  }

  private func reply(to request: RecordedRequest) -> Reply {
    let ends = request.header("Range")?.dropFirst(6).split(separator: "-").compactMap { Int($0) } ?? []
    guard ends.count == 2 else { return .status(400) }
    guard isWhole.load(ordering: .relaxed) || ends[0] == 0 else { return .status(403) }
    let range = ends[0]..<min(ends[1] + 1, bytes.count)
    var reply = Reply.data(Array(bytes[range])).with(header: "ETag", value: "\"v1\"")
      .with(
        header: "Content-Range",
        value: "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(bytes.count)")
    reply.status = 206
    return reply
  }
}
