import ChildProcesses
import FoundationEssentials
import Glibc
import HTTPSystem
import HTTPWire
import Testing

/// The kernel reports once that it could not write bytes to the disk. Later flushes succeed although the bytes are
/// lost.
@Suite("Failed flushes", .timeLimit(.minutes(5))) struct FlushTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  @Test("After a failed flush a partial file has no record, and is not flushed before it begins again")
  func partialFile() throws {
    let path = folder.path + "/f"
    let file = try PartialFile(path: path, recordPath: path + ".record")
    #expect(file.replaceRecord(by: Data("record".utf8)))
    #expect(file.flush())
    let descriptor = try #require(OpenFile(path: path))
    let copy = descriptor.duplicate()
    #expect(descriptor.makeUnflushable())
    #expect(!file.flush())
    #expect(descriptor.restore(copy))
    #expect(!file.flush())
    #expect(file.record() == nil)
    #expect(!file.replaceRecord(by: Data("record".utf8)))
    #expect(file.prepare(length: 3) == nil)
    #expect(file.flush())
    #expect(file.replaceRecord(by: Data("record".utf8)))
    #expect(file.record() == Data("record".utf8))
  }

  @Test("A flush after the end of a download leaves the record") func closedFile() throws {
    let path = folder.path + "/f"
    let file = try PartialFile(path: path, recordPath: path + ".record")
    #expect(file.replaceRecord(by: Data("record".utf8)))
    file.close()
    #expect(!file.flush())
    #expect(file.record() == Data("record".utf8))
  }

  @Test("After a failed flush the file of a download has no bytes on the disk before it begins again")
  func fileSink() throws {
    let path = folder.path + "/f"
    let sink = FileSink(path: path)
    #expect(sink.begin(ResponseHead(status: 200), wake: {}) == nil)
    #expect(sink.flush() == 0)
    let descriptor = try #require(OpenFile(path: path))
    let copy = descriptor.duplicate()
    #expect(descriptor.makeUnflushable())
    #expect(sink.flush() == nil)
    #expect(descriptor.restore(copy))
    #expect(sink.flush() == nil)
    let reception = Array("text".utf8).withUnsafeBytes { sink.receive($0) }
    guard case .failure(let failure) = reception else {
      Issue.record("bytes follow those that are lost: \(reception)")
      return
    }
    #expect(failure.kind == .cannotWriteFile)
    #expect(sink.size == 0, "lost bytes are not in the resume data")
    #expect(sink.finish()?.kind == .cannotWriteFile)
    #expect(sink.begin(ResponseHead(status: 200), wake: {}) == nil)
    #expect(sink.flush() == 0)
  }

  @Test(
    "If bytes are lost when the file of a download is closed, none of them count", arguments: [true, false])
  func closedSink(isFinished: Bool) throws {
    let sink = FileSink(path: folder.path + "/f", close: Self.closeWithLoss)
    #expect(sink.begin(ResponseHead(status: 200), wake: {}) == nil)
    _ = Array("text".utf8).withUnsafeBytes { sink.receive($0) }
    #expect(sink.size == 4 && !sink.hasLostBytes)
    if isFinished { #expect(sink.finish()?.kind == .cannotWriteFile) } else { sink.unlock() }
    #expect(sink.size == 0, "lost bytes are not in the resume data")
    #expect(sink.hasLostBytes)
    #expect(sink.begin(ResponseHead(status: 200), wake: {}) == nil)
    #expect(!sink.hasLostBytes)
  }

  @Test("A flush fails if bytes are lost when its descriptor is closed") func closedCopies() throws {
    let sink = FileSink(path: folder.path + "/f", close: Self.closeWithLoss)
    #expect(sink.begin(ResponseHead(status: 200), wake: {}) == nil)
    #expect(sink.flush() == nil && sink.hasLostBytes)
    let path = folder.path + "/g"
    let file = try PartialFile(path: path, recordPath: path + ".record", close: Self.closeWithLoss)
    #expect(file.replaceRecord(by: Data("record".utf8)))
    #expect(!file.flush() && file.record() == nil)
  }

  @Test("If bytes are lost when a partial file is closed, it has no record") func closedPartialFile() throws {
    let path = folder.path + "/f"
    let file = try PartialFile(path: path, recordPath: path + ".record", close: Self.closeWithLoss)
    #expect(file.replaceRecord(by: Data("record".utf8)))
    file.close()
    #expect(file.record() == nil)
  }

  @Test(
    "If a partial file is closed during a flush that fails, it has no record, unless another download has it",
    arguments: [false, true])
  func closedDuringFlush(isTaken: Bool) throws {
    let path = folder.path + "/f"
    let files = FlushedFiles()
    let file = try PartialFile(
      path: path, recordPath: path + ".record",
      close: { descriptor in
        guard let file = files.flushed.withLock({ $0.take() }) else { return FileLock.closeFile(descriptor) }
        // As another thread does during the flush.
        file.close()
        let other = isTaken ? try? PartialFile(path: path, recordPath: path + ".record") : nil
        files.other.withLock { $0 = other }
        return Self.closeWithLoss(descriptor)
      })
    #expect(file.replaceRecord(by: Data("record".utf8)))
    files.flushed.withLock { $0 = file }
    #expect(!file.flush())
    #expect((files.other.withLock { $0 } != nil) == isTaken)
    #expect((file.record() != nil) == isTaken)
    // Its lock does not stay.
    files.other.withLock { $0 = nil }
    _ = try PartialFile(path: path, recordPath: path + ".record")
  }

  @Test("A partial file that was moved leaves the record of another download") func movedPartialFile() throws
  {
    let path = folder.path + "/f"
    let file = try PartialFile(
      path: path, recordPath: path + ".record",
      close: { [folder] descriptor in
        _ = try? folder.write(Array("record".utf8), "f.record")
        return Self.closeWithLoss(descriptor)
      })
    #expect(file.replaceRecord(by: Data("earlier".utf8)))
    #expect(file.move(to: folder.path + "/g", replacing: true) == nil)
    #expect(try folder.read("f.record") == Array("record".utf8))
  }

  /// Closes a descriptor, and reports lost bytes, as network file systems do.
  private static func closeWithLoss(_ descriptor: Int32) -> Int32 {
    close(descriptor)
    return EDQUOT
  }

  @Test(
    "On a full disk the bytes stay that were flushed, or that a journal relies on", arguments: [true, false])
  func fullDisk(isFlushed: Bool) async {
    await #expect(processExitsWith: .success) { [isFlushed] in
      let folder = try TemporaryFolder()
      let sink = FileSink(path: folder.path + "/f")
      #expect(sink.begin(ResponseHead(status: 200), wake: {}) == nil)
      let bytes = [UInt8](repeating: 7, count: 60_000)
      func isFull(keeping kept: Int64 = 0) -> Bool {
        if case .failure = bytes.withUnsafeBytes({ sink.receive($0, keeping: kept) }) { true } else { false }
      }
      #expect(!isFull())
      if isFlushed { #expect(sink.flush() == 60_000) }
      #expect(!isFull())
      // The limit makes writes beyond it fail.
      signal(SIGXFSZ, SIG_IGN)
      var limit = rlimit()
      getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
      limit.rlim_cur = 150_000
      #expect(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
      #expect(isFull(keeping: isFlushed ? 0 : 100_000))
      #expect(sink.size == (isFlushed ? 60_000 : 100_000))
      #expect(try folder.read("f").count == Int(sink.size))
      // Another response begins with its first byte.
      #expect(sink.begin(ResponseHead(status: 200), wake: {}) == nil)
      #expect(!isFull() && !isFull() && isFull())
      #expect(sink.size == 0)
    }
  }

  @Test("Nothing is appended after bytes of a failed append that cannot be removed, or after missing bytes")
  func appending() throws {
    let truncations = Counter()
    let files = try TransferFolder(
      path: folder.path + "/transfers",
      truncate: { descriptor, length in
        truncations.enter()
        return truncations.now == 1 || ftruncate(descriptor, off_t(length)) != 0 ? EIO : 0
      })
    #expect(files.make("a", Data("12345".utf8)) == nil)
    #expect(files.append(Data("6".utf8), to: "a", at: 3) == EIO)
    #expect(files.read("a") == Data("12345".utf8))
    #expect(files.append(Data("6".utf8), to: "a", at: 3) == nil)
    #expect(files.append(Data("7".utf8), to: "a", at: 4) == nil)
    #expect(files.append(Data("8".utf8), to: "a", at: 6) == EIO)
    #expect(files.read("a") == Data("12367".utf8) && truncations.now == 2)
  }

  @Test("A file of a transfer folder does not exist if its flush failed", arguments: [0, 1])
  func transferFolder(failing: Int) throws {
    let flushes = Counter()
    // The first flush is for the file, the second one for the folder with its name.
    let files = try TransferFolder(path: folder.path + "/transfers") { _ in
      flushes.enter()
      return flushes.now - 1 == failing ? EIO : 0
    }
    #expect(files.make("a", Data([1])) == EIO)
    #expect(files.names()?.contains("a") == false)
    #expect(files.make("a", Data([1])) == nil)
    #expect(files.read("a") == Data([1]))
  }
}

/// A file that is closed while it is flushed, and the file of another download that begins then.
private final class FlushedFiles: Sendable {
  /// The files, for the test and the function that closes descriptors.
  let flushed = TrackedMutex<PartialFile?>(nil)
  let other = TrackedMutex<PartialFile?>(nil)
}
