import FoundationEssentials
import HTTPEngine
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Testing

@Suite(.timeLimit(.minutes(5))) struct BodySinkTests {
  private let server: HTTPTestServer
  private let client = Client()

  init() throws { server = try HTTPTestServer(routes: .none) }

  private func get(_ sink: any BodySink) throws -> WireRequest {
    let url = server.url("/")
    return try client.request(url, sink: sink, idleTimeout: .seconds(5))
  }

  @Test("A sink receives every byte and no body is collected") func sink() async throws {
    let bytes = Content.bytes(3_000_000)
    server.enqueue(.data(bytes))
    let sink = ScriptedSink()
    let watcher = Watcher()
    let response = try await client.send(get(sink), watcher: watcher)
    #expect(response.body == nil)
    #expect(sink.bytes == bytes)
    #expect(sink.heads == [200])
    #expect(sink.finishes == 1)
    #expect(watcher.last?.received == 3_000_000)
  }

  @Test("The next request of the handle is collected again") func nextRequest() async throws {
    server.enqueue(.text("to the sink"), .text("to memory"))
    let sink = ScriptedSink()
    _ = try await client.send(get(sink))
    #expect(try await client.get(server.url("/")).text == "to memory")
    #expect(String(decoding: sink.bytes, as: UTF8.self) == "to the sink")
  }

  @Test("A full sink stops its server and no other transfer") func fullSink() async throws {
    let bytes = Content.bytes(20_000_000)
    server.enqueue(.data(bytes))
    let sink = ScriptedSink(room: 100_000)
    async let response = client.send(get(sink))
    await sink.isFull.wait()
    let held = sink.bytes.count
    let other = try HTTPTestServer(routes: .none)
    other.enqueue(.text("other"))
    #expect(try await client.get(other.url("/")).text == "other")
    #expect(sink.bytes.count == held)
    #expect(held < bytes.count / 2)
    sink.makeRoom(.max)
    #expect(try await response.status == 200)
    #expect(sink.bytes == bytes)
  }

  @Test("A sink that refuses the response ends the transfer") func refusal() async throws {
    server.enqueue(.text("unwanted"))
    let refusal = TransportFailure(.cannotCreateFile, "There is no place for this; choose another.")
    let sink = ScriptedSink(refusal: refusal)
    let failure = try await client.failure(of: get(sink))
    #expect(failure.kind == .cannotCreateFile)
    #expect(failure.message == refusal.message)
    #expect(sink.bytes.isEmpty)
  }

  @Test("A sink that fails at its end fails the transfer") func failureAtEnd() async throws {
    server.enqueue(.text("all of it"))
    let sink = ScriptedSink(lastFailure: TransportFailure(.cannotWriteFile, "The disk was full at the end."))
    let failure = try await client.failure(of: get(sink))
    #expect(failure.kind == .cannotWriteFile)
    #expect(failure.metrics != nil)
  }

  @Test("A discarded body is not written to the sink") func discardedBody() async throws {
    server.enqueue(.text("a page that says: look elsewhere"))
    let sink = ScriptedSink()
    let response = try await client.send(get(sink), watcher: Watcher(disposition: .discard))
    #expect(response.status == 200)
    #expect(response.body == nil)
    #expect(sink.heads.isEmpty && sink.bytes.isEmpty)
  }

  @Test("A file contains the last response only") func lastResponse() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/f"
    for text in ["a long text at first", "short"] {
      server.enqueue(.text(text))
      let sink = FileSink(path: path)
      _ = try await client.send(get(sink))
      #expect(try folder.read("f") == Array(text.utf8))
      #expect(sink.size == Int64(text.utf8.count))
    }
  }

  @Test("A file is continued at an offset") func offset() async throws {
    let folder = try TemporaryFolder()
    let path = try folder.write(Array("0123456789".utf8), "f")
    server.enqueue(.text("-new"))
    let sink = FileSink(
      path: folder.path + "/new", continuing: { _ in .success(.part(path: path, offset: 4)) })
    _ = try await client.send(get(sink))
    #expect(try folder.read("f") == Array("0123-new".utf8))
    #expect(sink.path == path)
    #expect(sink.size == 8)
  }

  @Test(
    "A file of an earlier transfer that is gone, or shorter than it was, is not continued", arguments: [0, 3])
  func shorterPart(size: Int) throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/f"
    if size > 0 { _ = try folder.write(Array(repeating: 0x61, count: size), "f") }
    let sink = FileSink(path: path, continuing: { _ in .success(.part(path: path, offset: 4)) })
    #expect(sink.begin(ResponseHead(status: 206), wake: {})?.kind == .cannotContinue)
    #expect((try? folder.read("f"))?.count ?? 0 == size)
  }

  @Test("A file that cannot be created is an error with its path") func createFailure() async throws {
    server.enqueue(.text("text"))
    let failure = try await client.failure(of: get(FileSink(path: "/nowhere/at/all")))
    #expect(failure.kind == .cannotCreateFile)
    #expect(failure.message.contains("/nowhere/at/all"))
  }

  @Test("A full disk is a specific error") func fullDisk() async throws {
    server.enqueue(.data(Content.bytes(100_000)))
    let sink = FileSink(path: "/dev/full", continuing: nil)
    let failure = try await client.failure(of: get(sink))
    #expect(failure.kind == .cannotWriteFile || failure.kind == .cannotCreateFile)
    #expect(failure.message.contains("/dev/full"))
  }
}
