import Foundation
import Glibc
import Testing

@testable import Alamofire

/// Parts from files, and forms that are written to files.
@Suite(.timeLimit(.minutes(5))) struct MultipartFileTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func failure(of url: URL) -> AFError.MultipartEncodingFailureReason? {
    let form = MultipartFormData()
    form.append(url, withName: "a", fileName: "f", mimeType: "a/b")
    return multipartFailure { _ = try form.encode() }
  }

  @Test("A missing file is not reported as a folder") func missingFile() {
    let url = folder["missing.txt"]
    guard case .bodyPartFileNotReachableWithError(url, let error) = failure(of: url) else {
      Issue.record("another failure")
      return
    }
    #expect((error as? CocoaError)?.code == .fileReadNoSuchFile)
  }

  @Test("A broken link and a folder that is a file are missing files, with the reason")
  func otherMissingFiles() throws {
    let link = folder["link.txt"]
    try FileManager.default.createSymbolicLink(atPath: link.path, withDestinationPath: "nowhere")
    let below = try folder.file("plain.txt").appendingPathComponent("file.txt")
    for url in [link, below] {
      guard case .bodyPartFileNotReachableWithError(url, let error) = failure(of: url) else {
        Issue.record("another failure for \(url.path)")
        return
      }
      #expect(error is CocoaError)
    }
  }

  @Test("A folder is refused") func folderAsPart() {
    guard case .bodyPartFileIsDirectory(folder.url) = failure(of: folder.url) else {
      Issue.record("another failure")
      return
    }
  }

  @Test("The URL of a part must be a file URL") func fileURL() throws {
    let url = try #require(URL(string: "https://example.com/a.txt"))
    guard case .bodyPartURLInvalid(url) = failure(of: url) else {
      Issue.record("another failure")
      return
    }
  }

  @Test("A file without a size is refused") func fileWithoutSize() throws {
    let fifo = folder["pipe.txt"]
    #expect(mkfifo(fifo.path, 0o600) == 0)
    for url in [fifo, URL(fileURLWithPath: "/dev/zero")] {
      guard case .bodyPartFileSizeNotAvailable(url) = failure(of: url) else {
        Issue.record("another failure for \(url.path)")
        return
      }
    }
  }

  @Test("A file without permission is an error") func permissions() throws {
    let url = try folder.file("secret.txt")
    class Forbidding: FileManager, @unchecked Sendable {
      override func isReadableFile(atPath path: String) -> Bool { false }
    }
    let form = MultipartFormData(fileManager: Forbidding())
    form.append(url, withName: "a")
    guard case .bodyPartInputStreamCreationFailed(url) = multipartFailure({ _ = try form.encode() }) else {
      Issue.record("another failure")
      return
    }
  }

  @Test("A file without a name or an extension needs a type") func nameAndExtension() throws {
    let bare = try folder.file("bare")
    for url in [bare, URL(fileURLWithPath: "/"), folder[".hidden"]] {
      let form = MultipartFormData()
      form.append(url, withName: "a")
      guard case .bodyPartFilenameInvalid(url) = multipartFailure({ _ = try form.encode() }) else {
        Issue.record("another failure for \(url.path)")
        return
      }
    }
    #expect(failure(of: bare) == nil)
  }

  @Test("A symbolic link is read as its target") func symbolicLink() throws {
    _ = try folder.file("content.bin", Data("linked content".utf8))
    try FileManager.default.createSymbolicLink(
      atPath: folder["link.txt"].path, withDestinationPath: "content.bin")
    let form = MultipartFormData(boundary: "B")
    form.append(folder["link.txt"], withName: "a")
    #expect(form.contentLength == 14)
    #expect(try form.text()?.contains("\r\n\r\nlinked content\r\n--B--") == true)
  }

  @Test("A file that changed is an error") func changedFile() throws {
    let url = try folder.file("log.txt", Data("12345".utf8))
    let form = MultipartFormData()
    form.append(url, withName: "log")
    for (text, count) in [("123456789", UInt64(9)), ("12", 2), ("", 0)] {
      try Data(text.utf8).write(to: url)
      #expect(multipartFailure { _ = try form.encode() }?.lengths == [5, count])
      #expect(multipartFailure { try form.writeEncodedData(to: folder["body"]) }?.lengths == [5, count])
    }
    try FileManager.default.removeItem(at: url)
    guard case .bodyPartFileNotReachableWithError(url, _) = multipartFailure({ _ = try form.encode() }) else {
      Issue.record("another failure")
      return
    }
    try Data("again".utf8).write(to: url)
    #expect(try form.encode().count > 5)
    #expect(try folder.names == ["log.txt"])
  }

  // MARK: Output files

  @Test("An existing file is not overwritten") func existingFile() throws {
    let taken = try folder.file("taken")
    try FileManager.default.createSymbolicLink(
      atPath: folder["dangling"].path, withDestinationPath: folder["elsewhere"].path)
    for url in [taken, folder["dangling"], folder.url] {
      let failure = multipartFailure { try MultipartFormData().writeEncodedData(to: url) }
      guard case .outputStreamFileAlreadyExists(url) = failure else {
        Issue.record("another failure for \(url.path)")
        return
      }
    }
    #expect(try String(contentsOf: taken, encoding: .utf8) == "content")
    #expect(try folder.names == ["dangling", "taken"])
  }

  @Test("The output must be a file URL") func outputURL() throws {
    let url = try #require(URL(string: "https://example.com/a.txt"))
    let failure = multipartFailure { try MultipartFormData().writeEncodedData(to: url) }
    guard case .outputStreamURLInvalid(url) = failure else {
      Issue.record("another failure")
      return
    }
  }

  @Test("A missing folder is a write error") func missingFolder() {
    let failure = multipartFailure { try MultipartFormData().writeEncodedData(to: folder["no/where"]) }
    #expect((failure?.inner as? NSError)?.code == Int(ENOENT))
    #expect(failure?.inner?.localizedDescription.hasSuffix("where: No such file or directory") == true)
  }

  @Test("A file that exceeds the disk is removed") func fullDisk() async {
    await #expect(processExitsWith: .success) {
      let folder = try TemporaryFolder()
      let file = try folder.file("input.bin", Data(count: 1_000_000))
      // Without the signal, a write beyond the limit fails as on a full disk.
      signal(SIGXFSZ, SIG_IGN)
      var limit = rlimit(rlim_cur: 600_000, rlim_max: 600_000)
      #expect(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
      let fills: [(MultipartFormData) -> Void] = [
        { $0.append(file, withName: "file") },
        { $0.append(Data(count: 1_000_000), withName: "data") },
        { $0.append(InputStream(data: Data(count: 1_000_000)), withLength: 1_000_000, headers: []) },
        { form in for _ in 0..<20_000 { form.append(Data("small".utf8), withName: "part") } },
      ]
      for fill in fills {
        let form = MultipartFormData()
        fill(form)
        let failure = multipartFailure { try form.writeEncodedData(to: folder["body"]) }
        let cause = (failure?.inner as? NSError)?.userInfo[NSUnderlyingErrorKey] as? NSError
        #expect(cause?.code == Int(EFBIG))
        #expect(try folder.names == ["input.bin"])
      }
      let form = MultipartFormData()
      form.append(Data(count: 500_000), withName: "data")
      try form.writeEncodedData(to: folder["body"])
    }
  }

  @Test("A file that cannot be closed is closed once, and removed") func failedClose() throws {
    let closed = Recorder<Int32>()
    let file = folder["form"]
    let failure = multipartFailure {
      try MultipartFile.create(file, permissions: 0o600, .default) { descriptor in
        closed.add(descriptor)
        _ = Glibc.close(descriptor)
        errno = EDQUOT
        return -1
      } body: { form in
        try Array("a".utf8).withUnsafeBytes { try form.write($0) }
      }
    }
    guard case .outputStreamWriteFailed(let error as NSError) = failure else {
      Issue.record("another failure: \(String(describing: failure))")
      return
    }
    #expect(error.code == EDQUOT && closed.count == 1)
    #expect(!FileManager.default.fileExists(atPath: file.path))
  }

  @Test("A large file is not loaded into memory") func largeFile() async {
    await #expect(processExitsWith: .success) {
      func peak() throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") })
        return try #require(Int(line.split(whereSeparator: \.isWhitespace)[1]))
      }
      let folder = try TemporaryFolder()
      let size: UInt64 = 200_000_000
      let file = try folder.file("large.bin", Data())
      #expect(truncate(file.path, off_t(size)) == 0)
      let form = MultipartFormData()
      form.append(file, withName: "file")
      let stream = try #require(InputStream(url: file))
      form.append(stream, withLength: size, headers: [])
      let before = try peak()
      try form.writeEncodedData(to: folder["body"])
      let used = try peak() - before
      #expect(used < 20_000, "\(used) KiB more were needed")
      let attributes = try FileManager.default.attributesOfItem(atPath: folder["body"].path)
      #expect(((attributes[.size] as? NSNumber)?.uint64Value ?? 0) > 2 * size)
    }
  }
}
