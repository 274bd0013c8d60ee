import Alamofire
import ChildProcesses
import Foundation
import HTTPTestServer
import Testing

@testable import AFCommand

/// Parts of files from servers that send other bytes, other numbers or other names than they should.
@Suite(.timeLimit(.minutes(5))) struct HostilePartTests {
  private let server: HTTPTestServer
  private let folder: Folder

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

  private func part(_ text: String, _ range: String?, status: Int = 206) -> Reply {
    var reply = Reply.text(text)
    if let range { reply = reply.with(header: "Content-Range", value: range) }
    reply.status = status
    return reply
  }

  // MARK: The file

  /// Returns a file without a journal, as it was when its rest was requested.
  private func part(_ size: Int64) -> FilePart { FilePart(size: size, journal: JournalFile(beside: path)) }

  @Test("A part that was shortened or removed is not filled with zeros", arguments: [false, true])
  func shortened(isRemoved: Bool) throws {
    _ = try folder.file("f", isRemoved ? "" : "12")
    if isRemoved { try FileManager.default.removeItem(atPath: path) }
    #expect(throws: SavedFile.Failure.self) {
      try SavedFile(path: path, seen: part(5))
    }
    #expect(content() == (isRemoved ? nil : "12"))
  }

  @Test("A file is free at the end of its download, also if a process that is being started has a copy of it")
  func copiedDescriptor() throws {
    var first: SavedFile? = try SavedFile(path: path)
    let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { Int32($0) }
      .first { (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")) == path }
    let copy = dup(try #require(open))
    defer { close(copy) }
    #expect(throws: SavedFile.Failure.self) { try SavedFile(path: path) }
    withExtendedLifetime(first) {}
    first = nil
    _ = try SavedFile(path: path)
  }

  @Test("A file that another download writes is left alone", arguments: [false, true])
  func inUse(isContinued: Bool) throws {
    let first = try SavedFile(path: path)
    try first.write(Data("12345".utf8))
    #expect(throws: SavedFile.Failure.self) {
      try SavedFile(path: path, seen: isContinued ? part(5) : nil)
    }
    #expect(content() == "12345")
  }

  @Test("A file with the name that the server suggests is left alone, too", arguments: [false, true])
  func suggestedInUse(isContinued: Bool) throws {
    let first = try SavedFile(suggestedName: "f", folder: folder.path)
    try first.write(Data("12345".utf8))
    #expect(throws: SavedFile.Failure.self) {
      try SavedFile(path: path, seen: isContinued ? part(5) : nil)
    }
    #expect(content() == "12345")
    try first.finish()
    _ = try SavedFile(path: path)
  }

  @Test("Two programs may write to a device at once") func device() throws {
    let first = try SavedFile(path: "/dev/null")
    let second = try SavedFile(path: "/dev/null")
    try first.write(Data([1]))
    try second.write(Data([1]))
  }

  @Test(
    "Bytes that do not reach the disk are a failure, also if the system reports it at the end",
    arguments: ["flush", "close", "interrupted"])
  func lostBytes(call: String) async throws {
    let reply = Reply.text("0123456789").with(header: "ETag", value: "\"v1\"")
    var terminal = Terminal(isErrorTerminal: true)
    terminal.fileCalls.flushInterval = 4
    let fail = { @Sendable (code: Int32) -> Int32 in
      errno = code
      return -1
    }
    switch call {
    case "flush": terminal.fileCalls.flush = { _ in fail(EIO) }
    default:
      terminal.fileCalls.close = { descriptor in
        _ = close(descriptor)
        return fail(call == "close" ? EIO : EINTR)
      }
    }
    server.enqueue(reply)
    let run = await terminal.run("-o", path, server.url("/f"))
    let isSaved = call == "interrupted"
    #expect(run.status == (isSaved ? .success : .failure), "\(run.error)")
    #expect(run.error.contains("Saved in") == isSaved)
    #expect(run.error.contains("cannot be written: Input/output error.") == !isSaved, "\(run.error)")
    #expect(content() == (isSaved ? "0123456789" : ""))
    server.enqueue(isSaved ? .status(416).with(header: "Content-Range", value: "bytes */10") : reply)
    let next = await Terminal.pipe.run("-c", "-o", path, server.url("/f"))
    #expect(next.status == .success && content() == "0123456789", "\(next.error)")
    #expect(names == ["f"])
  }

  // MARK: Ranges

  @Test(
    "A range that contradicts itself, or that is none, is refused and changes nothing",
    arguments: [
      "bytes 1-1/-9223372036854775808", "bytes 1-1/-1", "bytes -1-1/2", "bytes 1-9223372036854775807/*",
      "bytes 1-1/1", "bytes 1-0/2", "bytes +1-1/2", "bytes 1-1/2/3", "bytes 1-1", "bytes 1-1/", "bytes 1-/2",
      "bytes */2", "bytes */*", "bytes  1-1/2", "byte 1-1/2", "1-1/2", "bytes 1-1/2, bytes 1-1/2",
      "bytes 1-1/99999999999999999999", "bytes 99999999999999999999-1/2", "bytes 1\u{301}-1/2", "bytes 0-0/2",
      "bytes 2-2/3", "",
    ])
  func brokenRanges(range: String) async throws {
    _ = try folder.file("f", "1")
    server.enqueue(part("x", range))
    let run = try await ChildRun([Programs.af, "-c", "-o", path, server.url("/f")])
    #expect(run.status == 1, "\(run.end)")
    #expect(run.complaints.contains("another part of the file"), "\(run.complaints)")
    #expect(content() == "1")
  }

  @Test("Two ranges in one response are refused, also if they agree")
  func twoRanges() async throws {
    _ = try folder.file("f", "1")
    var reply = part("x", "bytes 1-1/2")
    reply.headers.append(HTTPHeader(name: "Content-Range", value: "bytes 1-1/2"))
    server.enqueue(reply)
    let run = await Terminal.pipe.run("-c", "-o", path, server.url("/f"))
    #expect(run.status == .failure && content() == "1")
  }

  @Test(
    "A status of 416 with a broken length does not prove that the file is complete",
    arguments: [
      "bytes */-1", "bytes */+1", "bytes */", "bytes */*", "bytes 0-0/x", "bytes */-9223372036854775808",
      "bytes */1/1",
      "bytes */99999999999999999999", "bytes */9223372036854775807", "octets */1", "bytes */0", "bytes */2",
    ])
  func brokenUnsatisfiable(range: String) async throws {
    _ = try folder.file("f", "1")
    server.enqueue(part("no", range, status: 416))
    let run = await Terminal.pipe.run("-c", "-o", path, server.url("/f"))
    #expect(run.status == .clientError, "\(run.error)")
    #expect(content() == "1")
  }

  @Test("A body of another length than its range is not appended to the end")
  func otherLengths() async throws {
    for (body, framing, kept) in [
      ("23456", Reply.Framing.contentLength, "01"), ("2", .contentLength, "01"), ("23456", .chunked, "01"),
      ("2", .chunked, "012"),
    ] {
      _ = try folder.file("f", "01")
      server.enqueue(part(body, "bytes 2-3/4").framed(framing))
      let run = await Terminal.pipe.run("-c", "-o", path, server.url("/f"))
      #expect(run.status == .failure, "\(body) \(framing): \(run.error)")
      #expect(content() == kept, "\(body) \(framing)")
    }
    _ = try folder.file("f", "01")
    server.enqueue(part("23", "bytes 2-3/*").framed(.chunked))
    #expect(await Terminal.pipe.run("-c", "-o", path, server.url("/f")).status == .success)
    #expect(content() == "0123")
  }

  @Test("A part that was not asked for never replaces a file", arguments: [["-o"], ["-c", "-o"], ["-d"]])
  func unaskedPart(option: [String]) async throws {
    let isContinued = option.first == "-c"
    if !isContinued { _ = try folder.file("f", "the whole file") }
    var terminal = Terminal.pipe
    terminal.folder = folder.path
    server.enqueue(part("part", "bytes 0-3/14"))
    let run = await terminal.run(option + (option == ["-d"] ? [] : [path]) + [server.url("/f")])
    #expect(run.status == .failure && run.error.contains("another part of the file"), "\(run.error)")
    #expect(content() == (isContinued ? nil : "the whole file"))
    #expect(names == (isContinued ? [] : ["f"]))
  }

  @Test("A file of the length that its record names is not complete until the server says so")
  func completeByRecord() async throws {
    _ = try folder.file("f", "0123")
    _ = try folder.file("f.af-continue", "ETag: \"v1\"\nContent-Length: 4\n")
    server.enqueue(Reply.text("abcdef").with(header: "ETag", value: "\"v2\""))
    let run = await Terminal.pipe.run("-c", "-o", path, server.url("/f"))
    #expect(run.status == .success && content() == "abcdef", "\(run.error)")
    let request = try await server.takeRequest()
    #expect(request.header("Range") == "bytes=4-" && request.header("If-Range") == "\"v1\"")
    _ = try folder.file("f.af-continue", "ETag: \"v2\"\nContent-Length: 6\n")
    server.enqueue(.status(503))
    #expect(await Terminal.pipe.run("-c", "-o", path, server.url("/f")).status == .serverError)
    #expect(content() == "abcdef")
  }

  @Test("The total of a part has to be the length of the record")
  func otherTotal() async throws {
    for (range, isAccepted) in [("bytes 2-3/4", true), ("bytes 2-3/*", true), ("bytes 2-3/5", false)] {
      _ = try folder.file("f", "01")
      _ = try folder.file("f.af-continue", "Content-Length: 4\n")
      server.enqueue(part("23", range))
      let run = await Terminal.pipe.run("-c", "-o", path, server.url("/f"))
      #expect((run.status == .success) == isAccepted, "\(range): \(run.error)")
      #expect(content() == (isAccepted ? "0123" : "01"), "\(range)")
    }
  }

  @Test("A part without a total that ends before or after the length of the record is not the whole rest")
  func shortPartWithoutTotal() async throws {
    for (length, kept) in [(6, "0123"), (3, "01")] {
      _ = try folder.file("f", "01")
      _ = try folder.file("f.af-continue", "ETag: \"v1\"\nContent-Length: \(length)\n")
      server.enqueue(part("23", "bytes 2-3/*").with(header: "ETag", value: "\"v1\""))
      let run = await Terminal.pipe.run("-c", "-o", path, server.url("/f"))
      #expect(run.status == .failure, "\(length): \(run.error)")
      #expect(content() == kept, "\(length)")
      #expect(names == ["f", "f.af-continue"], "\(length)")
    }
    // The next run gets the rest.
    _ = try folder.file("f", "0123")
    _ = try folder.file("f.af-continue", "ETag: \"v1\"\nContent-Length: 6\n")
    server.enqueue(part("45", "bytes 4-5/*").with(header: "ETag", value: "\"v1\""))
    #expect(await Terminal.pipe.run("-c", "-o", path, server.url("/f")).status == .success)
    #expect(content() == "012345" && names == ["f"])
  }

  @Test("A date next to a weak entity tag is not a condition, nor is a tag without its quotation mark")
  func weakValidators() async throws {
    let dates = [
      HTTPHeader(name: "Last-Modified", value: "Mon, 01 Jan 2024 10:00:00 GMT"),
      HTTPHeader(name: "Date", value: "Mon, 01 Jan 2024 11:00:00 GMT"),
    ]
    for (tag, isConditional) in [
      (nil, true), ("W/\"v1\"", false), ("\"v1", false), ("v1", false), ("\"v1\"", true),
      ("\"v\u{7F}\"", false),
    ] as [(String?, Bool)] {
      try? FileManager.default.removeItem(atPath: path)
      var reply = Reply.text("0123456789").with(effect: .closeAfterBody(bytes: 4))
      reply.headers += dates + (tag.map { [HTTPHeader(name: "ETag", value: $0)] } ?? [])
      server.enqueue(reply, part("456789", "bytes 4-9/10"))
      _ = await Terminal.pipe.run("-o", path, server.url("/f"))
      _ = await Terminal.pipe.run("-c", "-o", path, server.url("/f"))
      let condition = server.recordedRequests.last?.header("If-Range")
      #expect((condition != nil) == isConditional, "\(tag ?? "none"): \(condition ?? "none")")
      server.forgetRequests()
    }
  }

  // MARK: Records

  @Test(
    "A file with the name of a record that is none is neither read, nor replaced, nor removed",
    arguments: [
      "my own notes\n", "ETag: \"v1\"", "ETag: W/\"v1\"\n", "Content-Length: -4\n", "ETag: \"a\"\nmore\n",
    ])
  func ownFile(text: String) async throws {
    _ = try folder.file("f.af-continue", text)
    server.enqueue(
      Reply.text("0123").with(header: "ETag", value: "\"v1\"").with(effect: .closeAfterBody(bytes: 2)))
    #expect(await Terminal.pipe.run("-o", path, server.url("/f")).status == .failure)
    #expect(content("f.af-continue") == text)
    server.enqueue(part("23", "bytes 2-3/4"))
    let run = await Terminal.pipe.run("-c", "-o", path, server.url("/f"))
    #expect(run.status == .success, "\(run.error)")
    #expect(server.recordedRequests.last?.header("If-Range") == nil)
    #expect(content() == "0123" && content("f.af-continue") == text)
  }

  @Test("A record is used if it has the owner of its file, whatever the user of the process is")
  func ownerOfRecord() throws {
    _ = try folder.file("f", "01")
    _ = try folder.file("f.af-continue", "ETag: \"v1\"\n")
    func record(of user: uid_t) -> JournalFile { JournalFile(beside: path, user: user) }
    for user in [geteuid(), geteuid() + 1] {
      #expect(!record(of: user).isForeign && record(of: user).read(fileSize: 2)?.validator == "\"v1\"")
    }
    // In a shared folder, users can give second names to the files of others.
    try FileManager.default.linkItem(atPath: path + ".af-continue", toPath: folder.path("second"))
    #expect(record(of: geteuid() + 1).isForeign && record(of: geteuid() + 1).read(fileSize: 2) == nil)
    #expect(!record(of: geteuid()).isForeign && record(of: geteuid()).read(fileSize: 2) != nil)
    try FileManager.default.removeItem(atPath: folder.path("second"))
    // Nothing says that the file belongs to the same user.
    try FileManager.default.removeItem(atPath: path)
    #expect(record(of: geteuid() + 1).isForeign && record(of: geteuid() + 1).read(fileSize: 2) == nil)
    #expect(!record(of: geteuid()).isForeign)
  }

  @Test("A new record with the owner of its file is written, continued and removed, whatever the user is")
  func newRecord() throws {
    _ = try folder.file("f", "01")
    let journal = try #require(PartialFileJournal(Data("ETag: \"v1\"\n".utf8), fileSize: 0))
    let record = JournalFile(beside: path, user: geteuid() + 1)
    #expect(record.write(journal))
    #expect(JournalFile(beside: path).read(fileSize: 0)?.validator == "\"v1\"")
    let size = content("f.af-continue")?.utf8.count ?? 0
    record.note(flushed: 2)
    #expect(content("f.af-continue")?.utf8.count ?? 0 > size, "nothing was appended")
    record.remove()
    #expect(names == ["f"])
  }

  @Test(
    "A new record for which the file system shows a third owner leaves no file, which would stay for ever")
  func recordOfThirdOwner() throws {
    let journal = try #require(PartialFileJournal(Data("ETag: \"v1\"\n".utf8), fileSize: 0))
    let record = JournalFile(beside: path, user: geteuid() + 1)
    // Without the file, the owner of the record is neither its owner nor the user.
    #expect(!record.write(journal))
    #expect(names == [] && record.isAbsent && !record.isForeign)
  }

  @Test("An empty file of another user with the name of a record is neither replaced nor removed")
  func foreignEmptyFile() throws {
    _ = try folder.file("f.af-continue", "")
    let record = JournalFile(beside: path, user: geteuid() + 1)
    #expect(record.isForeign && !record.isAbsent)
    let journal = try #require(PartialFileJournal(Data("ETag: \"v1\"\n".utf8), fileSize: 0))
    #expect(!record.write(journal))
    record.remove()
    #expect(content("f.af-continue")?.isEmpty == true)
  }

  @Test("-d writes no record over a file of the user, but takes another name")
  func ownRecordOfSuggestedName() async throws {
    let own = "ETag: \"mine\"\nContent-Length: 7\n"
    _ = try folder.file("f.af-continue", own)
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("f-1.af-continue"), withDestinationPath: folder.path("elsewhere"))
    var terminal = Terminal.pipe
    terminal.folder = folder.path
    server.enqueue(
      Reply.text("0123456789").with(header: "ETag", value: "\"v1\"").with(effect: .closeAfterBody(bytes: 4)),
      Reply.text("whole").with(header: "ETag", value: "\"v1\""))
    let run = await terminal.run("-d", server.url("/f"))
    #expect(run.status == .failure && run.error.contains("The received part is in f-2;"), "\(run.error)")
    #expect(await terminal.run("-d", server.url("/f")).status == .success)
    #expect(content("f-2") == "0123")
    let record = try #require(FileManager.default.contents(atPath: folder.path("f-2.af-continue")))
    #expect(PartialFileJournal(record, fileSize: 4)?.validator == "\"v1\"")
    #expect(content("f-3") == "whole")
    #expect(content("f.af-continue") == own)
    #expect(names == ["f-1.af-continue", "f-2", "f-2.af-continue", "f-3", "f.af-continue"])
  }

  @Test("A record that is a link is not written through", arguments: [["-o"], ["-c", "-o"]])
  func linkedRecord(option: [String]) async throws {
    let target = try folder.file("target", "ETag: \"v0\"\nContent-Length: 9\n")
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("f.af-continue"), withDestinationPath: target)
    server.enqueue(
      Reply.text("0123").with(header: "ETag", value: "\"v1\"").with(effect: .closeAfterBody(bytes: 2)))
    #expect(await Terminal.pipe.run(option + [path, server.url("/f")]).status == .failure)
    #expect(content("target") == "ETag: \"v0\"\nContent-Length: 9\n")
    var information = stat()
    #expect(lstat(folder.path("f.af-continue"), &information) == 0 && information.st_mode & S_IFMT == S_IFLNK)
  }

  @Test(
    "A name of the server is not the name of a file that a later run reads",
    arguments: [
      ("f.af-continue", "f.af-continue-1"), ("f.af-download", "f.af-download-1"),
      ("af-continue", "af-continue"), ("f.alamofire-partial", "f.alamofire-partial-1"),
      ("f.alamofire-ranges", "f.alamofire-ranges-1"),
      ("f.alamofire-ranges.new", "f.alamofire-ranges.new-1"),
      ("f\u{D4E}.af-continue", "f\u{D4E}.af-continue-1"), ("f.af-continue\u{301}", "f.af-continue\u{301}"),
    ])
  func reservedNames(suggested: String, expected: String) {
    #expect(Array(SavedFile.safe(suggested).utf8) == Array(expected.utf8))
  }

  @Test("A name of the server is shortened to a file that is visible, whatever its Characters are")
  func longCharacters() throws {
    let marks = String(repeating: "\u{301}", count: 95)
    for (name, start, end) in [
      ("a" + marks + ".bash_profile", "a\u{301}", ".bash_profile"),
      ("a" + marks + marks, "a\u{301}", "\u{301}"),
      (String(repeating: "\u{D4E}", count: 90) + ".sh", "\u{D4E}", ".sh"),
    ] {
      let safe = SavedFile.safe(name)
      #expect(safe.utf8.starts(with: start.utf8) && safe.utf8.reversed().starts(with: end.utf8.reversed()))
      #expect(safe.utf8.count > 190 && safe.utf8.count <= 200)
    }
    // A number is put before the last full stop, also if it is no Character of its own.
    for number in ["", "-1"] {
      let file = try SavedFile(suggestedName: "\u{D4E}.txt", folder: folder.path)
      #expect(Array(file.path.utf8) == Array("\u{D4E}\(number).txt".utf8))
    }
  }

  @Test("--segments with -d replaces no file that has the name of its part")
  func ownPartOfSegments() async throws {
    _ = try folder.file("f.af-download", "my own")
    var terminal = Terminal.pipe
    terminal.folder = folder.path
    let run = await terminal.run("-d", "--segments", "2", server.url("/f"))
    #expect(run.status == .usage && run.error.contains("f.af-download' is in the way"), "\(run.error)")
    #expect(content("f.af-download") == "my own" && server.requestCount == 0)
  }

  @Test("Fields from before the first release are read, and another text is not a journal")
  func version1() throws {
    for (text, validator, length) in [
      ("ETag: \"a\"\nContent-Length: 10\n", "\"a\"", 10), ("Last-Modified: Mon\n", "Mon", nil),
      ("Content-Length: 9223372036854775807\n", nil, .max), ("ETag: \"\u{2028}\"\n", "\"\u{2028}\"", nil),
      // Both validators.
      ("ETag: \"a\"\nLast-Modified: Mon\nContent-Length: 3\n", "\"a\"", 3),
    ] as [(String, String?, Int64?)] {
      let journal = try #require(PartialFileJournal(Data(text.utf8), fileSize: 7), "\(text)")
      #expect(journal.validator == validator && journal.length == length, "\(text)")
      #expect(journal.offset == 7 && journal.validSize == nil)
      // It is written again in the form of today.
      let lines = try #require(journal.lines)
      let now = try #require(PartialFileJournal(lines, fileSize: 7))
      #expect(now.validator == validator && now.length == length && now.offset == 7)
      #expect(now.validSize == lines.count)
    }
    for tag in ["\"a\nContent-Length: 1\"", "\"", "a", "W/\"a\"", "\"a\u{7F}\""] {
      #expect(PartialFileJournal(Data("ETag: \(tag)\n".utf8), fileSize: 7) == nil, "\(tag)")
    }
    for text in [
      "\n", "Content-Length: 9223372036854775808\n", "Content-Length: \n",
      "Content-Length: 1\nContent-Length: 2\n",
      "content-length: 1\n", "Content-Length: 1\r\n", "ETag: \"a\"\nETag: \"b\"\n",
    ] { #expect(PartialFileJournal(Data(text.utf8), fileSize: 7) == nil, "\(text.debugDescription)") }
  }

  // MARK: Numbers

  @Test("A length beyond all files neither ends the program nor its line of progress")
  func hugeLength() async {
    var terminal = Terminal(isErrorTerminal: true, tick: .seconds(2))
    terminal.folder = folder.path
    server.enqueue(
      Reply(body: .parts(["1", "2", "3"])).with(header: "Content-Length", value: "9223372036854775807")
        .with(effect: .closeAfterBody(bytes: 3)))
    let run = await terminal.run("-o", path, server.url("/f"))
    #expect(run.status == .failure, "\(run.error)")
    for completed in [Int64(0), 1, 2, .max - 1, .max] {
      for total in [Int64(-1), 0, 1, .max, .min] {
        for elapsed in [0, 1e-300, 1, 1e300, .infinity, .nan, -1] {
          let line = ProgressLine(completed: completed, total: total, elapsed: elapsed)
          for width in [0, 20, 80, Int.max] {
            #expect(line.text(width: width).count < 120, "\(completed) of \(total) in \(elapsed) s")
          }
        }
      }
    }
  }

  @Test("Sizes and times beyond all ranges are shown")
  func hugeNumbers() {
    #expect(ByteCount.text(.max) == "9223372037 GB" && ByteCount.text(.min) == "-9223372036854775808 B")
    for milliseconds in [Double.nan, .infinity, -.infinity, 1e300, -1e300] {
      #expect(!Milliseconds.text(milliseconds).isEmpty)
      let table = TimingTable(
        hops: [.init(title: "x", details: [], phases: [.init("a", from: milliseconds, to: -milliseconds)])],
        total: milliseconds)
      #expect(table.text(width: 80, palette: Palette(isOn: false)).contains("total"))
    }
    #expect(
      Int64(clamping: Double.nan) == 0 && Int64(clamping: -1e300) == .min && Int64(clamping: 1e300) == .max)
    #expect(Int64(clamping: 9.2e18) == 9_200_000_000_000_000_000 && Int64(clamping: -1.9) == -1)
    #expect(Int64(clamping: 9223372036854775807.0) == .max)
  }
}
