import Foundation
import HTTPEngine
import Testing

@Suite(.timeLimit(.minutes(5))) struct FileMoveTests {
  private let here: TemporaryFolder
  private let elsewhere: URL

  /// A file system in memory, which on most machines is not that of temporary files.
  init() throws {
    here = try TemporaryFolder()
    elsewhere = URL(fileURLWithPath: "/dev/shm/alamofire-tests-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: elsewhere, withIntermediateDirectories: true)
  }

  private func removeElsewhere() { try? FileManager.default.removeItem(at: elsewhere) }

  @Test("A file is moved within a file system and to another", arguments: [true, false])
  func move(hasNamelessFiles: Bool) throws {
    defer { removeElsewhere() }
    for target in [here.path + "/moved", elsewhere.path + "/moved"] {
      let source = try here.write(Content.bytes(300_000), "source")
      #expect(FileMove.move(source, to: target, hasNamelessFiles: hasNamelessFiles) == .moved)
      #expect(try Array(Data(contentsOf: URL(fileURLWithPath: target))) == Content.bytes(300_000))
      #expect(!FileManager.default.fileExists(atPath: source))
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: elsewhere.path) == ["moved"])
  }

  @Test("An existing target is not replaced and the file remains") func existingTarget() throws {
    defer { removeElsewhere() }
    for target in [here.path + "/taken", elsewhere.path + "/taken"] {
      let source = try here.write([1, 2, 3], "source")
      try Data([9]).write(to: URL(fileURLWithPath: target))
      #expect(FileMove.move(source, to: target) == .failed(EEXIST))
      #expect(try Data(contentsOf: URL(fileURLWithPath: target)) == Data([9]))
      #expect(try here.read("source") == [1, 2, 3])
    }
    #expect(FileMove.move(here.path + "/source", to: here.path + "/no/folder") == .failed(ENOENT))
    #expect(FileMove.move(here.path + "/source", to: elsewhere.path + "/no/folder") == .failed(ENOENT))
    #expect(try here.read("source") == [1, 2, 3])
  }

  @Test("A partial file is not visible on another file system", arguments: [true, false])
  func partialFile(hasNamelessFiles: Bool) async throws {
    defer { removeElsewhere() }
    let size = 64 << 20
    let source = here.path + "/large"
    #expect(FileManager.default.createFile(atPath: source, contents: nil))
    #expect(truncate(source, size) == 0)
    let target = elsewhere.path + "/large"
    async let first = firstSize(of: target)
    let outcome = await Task.detached {
      FileMove.move(source, to: target, hasNamelessFiles: hasNamelessFiles)
    }.value
    #expect(outcome == .moved)
    #expect(await first == size)
  }

  /// Returns the size of a file when polling finds it for the first time.
  private nonisolated func firstSize(of path: String) async -> Int {
    await withCheckedContinuation { continuation in
      let watcher = Thread {
        var status = stat()
        let deadline = ContinuousClock.now + .seconds(120)
        while stat(path, &status) != 0, ContinuousClock.now < deadline { sched_yield() }
        continuation.resume(returning: Int(status.st_size))
      }
      watcher.start()
    }
  }
}
