import Alamofire
import Foundation
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Randomness
import Scenarios
import Testing

/// Downloads in segments whose process is killed (SIGKILL) while its connections transfer bytes. The environment
/// variable `ALAMOFIRE_SEGMENT_KILLS` sets the number of kills.
@Suite("Killed downloads in segments", .timeLimit(.minutes(5))) struct KilledSegmentedDownloadTests {
  private static let kills =
    ProcessInfo.processInfo.environment["ALAMOFIRE_SEGMENT_KILLS"].flatMap { Int($0) } ?? 6

  private let folder: SegmentedDownloadFolder
  private let temporary: SegmentedDownloadFolder
  private let file = SegmentedFile(size: 4_000_000)

  init() throws {
    folder = try SegmentedDownloadFolder()
    temporary = try SegmentedDownloadFolder()
  }

  private func child(_ server: HTTPTestServer) throws -> ChildProcess {
    try ChildProcess(
      ["segments", server.url("/file"), folder.destination.path, "4"], folder: temporary.url,
      complaints: temporary.url.appendingPathComponent("complaints"))
  }

  /// Returns the ranges that the record of the process has; `nil` if there is no record.
  private func noted() -> ByteRanges? {
    let record = try? Data(contentsOf: URL(fileURLWithPath: folder.destination.path + ".alamofire-ranges"))
    return record.flatMap { Journal.standard.state(of: $0) }?
      .received(boot: PartialFile.boot, fileSize: Int64(file.size))
  }

  /// Returns the ranges that the record of the killed process has.
  private func recorded() throws -> ByteRanges {
    let path = folder.destination.path
    guard FileManager.default.fileExists(atPath: path + ".alamofire-ranges") else { return ByteRanges() }
    let present = try #require(noted())
    let partial = try Data(contentsOf: URL(fileURLWithPath: path + ".alamofire-partial"))
    let bytes = file.bytes
    for range in present.ranges {
      let isRight = partial[range] == bytes[range]
      #expect(isRight, "\(range) is not in the file")
    }
    return present
  }

  /// Waits until the record of the running process has more bytes. Gives up after ten seconds.
  private func waitForBytes(beyond present: ByteRanges) async {
    let limit = ContinuousClock.now + .seconds(10)
    while ContinuousClock.now < limit, folder.names != ["file"] {
      if noted()?.count ?? 0 > present.count { return }
      await Task.yield()
    }
  }

  @Test(
    "A killed download continues with the bytes that are missing, and ends with the complete file", .steps)
  func kills() async throws {
    defer {
      folder.remove()
      temporary.remove()
    }
    let server = try file.server()
    var present = ByteRanges()
    var growth = 0
    var kills = 0
    // A busy machine may need further kills until a process has noted bytes. The time limit of the suite ends the
    // search.
    while kills < Self.kills || growth == 0 {
      if folder.names == ["file"] {
        if growth > 0 { break }
        // A process that reaches no held response ends with the complete file before its first note. The download
        // begins again then.
        #expect(folder.hasOnly(file.bytes))
        try FileManager.default.removeItem(at: folder.destination)
      }
      kills += 1
      step("kill \(kills)")
      var random = Seed.generator(kills)
      let gate = Gate()
      let before = file.questions.count
      let first = before + Int.random(in: 1...5, using: &random)
      let count = Int.random(in: 1...20_000, using: &random)
      file.script { $0.index < first ? $1 : $1.held(after: count, by: gate) }
      let pause = Int.random(in: 0...200, using: &random)
      let child = try child(server)
      await withTaskGroup(of: Void.self) { group in
        // There may be no second response that is held.
        group.addTask {
          await gate.waitUntilReached(count: 1)
          for _ in 0..<pause { await Task.yield() }
        }
        group.addTask { _ = await child.end() }
        await group.next()
        // A quick kill can happen before the process has noted a byte, each time. So later kills wait for one.
        if kills > Self.kills { await waitForBytes(beyond: present) }
        child.kill()
        group.cancelAll()
        await group.waitForAll()
      }
      gate.open()
      // No byte that an earlier process had is requested again.
      #expect(file.ranges(after: before).allSatisfy { !present.overlaps($0) })
      let now = try folder.names == ["file"] ? present : recorded()
      #expect(present.ranges.allSatisfy { now.contains($0) })
      if now.count > present.count { growth += 1 }
      present = now
    }
    #expect(growth > 0)
    step("last download")
    file.script(nil)
    if folder.names != ["file"] {
      let before = file.questions.count
      let last = try child(server)
      #expect(await last.end() == .exited(0), "\(last.said)")
      #expect(file.ranges(after: before).allSatisfy { !present.overlaps($0) })
    }
    #expect(folder.hasOnly(file.bytes))
  }
}
