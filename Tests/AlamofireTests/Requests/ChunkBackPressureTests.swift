import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

/// The chunks of a body occupy bounded memory, however long the body is.
@Suite("Back-pressure of response chunks", .timeLimit(.minutes(5))) struct ChunkBackPressureTests {
  /// Larger than the buffers of the sockets.
  private static let size = 40_000_000
  /// The high-water mark, and one chunk above it.
  private static let most = 1 << 20 + 1 << 17

  @Test("A handler that blocks stops the server") func blockingHandler() async throws {
    let server = try HTTPTestServer()
    let sent = Gate()
    sent.open()
    server.enqueue(.parts(.pattern(Self.size), .gate(sent)))
    let (gate, check, first) = (DispatchSemaphore(value: 0), PatternCheck(), Recorder<Int>())
    let request = Session.real().request(server.url("/"))
      .responseChunks(on: DispatchQueue(label: "test.slow")) { chunk in
        guard check.add(chunk) else { return }
        first.add(chunk.count)
        gate.wait()
      }
    await first.wait(for: 1)
    let flow = try #require(request.core.chunks?.flow)
    #expect(await eventually { flow.isFull })
    #expect(flow.heldBytes <= Self.most)
    #expect(sent.reachedCount == 0)
    gate.signal()
    #expect(await request.end().error == nil)
    #expect(check.isRight(Self.size) && flow.heldBytes == 0)
  }

  /// Runs in a separate process, so that no other test changes the peak of memory.
  @Test("The memory does not grow with the body") func memory() async {
    await #expect(processExitsWith: .success) {
      let server = try HTTPTestServer()
      let session = Session(configuration: .uncached)
      func used(by body: Int) async throws -> Int {
        server.enqueue(.bytes(body))
        let check = PatternCheck()
        let before = try peakOfMemory()
        let response = await session.request(server.url("/")).validate()
          .responseChunks(on: DispatchQueue(label: "test.chunks")) { _ = check.add($0) }.end()
        #expect(response.error == nil && check.isRight(body))
        return try peakOfMemory() - before
      }
      _ = try await used(by: 1_000_000)
      let more = try await used(by: 128_000_000)
      #if !ADDRESS_SANITIZER  // It delays the reuse of freed memory.
        #expect(more < 24_000, "\(more) KiB more were needed")
      #endif
    }
  }
}

/// Returns the peak of resident memory of this process, in KiB.
func peakOfMemory() throws -> Int {
  let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
  let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") })
  return try #require(Int(line.split(whereSeparator: \.isWhitespace)[1]))
}
