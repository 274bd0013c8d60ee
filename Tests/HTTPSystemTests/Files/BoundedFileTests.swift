import Dispatch
import FoundationEssentials
import Glibc
import HTTPWire
import Testing

@testable import HTTPSystem

@Suite("Files that are read whole", .timeLimit(.minutes(5))) struct BoundedFileTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func failure(_ path: String, mustBeRegular: Bool = false) -> FileReadingFailure? {
    do throws(FileReadingFailure) {
      _ = try BoundedFile.content(of: path, mustBeRegular: mustBeRegular)
      return nil
    } catch {
      return error
    }
  }

  /// Makes a sparse file, which occupies no blocks of the disk.
  private func file(size: Int) throws -> String {
    let path = try folder.write([], "size-\(size)")
    #expect(truncate(path, off_t(size)) == 0)
    return path
  }

  private func pipe() -> String {
    let path = "\(folder.path)/pipe"
    #expect(mkfifo(path, 0o600) == 0)
    return path
  }

  @Test("A file may have 16 MiB and no byte more") func size() throws {
    let limit = BoundedFile.sizeLimit
    #expect(try BoundedFile.content(of: file(size: limit)).count == limit)
    #expect(try BoundedFile.content(of: folder.write([1, 2], "short"), mustBeRegular: true) == [1, 2])
    #expect(try BoundedFile.content(of: folder.write([], "empty"), mustBeRegular: true).isEmpty)
    let large = try failure(file(size: limit + 1))
    #expect(large == FileReadingFailure(.dataLengthExceedsMaximum, "it has more than 16 MiB"))
  }

  @Test("What is not a file, or cannot be read, is an error with its reason") func failures() {
    let pipe = self.pipe()
    let link = "\(folder.path)/link"
    #expect(symlink(link, link) == 0)
    let cases: [(String, TransportFailure.FailureKind, String)] = [
      ("/dev/zero", .dataLengthExceedsMaximum, "more than 16 MiB"),
      ("\(folder.path)/missing", .fileDoesNotExist, "No such file"),
      (folder.path, .fileIsDirectory, "directory"),
      (link, .cannotReadBody, "symbolic links"),
      ("", .fileDoesNotExist, "No such file"),
      (pipe, .cannotReadBody, "no process writes"),
    ]
    for (path, kind, words) in cases {
      let found = failure(path)
      #expect(found?.kind == kind, "\(path)")
      #expect(found?.reason.contains(words) == true, "\(path): \(String(describing: found))")
    }
    for path in ["/dev/zero", "/dev/null", pipe] {
      #expect(failure(path, mustBeRegular: true)?.reason == "it is not a regular file", "\(path)")
    }
  }

  @Test("A file that must not be read has a separate kind of failure") func permission() {
    #expect(
      [EACCES, EPERM].map { BoundedFile.kind(of: $0) } == [.noPermissionToReadFile, .noPermissionToReadFile])
    #expect([EIO, EINVAL].map { BoundedFile.kind(of: $0) } == [.cannotReadBody, .cannotReadBody])
  }

  @Test("A pipe is read until its writer closes it") func writtenPipe() async throws {
    let path = pipe()
    let writer = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK)
    try #require(writer >= 0)
    // More than a pipe holds, so that the reader has opened it before the last byte.
    let bytes = [UInt8](repeating: 7, count: 200_000)
    async let content = Task.detached { try BoundedFile.content(of: path) }.value
    await withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        var sent = 0
        while sent < bytes.count {
          var room = pollfd(fd: writer, events: Int16(POLLOUT), revents: 0)
          // A reader that has failed would never make room.
          guard poll(&room, 1, 60_000) == 1 else {
            Issue.record("the reader took no byte for a minute")
            break
          }
          let count = bytes[sent...].withUnsafeBytes { write(writer, $0.baseAddress, $0.count) }
          guard count > 0 else { break }
          sent += count
        }
        close(writer)
        continuation.resume()
      }
    }
    #expect(try await content == bytes)
  }
}
