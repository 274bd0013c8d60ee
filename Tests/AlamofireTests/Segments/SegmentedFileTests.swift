import Alamofire
import Foundation
import FoundationNetworking
import Glibc
import HTTPTestServer
import Testing

private let KiB = 1024

/// The size, the name and the mode of the files of a download in segments.
@Suite("Files of segments", .timeLimit(.minutes(5))) struct SegmentedFileTests {
  private let folder: SegmentedDownloadFolder

  init() throws { folder = try SegmentedDownloadFolder() }

  private func download(
    _ server: HTTPTestServer, limit: Int64? = nil, to destination: URL? = nil,
    options: DownloadRequest.Options = []
  ) -> SegmentedDownload {
    var transportOptions = TransportOptions()
    transportOptions.bodySizeLimit = limit
    return Session.real(options: transportOptions).segmentedDownload(
      server.url("/file"), minimumSegmentSize: 64 * KiB, to: destination ?? folder.destination,
      options: options)
  }

  /// Leaves the files of a download that was cancelled after its first segment, when all of its requests were sent.
  /// These are the first one, three for the parts after it, and one for the rest.
  private func leavePart(_ file: SegmentedFile, _ server: HTTPTestServer, at destination: URL? = nil)
    async throws
  {
    let gate = Gate()
    file.script { question, reply in question.index == 0 ? reply : reply.held(after: 10, by: gate) }
    let first = download(server, to: destination)
    first.resume()
    #expect(await eventually { first.currentProgress.completedBytes == 64 * KiB + 40 })
    first.cancel()
    #expect(await first.response.error != nil)
    gate.open()
    file.script(nil)
  }

  private func isTooLarge(_ error: AFError?) -> Bool {
    (error?.underlyingError as? URLError)?.code == .dataLengthExceedsMaximum
  }

  // MARK: Size

  @Test("A file that is larger than bodySizeLimit is refused with its first range, and takes no room")
  func declaredLength() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 100 * KiB)
    file.script { question, reply in
      var reply = reply
      reply.headers.removeAll { $0.name == "Content-Range" }
      return reply.with(header: "Content-Range", value: "bytes 0-65535/146000000")
    }
    let server = try file.server()
    let error = await download(server, limit: Int64(128 * KiB)).response.error
    #expect(isTooLarge(error), "\(String(describing: error))")
    #expect(error?.localizedDescription.contains("146000000") == true)
    #expect(folder.names == [])
    #expect(file.questions.count == 1)
  }

  @Test(
    "A file as large as bodySizeLimit is downloaded, and one byte more is refused", arguments: [true, false])
  func limit(hasRanges: Bool) async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 200 * KiB, hasRanges: hasRanges)
    let server = try file.server()
    let error = await download(server, limit: Int64(200 * KiB - 1)).response.error
    #expect(isTooLarge(error), "\(String(describing: error))")
    #expect(error?.localizedDescription.contains("more than \(200 * KiB - 1)") == true)
    #expect(folder.names == [])
    #expect(await download(server, limit: Int64(200 * KiB)).response.error == nil)
    #expect(folder.hasOnly(file.bytes))
  }

  @Test("A stream without a length ends at bodySizeLimit") func endlessStream() async throws {
    defer { folder.remove() }
    let server = try HTTPTestServer(
      routes: .none.adding("/file") { _, _ in Reply.bytes(300 * KiB).framed(.chunked) })
    let error = await download(server, limit: Int64(200 * KiB)).response.error
    #expect(isTooLarge(error), "\(String(describing: error))")
    #expect(folder.names == [])
    #expect(server.requestCount == 1)
  }

  @Test("The file of an earlier process that is larger than bodySizeLimit is refused, and stays")
  func earlierFile() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 400 * KiB)
    let server = try file.server()
    try await leavePart(file, server)
    let count = file.questions.count
    #expect(isTooLarge(await download(server, limit: Int64(399 * KiB)).response.error))
    #expect(file.questions.count == count)
    #expect(folder.names == ["file.alamofire-partial", "file.alamofire-ranges"])
    #expect(await download(server, limit: Int64(400 * KiB)).response.error == nil)
    #expect(folder.hasOnly(file.bytes))
  }

  // MARK: Names

  @Test("A name may be as long as the file system allows", arguments: [234, 235, 237, 238, 254, 255])
  func longNames(count: Int) async throws {
    defer { folder.remove() }
    for name in [String(repeating: "x", count: count), String(repeating: "ä", count: count / 2)] {
      let destination = folder.url.appendingPathComponent(name)
      let file = SegmentedFile(size: 400 * KiB)
      let server = try file.server()
      try await leavePart(file, server, at: destination)
      #expect(folder.names.count == 2, "the partial file and its record: \(folder.names)")
      #expect(folder.names.allSatisfy { $0.utf8.count <= 255 })
      let questions = file.questions.count
      let response = await download(server, to: destination).response
      #expect(response.error == nil, "\(String(describing: response.error))")
      #expect(folder.names == [name])
      #expect(file.ranges(after: questions).first?.lowerBound != 0, "the download has begun again")
      // Not in the expectation, which would compute the difference of two large files for minutes.
      let isWhole = try Data(contentsOf: destination) == file.bytes
      #expect(isWhole)
      try FileManager.default.removeItem(at: destination)
    }
  }

  @Test("Long names that differ at their ends have different partial files") func similarNames() throws {
    let names = ["a", "b"].map { String(repeating: "x", count: 254) + $0 }
    let paths = try names.map {
      download(try HTTPTestServer(), to: folder.url.appendingPathComponent($0)).partialFileURL.path
    }
    #expect(paths[0] != paths[1])
    folder.remove()
  }

  @Test("A name that the file system does not allow is an error before any request") func tooLongName()
    async throws
  {
    defer { folder.remove() }
    let file = SegmentedFile(size: 1)
    let server = try file.server()
    let destination = folder.url.appendingPathComponent(String(repeating: "x", count: 256))
    let error = await download(server, to: destination).response.error
    guard case .downloadedFileMoveFailed(let reason, _, destination)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect((reason as NSError).code == ENAMETOOLONG)
    #expect(file.questions.isEmpty)
  }

  // MARK: Modes

  @Test("The file has the mode that the umask gives", arguments: [true, false]) func mode(hasRanges: Bool)
    async throws
  {
    defer { folder.remove() }
    let probe = folder.url.appendingPathComponent("probe").path
    let descriptor = open(probe, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
    close(descriptor)
    let expected = try FileManager.default.attributesOfItem(atPath: probe)[.posixPermissions] as? NSNumber
    unlink(probe)
    let file = SegmentedFile(size: 200 * KiB, hasRanges: hasRanges)
    let server = try file.server()
    #expect(await download(server).response.error == nil)
    let mode = try FileManager.default.attributesOfItem(atPath: folder.destination.path)[.posixPermissions]
    #expect(mode as? NSNumber == expected)
  }

  @Test("The partial file is readable by its owner alone") func privatePart() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 400 * KiB)
    let server = try file.server()
    try await leavePart(file, server)
    for name in folder.names {
      let path = folder.url.appendingPathComponent(name).path
      let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber
      #expect(mode == 0o600, "\(name)")
    }
  }

  // MARK: Other files in the folder

  @Test("A record that cannot be renewed does not cost the bytes of an earlier process")
  func unrenewableRecord() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 400 * KiB)
    let server = try file.server()
    try await leavePart(file, server)
    let count = file.questions.count
    try FileManager.default.createDirectory(
      at: folder.url.appendingPathComponent("file.alamofire-ranges.new"), withIntermediateDirectories: false)
    #expect(await download(server).response.error == nil)
    let ranges = file.ranges(after: count)
    #expect(!ranges.isEmpty && ranges.allSatisfy { $0.lowerBound >= 64 * KiB }, "\(ranges)")
    let isWhole = try Data(contentsOf: folder.destination) == file.bytes
    #expect(isWhole)
  }

  @Test(
    "A pipe or a link instead of a file of the download neither blocks nor is written through",
    arguments: ["partial", "ranges", "ranges.new"], ["pipe", "link"])
  func foreignFiles(suffix: String, kind: String) async throws {
    defer { folder.remove() }
    let victim = folder.url.appendingPathComponent("victim")
    try Data("victim".utf8).write(to: victim)
    let path = folder.destination.path + ".alamofire-\(suffix)"
    if kind == "pipe" {
      #expect(mkfifo(path, 0o600) == 0)
    } else {
      #expect(symlink(victim.path, path) == 0)
    }
    let file = SegmentedFile(size: 400 * KiB)
    let server = try file.server()
    let error = await download(server).response.error
    #expect(try Data(contentsOf: victim) == Data("victim".utf8))
    if suffix == "partial" {
      #expect((error?.underlyingError as? URLError)?.code == .cannotCreateFile)
      #expect(file.questions.isEmpty)
    } else {
      #expect(error == nil)
      #expect(folder.names == ["file", "victim"])
      let isWhole = try Data(contentsOf: folder.destination) == file.bytes
      #expect(isWhole)
    }
  }
}
