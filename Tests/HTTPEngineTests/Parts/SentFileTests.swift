import Glibc
import HTTPWire
import Testing

@testable import HTTPEngine

@Suite("A file that the system sends itself", .timeLimit(.minutes(1))) struct SentFileTests {
  private let folder: TemporaryFolder
  private let bytes = Content.bytes(100_000)
  private let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = try folder.write(bytes, "f")
  }

  /// Returns a socket and the descriptor of its peer.
  private static func pair() throws -> (socket: Socket, peer: Int32) {
    let (here, there) = try PollerTests.pair()
    return (Socket(adopting: here, host: "peer", Poller()), there)
  }

  private static func send(_ source: FileSource, _ limit: Int, to socket: Socket) -> PipeStep? {
    socket.write { source.send(to: $0, atMost: limit) }
  }

  private static func read(_ count: Int, from peer: Int32) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    let taken = recv(peer, &bytes, count, Int32(MSG_DONTWAIT))
    return Array(bytes.prefix(max(0, taken)))
  }

  private func source(_ range: Range<Int64>? = nil) throws -> FileSource {
    let source = try FileSource(path: path, range: range)
    #expect(source.start {} == nil)
    return source
  }

  @Test("Its range is sent piece by piece, and not a byte beyond") func range() throws {
    let (socket, peer) = try Self.pair()
    defer { close(peer) }
    let source = try source(10..<25)
    for piece in [10..<20, 20..<25] {
      guard case .moved(let count)? = Self.send(source, 10, to: socket) else {
        Issue.record("nothing was sent")
        return
      }
      #expect(count == piece.count)
      #expect(Self.read(100, from: peer) == Array(bytes[piece]))
    }
    #expect(Self.send(source, 10, to: socket) == nil)
  }

  @Test("Reading goes on where sending has stopped") func mixture() throws {
    let (socket, peer) = try Self.pair()
    defer { close(peer) }
    let source = try source()
    guard case .moved(5)? = Self.send(source, 5, to: socket) else {
      Issue.record("nothing was sent")
      return
    }
    var room = [UInt8](repeating: 0, count: 7)
    guard case .bytes(7) = room.withUnsafeMutableBytes({ source.read(into: $0) }) else {
      Issue.record("nothing was read")
      return
    }
    #expect(room == Array(bytes[5..<12]))
    guard case .moved(3)? = Self.send(source, 3, to: socket) else {
      Issue.record("nothing was sent")
      return
    }
    #expect(Self.read(100, from: peer) == Array(bytes[0..<5] + bytes[12..<15]))
  }

  @Test("A full socket has to be waited for") func fullSocket() throws {
    let (socket, peer) = try Self.pair()
    defer { close(peer) }
    let path = try folder.write(Content.bytes(4_000_000), "large")
    let source = try FileSource(path: path)
    #expect(source.start {} == nil)
    var steps = 0
    while case .moved? = Self.send(source, 65_536, to: socket), steps < 100 { steps += 1 }
    guard case .waitsToWrite? = Self.send(source, 65_536, to: socket) else {
      Issue.record("the socket took 4 MB")
      return
    }
  }

  @Test("A file that was cut, and a generated one, have to be read") func unsendableFiles() throws {
    let (socket, peer) = try Self.pair()
    defer { close(peer) }
    let cut = try source()
    try #require(truncate(path, 0) == 0)
    #expect(Self.send(cut, 10, to: socket) == nil)
    let generated = try FileSource(path: "/proc/self/status")
    #expect(generated.start {} == nil)
    #expect(Self.send(generated, 10, to: socket) == nil)
  }
}
