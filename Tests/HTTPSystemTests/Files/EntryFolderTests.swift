import FoundationEssentials
import Glibc
import HTTPSystem
import HTTPWire
import Testing

@Suite("Folder of stored responses") struct EntryFolderTests {
  private let temporary: TemporaryFolder
  private let folder: EntryFolder

  init() throws {
    temporary = try TemporaryFolder()
    #expect(chmod(temporary.path, 0o700) == 0)
    folder = try #require(EntryFolder(path: temporary.path))
  }

  private func age(_ name: String, seconds: Int) throws {
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSinceNow: -Double(seconds))],
      ofItemAtPath: "\(temporary.path)/\(name)")
  }

  @Test("Files that a process is writing stay for ten minutes")
  func filesBesideTheirPlace() throws {
    for name in [".new-1-1-1", ".new-2-2-2"] { _ = try temporary.write([1], name) }
    try age(".new-1-1-1", seconds: 540)
    try age(".new-2-2-2", seconds: 660)
    #expect(folder.list()?.isEmpty == true)
    #expect(try temporary.read(".new-1-1-1") == [1])
    #expect(access("\(temporary.path)/.new-2-2-2", F_OK) != 0)
  }

  @Test("Hidden files, links and folders are not listed")
  func otherFiles() throws {
    _ = try temporary.write([1, 2], "stored")
    _ = try temporary.write([1], ".hidden")
    #expect(symlink("stored", "\(temporary.path)/link") == 0)
    #expect(mkdir("\(temporary.path)/inner", 0o700) == 0)
    let found = try #require(folder.list())
    #expect(found.map(\.name) == ["stored"] && found.first?.size == 2)
    #expect(folder.read("link").data == nil)
    #expect(folder.read("stored").data == Data([1, 2]))
  }

  @Test("A listing that breaks off is none", arguments: 0...6)
  func brokenListing(count: Int) throws {
    // The folder itself and the one above it have names, too.
    for number in 0..<4 { _ = try temporary.write([1], "stored-\(number)") }
    let read = TrackedMutex(0)
    let broken = EntryFolder(path: temporary.path) { folder in
      let isBroken = read.withLock { read in
        read += 1
        return read > count
      }
      guard isBroken else { return EntryFolder.readName(folder) }
      errno = EIO
      return nil
    }
    #expect(try #require(broken).list() == nil, "other files are taken for missing ones")
    #expect(folder.list()?.count == 4)
  }

  @Test("The files before the error of a listing are found") func beginningOfListing() throws {
    for number in 0..<4 { _ = try temporary.write([1], "stored-\(number)") }
    let read = TrackedMutex(0)
    let broken = EntryFolder(path: temporary.path) { folder in
      let name = EntryFolder.readName(folder)
      let isBroken = read.withLock { read in
        if name?.hasPrefix("stored") == true { read += 1 }
        return read > 2
      }
      guard isBroken else { return name }
      errno = EIO
      return nil
    }
    #expect(try #require(broken).listUntilError().count == 2)
    #expect(folder.listUntilError().count == 4)
  }

  @Test(
    "A file is flushed before it replaces an earlier one, which stays if that fails", arguments: [0, EIO])
  func flush(code: Int32) throws {
    #expect(folder.write("stored", Data([1])))
    var flushed: [Data?] = []
    let isWritten = folder.write("stored", Data([2, 3])) { descriptor in
      var status = stat()
      #expect(fstat(descriptor, &status) == 0 && status.st_size == 2, "all bytes are flushed")
      flushed.append(folder.read("stored").data)
      return code
    }
    #expect(isWritten == (code == 0) && flushed == [Data([1])])
    #expect(folder.read("stored").data == (code == 0 ? Data([2, 3]) : Data([1])))
    #expect(try FileManager.default.contentsOfDirectory(atPath: temporary.path) == ["stored"])
  }

  @Test("The first bytes of a file are read")
  func beginning() throws {
    _ = try temporary.write([1, 2, 3], "stored")
    for count in 0...4 {
      #expect(folder.read("stored", upTo: count).data == Data([1, 2, 3].prefix(count)))
    }
    guard case .missing = folder.read("nothing", upTo: 1) else {
      Issue.record("a file that does not exist was read")
      return
    }
  }
}
