import ChildProcesses
import FoundationEssentials
import Glibc
import HTTPSystem
import HTTPWire
import Testing

/// A process that is being started has copies of all descriptors until its program begins. Locks must not wait for
/// that.
@Suite("Locks of files", .timeLimit(.minutes(5))) struct FileLockTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  @Test("A closed partial file is not locked although a copy of its descriptor is open")
  func partialFile() throws {
    let path = folder.path + "/f"
    let file = try PartialFile(path: path, recordPath: path + ".record")
    let copy = try #require(OpenFile(path: path)).duplicate()
    defer { close(copy) }
    #expect(throws: PartialFile.OpeningFailure.self) {
      try PartialFile(path: path, recordPath: path + ".record")
    }
    file.close()
    #expect(throws: Never.self) { try PartialFile(path: path, recordPath: path + ".record") }
  }

  @Test("A partial file that was closed is not removed, because it may be another download's by then")
  func removedTwice() throws {
    let path = folder.path + "/f"
    func open() throws -> PartialFile { try PartialFile(path: path, recordPath: path + ".record") }
    let first = try open()
    first.remove()
    let second = try open()
    #expect(second.replaceRecord(by: Data("record".utf8)))
    first.remove()
    #expect(access(path, F_OK) == 0)
    #expect(second.record() == Data("record".utf8))
  }

  @Test("A finished download is locked until it is unlocked, although a copy of its descriptor is open")
  func fileSink() throws {
    let path = try folder.write(Array("0123456789".utf8), "f")
    func sink() -> FileSink {
      FileSink(path: path, continuing: { _ in .success(.part(path: path, offset: 4)) })
    }
    let head = ResponseHead(status: 206)
    let first = sink()
    #expect(first.begin(head, wake: {}) == nil)
    let copy = try #require(OpenFile(path: path)).duplicate()
    defer { close(copy) }
    #expect(sink().begin(head, wake: {})?.kind == .cannotContinue)
    #expect(first.finish() == nil)
    #expect(sink().begin(head, wake: {})?.kind == .cannotContinue)
    FileSink.removePart(path)
    #expect(access(path, F_OK) == 0)
    first.unlock()
    #expect(sink().begin(head, wake: {}) == nil)
  }

  @Test("The next response to a download uses its file again, although it was finished") func nextResponse()
    throws
  {
    let path = try folder.write(Array("0123456789".utf8), "f")
    let sink = FileSink(path: path, continuing: { _ in .success(.part(path: path, offset: 4)) })
    for _ in 0..<2 {
      #expect(sink.begin(ResponseHead(status: 206), wake: {}) == nil)
      #expect(sink.finish() == nil)
    }
  }

  @Test(
    "A partial file that another download has moved, or replaced, is not continued", arguments: [false, true])
  func movedPart(isReplaced: Bool) throws {
    let path = try folder.write(Array("0123456789".utf8), "f")
    let sink = FileSink(path: path, continuing: { _ in .success(.part(path: path, offset: 4)) })
    let head = ResponseHead(status: 206)
    #expect(sink.begin(head, wake: {}) == nil)
    #expect(rename(path, path + ".moved") == 0)
    if isReplaced { _ = try folder.write(Array("abcdefghij".utf8), "f") }
    // The file is still open, as if it had been moved after its opening and before its locking.
    #expect(sink.begin(head, wake: {})?.kind == .cannotContinue)
    #expect(try folder.read("f.moved").count == 4)
  }
}
