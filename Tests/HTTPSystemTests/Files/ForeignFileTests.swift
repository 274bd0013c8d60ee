import FoundationEssentials
import Glibc
import HTTPSystem
import HTTPWire
import Testing

/// Pipes and links with the names of transfers' files. A pipe without a reader or a writer would block a thread; a link
/// would redirect writes to another file.
@Suite("Foreign files", .timeLimit(.minutes(5))) struct ForeignFileTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
    #expect(chmod(folder.path, 0o700) == 0)
  }

  /// Makes a pipe, or a link or another name of the file `victim`, and returns its path.
  private func put(_ kind: String, _ name: String) throws -> String {
    let path = "\(folder.path)/\(name)"
    if kind == "pipe" {
      #expect(mkfifo(path, 0o600) == 0)
    } else {
      let victim = try folder.write(Array("victim".utf8), "victim")
      #expect((kind == "link" ? symlink(victim, path) : link(victim, path)) == 0)
    }
    return path
  }

  private func checkVictim(_ kind: String) throws {
    if ["link", "second name"].contains(kind) { #expect(try folder.read("victim") == Array("victim".utf8)) }
  }

  @Test("A new download replaces them by its own file", arguments: ["pipe", "link"])
  func newDownload(kind: String) throws {
    let path = try put(kind, "f")
    let sink = FileSink(path: path)
    #expect(sink.begin(ResponseHead(status: 200), wake: {}) == nil)
    let reception = Array("text".utf8).withUnsafeBytes { sink.receive($0) }
    guard case .more = reception else {
      Issue.record("\(reception)")
      return
    }
    #expect(sink.finish() == nil)
    #expect(try folder.read("f") == Array("text".utf8))
    try checkVictim(kind)
  }

  @Test(
    "A download is not continued in them, and they are neither moved nor removed",
    arguments: ["pipe", "link", "second name"])
  func continuedDownload(kind: String) throws {
    let path = try put(kind, "f")
    let sink = FileSink(
      path: folder.path + "/new", continuing: { _ in .success(.part(path: path, offset: 3)) })
    #expect(sink.begin(ResponseHead(status: 206), wake: {})?.kind == .cannotContinue)
    #expect(!FileSink.movePart(path, to: folder.path + "/target", count: 0))
    FileSink.removePart(path)
    #expect(access(folder.path + "/target", F_OK) != 0)
    var status = stat()
    #expect(lstat(path, &status) == 0)
    try checkVictim(kind)
  }

  @Test("The files of a transfer folder are never read or written through them", arguments: ["pipe", "link"])
  func transferFolder(kind: String) throws {
    let files = try TransferFolder(path: folder.path)
    _ = try put(kind, "f")
    #expect(files.read("f") == nil)
    #expect(files.size(of: "f") == nil)
    #expect(files.append(Data("text".utf8), to: "f", at: 0) != nil)
    #expect(files.make("f", Data("text".utf8)) == EEXIST)
    #expect(!files.synchronize("f"))
    try checkVictim(kind)
    #expect(files.replace("f", by: Data("text".utf8)) == nil)
    #expect(try folder.read("f") == Array("text".utf8))
    try checkVictim(kind)
  }

  @Test("A lock that is not a regular file is an error", arguments: ["pipe", "link", "folder"])
  func lock(kind: String) throws {
    if kind == "folder" {
      #expect(mkdir(folder.path + "/lock", 0o700) == 0)
    } else {
      _ = try put(kind, "lock")
    }
    do throws(TransferFolderError) {
      _ = try TransferFolder(path: folder.path)
      Issue.record("the folder is used")
    } catch {
      guard case .unusable(let text) = error else {
        Issue.record("\(error)")
        return
      }
      #expect(!text.isEmpty && text != "Success")
    }
    try checkVictim(kind)
  }

  @Test(
    "The record of a partial file is neither read nor written through them",
    arguments: ["pipe", "link", "second name"])
  func record(kind: String) throws {
    _ = try put(kind, "r")
    if kind == "pipe" {
      _ = try put(kind, "r.new")
    } else {
      #expect(symlink("victim", folder.path + "/r.new") == 0)
    }
    let file = try PartialFile(path: folder.path + "/f", recordPath: folder.path + "/r")
    #expect(file.record() ?? Data() == Data())
    #expect(file.replaceRecord(by: Data("record".utf8)))
    #expect(file.record() == Data("record".utf8))
    #expect(access(folder.path + "/r.new", F_OK) != 0)
    try checkVictim(kind)
  }

  @Test("Stored responses are neither read nor written through them", arguments: ["pipe", "link"])
  func entries(kind: String) throws {
    let entries = try #require(EntryFolder(path: folder.path))
    _ = try put(kind, "e")
    #expect(entries.read("e").data == nil)
    #expect(entries.list()?.map(\.name) == (kind == "link" ? ["victim"] : []))
    #expect(entries.write("e", Data("text".utf8)))
    #expect(try folder.read("e") == Array("text".utf8))
    try checkVictim(kind)
  }
}
