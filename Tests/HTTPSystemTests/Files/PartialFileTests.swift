import FoundationEssentials
import Glibc
import HTTPSystem
import HTTPWire
import Testing

/// The room that the file of a download in segments takes before its bytes arrive.
@Suite("Room for partial files", .timeLimit(.minutes(5))) struct PartialFileTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func file(_ reserve: @escaping @Sendable (Int32, Int) -> Int32) throws -> PartialFile {
    try PartialFile(path: folder.path + "/f", recordPath: folder.path + "/r", reserve: reserve)
  }

  /// Returns the size and the blocks of the file, in bytes.
  private func room() -> (size: Int, blocks: Int) {
    var status = stat()
    #expect(stat(folder.path + "/f", &status) == 0)
    return (Int(status.st_size), Int(status.st_blocks) * 512)
  }

  @Test("The file gets its length at once") func reserved() throws {
    let file = try file(PartialFile.allocate)
    #expect(file.prepare(length: 1 << 20) == nil)
    #expect(room().size == 1 << 20)
  }

  @Test(
    "If the file system cannot reserve blocks, the file has its length and no blocks",
    arguments: [EOPNOTSUPP, ENOSYS, EINVAL])
  func sparse(code: Int32) throws {
    let file = try file { _, _ in code }
    #expect(file.prepare(length: 64 << 20) == nil)
    #expect(room().size == 64 << 20)
    #expect(room().blocks < 1 << 20)
  }

  @Test("A length that the volume has no room for is refused before blocks are reserved") func tooLong()
    throws
  {
    let calls = Counter()
    let file = try file { _, _ in
      calls.enter()
      return 0
    }
    let failure = try #require(file.prepare(length: 1 << 60))
    #expect(failure.kind == .cannotWriteFile)
    #expect(calls.now == 0)
    #expect(room().size == 0)
  }

  @Test("A failure to reserve leaves an empty file") func full() throws {
    let file = try file { descriptor, _ in
      ftruncate(descriptor, 4096)
      return ENOSPC
    }
    #expect(file.prepare(length: 1 << 20)?.kind == .cannotWriteFile)
    #expect(room().size == 0)
  }
}
