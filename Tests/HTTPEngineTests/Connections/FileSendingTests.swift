import FoundationEssentials
import Glibc
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Testing

@testable import HTTPEngine

/// Files that the system sends without reading them into memory.
@Suite("Sending files", .timeLimit(.minutes(1)))
struct FileSendingTests {
  private static let ok = Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".utf8)

  /// Returns the content that a client has written.
  private static func content(_ pipe: MemoryPipe) -> [UInt8] {
    let end = Array("\r\n\r\n".utf8)
    guard let head = pipe.written.indices.first(where: { pipe.written[$0...].starts(with: end) }) else {
      return []
    }
    return Array(pipe.written[(head + 4)...])
  }

  @Test(
    "The bytes of a file arrive once and in order, however many of them need no reading",
    arguments: [0, 1, 131_072, 600_000, 1_300_000, .max], [1, 100_000, .max])
  func pieces(fileRoom: Int, room: Int) async throws {
    try await ConnectionFixture.run { fixture in
      let folder = try TemporaryFolder()
      let bytes = Content.bytes(1_300_000)
      let pipe = MemoryPipe()
      pipe.fileRoom = fileRoom
      let connection = fixture.http1(pipe)
      let source = try FileSource(path: folder.write(bytes, "f"))
      let (exchange, ending) = try fixture.exchange("PUT", .source(source))
      #expect(exchange.startSource() == nil)
      pipe.room = room
      connection.start(exchange)
      if room < .max {
        #expect(Self.content(pipe).count < room)
        for _ in 0..<10 {
          pipe.room = room
          connection.pipeIsReady()
        }
        #expect(Self.content(pipe).count < bytes.count)
        pipe.room = .max
        connection.pipeIsReady()
      }
      while Self.content(pipe).count < bytes.count, ending.outcome == nil { connection.continueTurn() }
      #expect(Self.content(pipe) == bytes)
      #expect(pipe.sentOfFiles == min(fileRoom, bytes.count), "all that may be sent without reading is")
      #expect(exchange.count.sent == Int64(bytes.count))
      pipe.incoming = Self.ok
      connection.pipeIsReady()
      #expect(ending.status == 200)
    }
  }

  @Test("A file that became shorter while it was sent fails the request") func truncated() async throws {
    try await ConnectionFixture.run { fixture in
      let folder = try TemporaryFolder()
      let path = try folder.write(Content.bytes(900_000), "f")
      let pipe = MemoryPipe()
      (pipe.fileRoom, pipe.room) = (.max, 500_000)
      let connection = fixture.http1(pipe)
      let (exchange, ending) = try fixture.exchange("PUT", .source(try FileSource(path: path)))
      #expect(exchange.startSource() == nil)
      connection.start(exchange)
      #expect(truncate(path, 600_000) == 0 && ending.outcome == nil)
      pipe.room = .max
      for _ in 0..<10 where ending.outcome == nil { connection.continueTurn() }
      #expect(ending.failure?.kind == .cannotReadBody, "\(String(describing: ending.outcome))")
      #expect(ending.failure?.message.contains("900000 were announced") == true)
    }
  }

  @Test("Bytes that were added to a file after it was measured are not sent") func grown() async throws {
    try await ConnectionFixture.run { fixture in
      let folder = try TemporaryFolder()
      let bytes = Content.bytes(200_000)
      let path = try folder.write(Array(bytes.prefix(150_000)), "f")
      let source = try FileSource(path: path, range: 10..<150_000)
      _ = try folder.write(bytes, "f")
      let pipe = MemoryPipe()
      pipe.fileRoom = .max
      let (exchange, _) = try fixture.exchange("PUT", .source(source))
      #expect(exchange.startSource() == nil)
      fixture.http1(pipe).start(exchange)
      #expect(Self.content(pipe) == Array(bytes[10..<150_000]) && pipe.sentOfFiles == 149_990)
    }
  }

  /// The reasons for which a file is read.
  enum Reader: CaseIterable, Sendable { case chunks, bandwidth }

  @Test("A file whose bytes are framed or counted is read", arguments: Reader.allCases)
  func read(by reader: Reader) async throws {
    try await ConnectionFixture.run({ options in
      if reader == .bandwidth { options.requestBandwidth.upload = 1_000_000 }
    }) { fixture in
      let folder = try TemporaryFolder()
      let pipe = MemoryPipe()
      pipe.fileRoom = .max
      let source = try FileSource(path: folder.write(Content.bytes(50_000), "f"))
      let trailers = RequestTrailers(names: ["A"]) { $0([HTTPHeader(name: "A", value: "1")]) }
      let (exchange, _) = try fixture.exchange(
        "PUT", .source(source), trailers: reader == .chunks ? trailers : nil)
      #expect(exchange.startSource() == nil)
      fixture.http1(pipe).start(exchange)
      #expect(pipe.written.count > 10_000 && pipe.sentOfFiles == 0)
    }
  }

  // MARK: Sockets

  /// Makes a connected pair of sockets; the first is the loop's.
  private static func pair(_ poller: Poller) throws -> (socket: Socket, peer: Int32) {
    var ends: [Int32] = [-1, -1]
    try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
    return (Socket(adopting: ends[0], host: "peer", poller), ends[1])
  }

  @Test("A socket takes what it has room for, and then says that it has to wait") func fullSocket() throws {
    let folder = try TemporaryFolder()
    let poller = Poller()
    let (socket, peer) = try Self.pair(poller)
    defer { close(peer) }
    let file = open(try folder.write(Content.bytes(4_000_000), "f"), O_RDONLY)
    defer { close(file) }
    var sent = 0
    while case .moved(let count)? = socket.write(1_000_000, ofFile: file) { sent += count }
    #expect(sent > 0 && sent < 4_000_000)
    guard case .waitsToWrite? = socket.write(1, ofFile: file) else { return #expect(Bool(false)) }
    #expect(lseek(file, 0, SEEK_CUR) == sent, "the offset is after the bytes that were sent")
    socket.close()
  }

  @Test("A socket reports the end of a file, and a file that cannot be sent, by no result") func unsendable()
    throws
  {
    let folder = try TemporaryFolder()
    let poller = Poller()
    let (socket, peer) = try Self.pair(poller)
    defer { close(peer) }
    let file = open(try folder.write([], "f"), O_RDONLY)
    let writable = open(try folder.write([1, 2], "g"), O_WRONLY)
    defer { for descriptor in [file, writable] { close(descriptor) } }
    #expect(socket.write(10, ofFile: file) == nil)
    #expect(socket.write(10, ofFile: writable) == nil)
    socket.close()
  }

  /// Makes a connection over TCP that its peer has reset.
  private static func resetConnection() throws -> Int32 {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(listener) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    try withUnsafeMutablePointer(to: &address) { address in
      try address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        try #require(bind(listener, address, size) == 0 && listen(listener, 1) == 0)
        try #require(getsockname(listener, address, &size) == 0 && connect(client, address, size) == 0)
      }
    }
    let peer = accept(listener, nil, nil)
    var noLinger = linger(l_onoff: 1, l_linger: 0)
    setsockopt(peer, SOL_SOCKET, SO_LINGER, &noLinger, socklen_t(MemoryLayout<linger>.size))
    close(peer)
    var state = pollfd(fd: client, events: Int16(POLLIN), revents: 0)
    try #require(poll(&state, 1, 10_000) == 1)
    return client
  }

  @Test("A connection that was reset fails the sending of a file, and then its reading") func reset() throws {
    let folder = try TemporaryFolder()
    let socket = Socket(adopting: try Self.resetConnection(), host: "peer", Poller())
    defer { socket.close() }
    let file = open(try folder.write([1, 2, 3], "f"), O_RDONLY)
    defer { close(file) }
    guard case .failed(let sending)? = socket.write(3, ofFile: file) else { return #expect(Bool(false)) }
    var room = [UInt8](repeating: 0, count: 10)
    guard case .failed(let reading) = room.withUnsafeMutableBytes({ socket.read(into: $0) }) else {
      return #expect(Bool(false), "the reset is no end of a response")
    }
    #expect(sending.message.contains("reset") && reading.message == sending.message, "\(sending.message)")
  }

  @Test("A peer that is gone fails the sending of a file, and no signal ends the process") func lostPeer()
    async throws
  {
    let folder = try TemporaryFolder()
    let path = try folder.write(Content.bytes(1000), "f")
    try await ConnectionFixture.run { _ in
      let poller = Poller()
      let (socket, peer) = try Self.pair(poller)
      let file = open(path, O_RDONLY)
      defer { close(file) }
      close(peer)
      guard case .failed(let failure)? = socket.write(10, ofFile: file) else { return #expect(Bool(false)) }
      #expect(failure.kind == .connectionLost && failure.message.contains("peer"))
      socket.close()
    }
  }
}
