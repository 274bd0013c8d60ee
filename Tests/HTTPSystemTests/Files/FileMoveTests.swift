import Foundation
import HTTPSystem
import Testing

@Suite(.timeLimit(.minutes(5))) struct FileMoveTests {
  private let here: TemporaryFolder
  private let elsewhere: URL

  /// Makes a folder in a file system in memory, which on most machines does not hold the temporary files.
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

  @Test("The folder of a name that begins with a mark is flushed", arguments: [true, false])
  func markedName(hasNamelessFiles: Bool) throws {
    defer { removeElsewhere() }
    let source = try here.write([1, 2, 3], "source")
    // The mark joins with the slash before it.
    let target = elsewhere.path + "/\u{301}moved"
    var flushed: [String] = []
    let outcome = FileMove.move(source, to: target, hasNamelessFiles: hasNamelessFiles) { descriptor in
      let link = "/proc/self/fd/\(descriptor)"
      flushed.append((try? FileManager.default.destinationOfSymbolicLink(atPath: link)) ?? "")
      return 0
    }
    #expect(outcome == .moved && (flushed.isEmpty || flushed.last == elsewhere.path), "\(flushed)")
    let names = try FileManager.default.contentsOfDirectory(atPath: elsewhere.path)
    #expect(names.map { Array($0.utf8) } == [Array("\u{301}moved".utf8)])
  }

  private func mode(_ path: String) -> mode_t {
    var status = stat()
    return stat(path, &status) == 0 ? status.st_mode & 0o777 : 0
  }

  @Test("Only the copy at the destination is readable for others", arguments: [true, false])
  func modeOfSource(hasNamelessFiles: Bool) throws {
    defer { removeElsewhere() }
    let source = try here.write(Content.bytes(300_000), "source")
    #expect(chmod(source, 0o600) == 0)
    let target = elsewhere.path + "/moved"
    let outcome = FileMove.move(
      source, to: target, isShared: true, hasNamelessFiles: hasNamelessFiles
    ) { _ in
      #expect(mode(source) == 0o600)
      return 0
    }
    #expect(outcome == .moved)
    let usual = try here.write([], "usual")
    #expect(mode(target) == mode(usual))
    let within = try here.write([1], "within")
    #expect(chmod(within, 0o600) == 0)
    #expect(FileMove.move(within, to: here.path + "/shared", isShared: true) == .moved)
    #expect(mode(here.path + "/shared") == mode(usual))
  }

  @Test("A partial file that cannot be moved stays readable by its owner alone", arguments: [true, false])
  func modeOfPartialFile(replacing: Bool) throws {
    defer { removeElsewhere() }
    let path = here.path + "/part"
    let file = try PartialFile(path: path, recordPath: path + ".record")
    let target = here.path + (replacing ? "/missing/target" : "/target")
    if !replacing { _ = try here.write([9], "target") }
    #expect(file.move(to: target, replacing: replacing) != nil)
    #expect(mode(path) == 0o600)
    #expect(file.move(to: here.path + "/moved", replacing: replacing) == nil)
    #expect(mode(here.path + "/moved") == mode(try here.write([], "usual")))
  }

  @Test("A partial file has the permissions of the file that it replaces before it has its name")
  func keptMode() throws {
    defer { removeElsewhere() }
    let path = here.path + "/part"
    let target = try here.write([9], "target")
    let file = try PartialFile(path: path, recordPath: path + ".record")
    #expect(chmod(target, 0o4640) == 0)
    var renamed: [mode_t] = []
    let failure = file.move(to: target, replacing: true, keepsMode: true) { source, _ in
      renamed.append(mode(source))
      return EIO
    }
    #expect(failure == EIO && mode(path) == 0o600)
    let code = file.move(to: target, replacing: true, keepsMode: true) { source, target in
      renamed.append(mode(source))
      return rename(source, target) == 0 ? 0 : errno
    }
    #expect(code == nil && renamed == [0o640, 0o640])
    var status = stat()
    #expect(stat(target, &status) == 0 && status.st_mode & 0o7777 == 0o640)
    let other = try PartialFile(path: path, recordPath: path + ".record")
    #expect(other.move(to: here.path + "/new", replacing: true, keepsMode: true) == nil)
    #expect(mode(here.path + "/new") == mode(try here.write([], "usual")), "there was no file")
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

  @Test("An existing target is replaced when the new file is complete", arguments: [true, false])
  func replacedTarget(isFlushed: Bool) throws {
    defer { removeElsewhere() }
    for folder in [here.path + "/folder", elsewhere.path] {
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      let target = folder + "/taken"
      let source = try here.write([1, 2, 3], "source")
      try Data([9]).write(to: URL(fileURLWithPath: target))
      var isCopied = false
      let outcome = FileMove.move(source, to: target, isReplacing: true) { _ in
        isCopied = true
        return isFlushed ? 0 : ENOSPC
      }
      let hasFailed = isCopied && !isFlushed
      #expect(outcome == (hasFailed ? .failed(ENOSPC) : .moved))
      #expect(try Data(contentsOf: URL(fileURLWithPath: target)) == Data(hasFailed ? [9] : [1, 2, 3]))
      #expect(FileManager.default.fileExists(atPath: source) == hasFailed)
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["taken"])
      unlink(source)
    }
  }

  @Test("A moved file is a regular one, and in a folder that all users share one of this user")
  func targetEntry() throws {
    removeElsewhere()
    let file = try here.write([1], "file")
    let (pipe, link, folder) = (here.path + "/pipe", here.path + "/link", here.path + "/folder")
    #expect(mkfifo(pipe, 0o600) == 0 && symlink(file, link) == 0 && mkdir(folder, 0o700) == 0)
    for mode in [0o700, 0o777, 0o1777] as [mode_t] {
      #expect(chmod(here.path, mode) == 0)
      #expect(FileMove.entry(at: file) == .file)
      #expect(FileMove.entry(at: here.path + "/missing") == .missing)
      #expect(FileMove.entry(at: pipe) == .other)
      // Only this user can put something into a private folder.
      let expected: FileMove.TargetEntry = mode == 0o700 ? .missing : .other
      for path in [link, folder] { #expect(FileMove.entry(at: path) == expected, "\(path)") }
    }
    // Only an administrator can give a file away.
    guard geteuid() == 0, chown(file, 12_345, 12_345) == 0, chown(folder, 12_345, 12_345) == 0 else { return }
    #expect(FileMove.entry(at: file) == .other)
    #expect(chmod(here.path, 0o700) == 0)
    #expect(FileMove.entry(at: folder) == .other)
    #expect(chmod(here.path, 0o777) == 0)
    #expect(FileMove.entry(at: file) == .file)
  }

  @Test("Of two files that are moved to one name at the same time, one remains") func simultaneousMoves()
    async throws
  {
    defer { removeElsewhere() }
    for round in 0..<200 {
      let sources = try [1, 2].map { try here.write([$0], "source-\($0)") }
      let target = here.path + "/target-\(round)"
      let outcomes = await withTaskGroup(of: FileMove.MoveOutcome.self) { group in
        for source in sources { group.addTask { FileMove.move(source, to: target, isShared: true) } }
        return await group.reduce(into: []) { $0.append($1) }
      }
      #expect(outcomes.count { $0 == .moved } == 1 && outcomes.contains(.failed(EEXIST)), "round \(round)")
      for source in sources { unlink(source) }
    }
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

  @Test("A copy and its name are flushed before the source is removed", arguments: [true, false])
  func flush(hasNamelessFiles: Bool) throws {
    defer { removeElsewhere() }
    let source = try here.write(Content.bytes(300_000), "source")
    let target = elsewhere.path + "/moved"
    var flushed: [String] = []
    let outcome = FileMove.move(source, to: target, hasNamelessFiles: hasNamelessFiles) { descriptor in
      var status = stat()
      guard fstat(descriptor, &status) == 0 else { return errno }
      let exists = FileManager.default.fileExists(atPath: target)
      #expect(FileManager.default.fileExists(atPath: source))
      let kind = status.st_mode & S_IFMT == S_IFDIR ? "folder" : "\(status.st_size)"
      flushed.append("\(kind), named: \(exists)")
      return 0
    }
    #expect(outcome == .moved)
    #expect(flushed == ["300000, named: false", "folder, named: true"])
  }

  @Test(
    "A copy that cannot be flushed is removed, and the source remains",
    arguments: [true, false], [0, 1])
  func failedFlush(hasNamelessFiles: Bool, failing: Int) throws {
    defer { removeElsewhere() }
    let source = try here.write([1, 2, 3], "source")
    var count = 0
    let target = elsewhere.path + "/moved"
    let outcome = FileMove.move(source, to: target, hasNamelessFiles: hasNamelessFiles) { _ in
      defer { count += 1 }
      return count == failing ? EIO : 0
    }
    #expect(outcome == .failed(EIO))
    #expect(try FileManager.default.contentsOfDirectory(atPath: elsewhere.path) == [])
    #expect(try here.read("source") == [1, 2, 3])
    // A file system may have no flushes of folders.
    count = 0
    let other = FileMove.move(source, to: target) { _ in
      defer { count += 1 }
      return count == 1 ? EINVAL : 0
    }
    #expect(other == .moved)
  }

  @Test("A copy that cannot get a name is made again beside its target") func unnameableCopy() throws {
    defer { removeElsewhere() }
    let source = try here.write(Content.bytes(300_000), "source")
    let target = elsewhere.path + "/moved"
    var isNamed: [Bool] = []
    let outcome = FileMove.move(source, to: target, descriptors: here.path + "/missing") { _ in
      isNamed.append(FileManager.default.fileExists(atPath: target))
      return 0
    }
    #expect(outcome == .moved)
    #expect(
      isNamed == [false, false, true], "the copy without a name, the one beside the target, and the folder")
    #expect(try Array(Data(contentsOf: URL(fileURLWithPath: target))) == Content.bytes(300_000))
    #expect(!FileManager.default.fileExists(atPath: source))
    #expect(try FileManager.default.contentsOfDirectory(atPath: elsewhere.path) == ["moved"])
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
