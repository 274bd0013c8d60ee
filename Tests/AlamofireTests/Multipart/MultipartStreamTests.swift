import Alamofire
import Foundation
import Testing

/// Parts from streams, which are read once to their end and must have the announced length.
@Suite(.timeLimit(.minutes(5))) struct MultipartStreamTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func form(_ stream: InputStream, _ length: UInt64) -> MultipartFormData {
    let form = MultipartFormData(boundary: "B")
    form.append(stream, withLength: length, headers: [])
    return form
  }

  private func body(_ content: Data) -> Data {
    Data("--B\r\n\r\n".utf8) + content + Data("\r\n--B--\r\n".utf8)
  }

  /// Returns the failures of both encoders, each with its own form.
  private func failures(_ length: UInt64, _ make: () -> InputStream) throws
    -> [AFError.MultipartEncodingFailureReason?]
  {
    let inMemory = multipartFailure { _ = try form(make(), length).encode() }
    let onDisk = multipartFailure { try form(make(), length).writeEncodedData(to: folder["body"]) }
    #expect(try folder.names == [], "half a file is left")
    return [inMemory, onDisk]
  }

  @Test("A stream is read to its end", arguments: [0, 1, 131_071, 131_072, 131_073, 1_000_000])
  func lengths(count: Int) throws {
    let content = Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) })
    #expect(try form(InputStream(data: content), UInt64(count)).encode() == body(content))
    try form(InputStream(data: content), UInt64(count)).writeEncodedData(to: folder["body"])
    #expect(try Data(contentsOf: folder["body"]) == body(content))
    let file = InputStream(url: try folder.file("content", content))
    #expect(try form(#require(file), UInt64(count)).encode() == body(content))
  }

  @Test("Short reads are joined") func shortReads() throws {
    let content = [UInt8]((0...255)) + [UInt8](repeating: 1, count: 1000)
    #expect(try form(ScriptedStream.drip(content), 1256).encode() == body(Data(content)))
    try form(ScriptedStream.drip(content), 1256).writeEncodedData(to: folder["body"])
    #expect(try Data(contentsOf: folder["body"]) == body(Data(content)))
  }

  @Test("An encoding waits for a pipe") func pipe() async throws {
    let pipe = Pipe()
    let writer = pipe.fileHandleForWriting
    let path = "/proc/self/fd/\(pipe.fileHandleForReading.fileDescriptor)"
    let stream = try #require(InputStream(fileAtPath: path))
    let thread = Thread {
      for piece in ["sl", "ow", "ly"] { try? writer.write(contentsOf: Data(piece.utf8)) }
      try? writer.close()
    }
    thread.start()
    #expect(try form(stream, 6).encode() == body(Data("slowly".utf8)))
    withExtendedLifetime(pipe) {}
  }

  @Test("An open stream is read from its current position") func openStream() throws {
    let stream = InputStream(data: Data("skipped".utf8))
    stream.open()
    var byte: UInt8 = 0
    #expect(stream.read(&byte, maxLength: 1) == 1)
    #expect(try form(stream, 6).encode() == body(Data("kipped".utf8)))
    #expect(stream.streamStatus == .closed)
  }

  @Test("A short stream is an error") func shortStream() throws {
    for failure in try failures(9, { InputStream(data: Data("12345".utf8)) }) {
      #expect(failure?.lengths == [9, 5])
    }
  }

  @Test("A long stream is an error") func longStream() throws {
    for failure in try failures(4, { InputStream(data: Data("12345".utf8)) }) {
      #expect(failure?.lengths == [4, 5])
    }
    // An endless stream is not read to its end.
    for failure in try failures(4, { ScriptedStream { $0.count } }) {
      #expect(failure?.lengths?.first == 4)
    }
  }

  @Test("A stream that fails is an error") func failingStream() throws {
    let missing = { InputStream(fileAtPath: "/nowhere/file") ?? InputStream(data: Data()) }
    for failure in try failures(4, missing) {
      #expect((failure?.inner as? NSError)?.code == Int(POSIXErrorCode.ENOENT.rawValue))
    }
    for failure in try failures(4, { InputStream(fileAtPath: "/") ?? InputStream(data: Data()) }) {
      #expect((failure?.inner as? NSError)?.code == Int(POSIXErrorCode.EISDIR.rawValue))
    }
    for answer in [-1, -7, 1 << 40] {
      for failure in try failures(4, { ScriptedStream { _ in answer } }) {
        #expect(failure?.kind == .streamUnreadable)
      }
    }
  }

  @Test("A stream of a URL without a file is an error") func streamOfURL() throws {
    // Any call of such a stream ends the process.
    let url = try #require(URL(string: "https://example.com/file"))
    for failure in try failures(0, { InputStream(url: url) ?? InputStream(data: Data("x".utf8)) }) {
      #expect(failure?.kind == .streamUnreadable)
    }
  }

  @Test("A closed stream is an error") func closedStream() throws {
    let make = {
      let stream = InputStream(data: Data("12".utf8))
      stream.open()
      stream.close()
      return stream
    }
    for failure in try failures(2, make) { #expect(failure?.kind == .streamAlreadyRead) }
  }

  // MARK: Encoding twice

  @Test("A form with a stream can be encoded in memory again") func encodingTwice() throws {
    let content = Data("stream".utf8)
    let form = form(InputStream(data: content), 6)
    #expect(try form.encode() == body(content))
    #expect(try form.encode() == body(content))
    try form.writeEncodedData(to: folder["body"])
    #expect(try Data(contentsOf: folder["body"]) == body(content))
  }

  @Test("A stream that was written to a file cannot be encoded again") func consumedStream() throws {
    let form = form(InputStream(data: Data("stream".utf8)), 6)
    try form.writeEncodedData(to: folder["first"])
    #expect(multipartFailure { _ = try form.encode() }?.kind == .streamAlreadyRead)
    #expect(multipartFailure { try form.writeEncodedData(to: folder["second"]) }?.kind == .streamAlreadyRead)
    #expect(try folder.names == ["first"])
    let error = try #require(throws: AFError.self) { try form.encode() }
    #expect(error.localizedDescription.contains("only once"))
  }

  @Test("A failure of an earlier part does not consume a stream") func earlierFailure() throws {
    let taken = try folder.file("taken")
    let form = form(InputStream(data: Data("stream".utf8)), 6)
    #expect(throws: AFError.self) { try form.writeEncodedData(to: taken) }
    #expect(throws: AFError.self) { try form.writeEncodedData(to: folder["missing/file"]) }
    #expect(try form.encode() == body(Data("stream".utf8)))
  }

  @Test("A stream with another length fails again") func repeatedFailure() throws {
    let form = form(InputStream(data: Data("12345".utf8)), 9)
    for _ in 0..<2 { #expect(multipartFailure { _ = try form.encode() }?.lengths == [9, 5]) }
  }

  @Test("A valid stream can be encoded after an invalid one") func validStream() throws {
    let form = form(InputStream(data: Data("good".utf8)), 4)
    let late = try folder.file("late.txt")
    form.append(late, withName: "a")
    try FileManager.default.removeItem(at: late)
    #expect(throws: AFError.self) { try form.encode() }
    try Data("content".utf8).write(to: late)
    #expect(try String(decoding: form.encode(), as: UTF8.self).contains("good"))
  }
}
