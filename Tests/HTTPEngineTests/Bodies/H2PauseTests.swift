import FoundationEssentials
import HTTPEngine
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Synchronization
import Testing

/// Responses over one stream of HTTP/2 that have to wait again and again. No socket is ready when they continue,
/// because all bytes were read before. A loop that forgets a stream sleeps for a minute, which is longer than the limit
/// of a request here.
@Suite("Pauses of HTTP/2 streams", .timeLimit(.minutes(5))) struct H2PauseTests {
  /// A sink that pauses after each piece, and has room again at once.
  private final class HesitantSink: BodySink {
    private struct State {
      var bytes: [UInt8] = []
      var wake: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    var bytes: [UInt8] { state.withLock { $0.bytes } }

    func begin(_ head: ResponseHead, wake: @escaping @Sendable () -> Void) -> TransportFailure? {
      state.withLock { $0.wake = wake }
      return nil
    }

    func receive(_ bytes: UnsafeRawBufferPointer) -> BodyReception {
      let wake = state.withLock { state in
        state.bytes += bytes
        return state.wake
      }
      wake?()
      return .pause
    }

    func finish() -> TransportFailure? { nil }
  }

  /// Starts a server that sends the content in one write.
  private func serve(
    _ content: [UInt8], inFramesOf size: Int, _ fields: [(String, String)] = []
  ) throws -> StreamTestServer {
    try HTTP2Server.start { http2, connection in
      let stream = try http2.request()
      try http2.respond(200, fields, on: stream, endsStream: false)
      var frames: [UInt8] = []
      for start in stride(from: 0, to: content.count, by: size) {
        let part = content[start..<min(start + size, content.count)]
        frames += HTTP2TestConnection.bytes(
          of: .data, flags: part.endIndex == content.count ? 0x1 : 0, stream: stream, payload: Array(part))
      }
      try connection.write(frames)
      connection.waitForEnd()
    }
  }

  @Test(
    "A stream continues if its bytes were read before it was paused",
    arguments: [100, 1000, 8192, 10_000, 16_384], [10_000, 40_000, 100_000, 250_000])
  func pausedStream(frameSize: Int, size: Int) async throws {
    let content = Content.bytes(size)
    let server = try serve(content, inFramesOf: frameSize)
    let client = Client()
    let sink = HesitantSink()
    let request = try client.request("https://localhost:\(server.port)/", sink: sink)
    let response = try await client.send(request)
    #expect(response.status == 200)
    #expect(sink.bytes == content)
  }

  @Test(
    "A stream goes on that waited for its decoder and for bandwidth",
    arguments: [900, 1000, 1024, 8192, 10_000, 16_384], [20, 33, 47])
  func decodedStream(frameSize: Int, megabytes: Int) async throws {
    let size = megabytes << 20
    let coded = Array(try #require(Deflater.compress(Data(count: size), .gzip)))
    let server = try serve(coded, inFramesOf: frameSize, [("content-encoding", "gzip")])
    let client = Client { $0.requestBandwidth.download = 400_000 }
    let sink = CountingSink(room: .max / 2)
    let request = try client.request("https://localhost:\(server.port)/", sink: sink)
    let response = try await client.send(request)
    #expect(response.status == 200)
    #expect(sink.count == size)
  }
}
