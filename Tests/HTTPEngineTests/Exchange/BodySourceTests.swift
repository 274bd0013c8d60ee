import FoundationEssentials
import Glibc
import HTTPEngine
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Testing

@Suite(.timeLimit(.minutes(5))) struct BodySourceTests {
  private let server: HTTPTestServer
  private let client = Client()

  init() throws { server = try HTTPTestServer(routes: .none) }

  private func post(_ source: any BodySource, _ method: String = "POST") throws -> WireRequest {
    try client.request(server.url("/"), method, body: .source(source))
  }

  @Test("A source of known length is sent with Content-Length", arguments: ["POST", "PUT", "PATCH"])
  func knownLength(method: String) async throws {
    server.enqueue(.ok)
    let source = ScriptedSource(.bytes([1, 2, 3]), .bytes([4]), length: 4)
    _ = try await client.send(post(source, method))
    let seen = try await server.takeRequest()
    #expect(seen.body == [1, 2, 3, 4])
    #expect(seen.method == method)
    #expect(seen.header("Content-Length") == "4")
    #expect(!seen.isChunked)
    #expect(source.isStopped)
  }

  @Test("A source of unknown length is sent in chunks") func unknownLength() async throws {
    server.enqueue(.ok)
    let watcher = Watcher()
    let source = ScriptedSource(.bytes(Array("hello ".utf8)), .bytes(Array("world".utf8)))
    _ = try await client.send(post(source), watcher: watcher)
    let seen = try await server.takeRequest()
    #expect(seen.bodyText == "hello world")
    #expect(seen.isChunked)
    #expect(seen.header("Content-Length") == nil)
    #expect(watcher.counts.last?.sent == 11)
    #expect(watcher.counts.allSatisfy { $0.expectedToSend == -1 })
  }

  @Test("The next request of the handle is not sent in chunks") func nextRequest() async throws {
    server.enqueue(.ok, .ok, .ok)
    _ = try await client.send(post(ScriptedSource(.bytes([1]))))
    _ = try await client.send(client.request(server.url("/"), "POST", body: .bytes(Data([2]))))
    _ = try await client.get(server.url("/"))
    #expect(server.recordedRequests.map(\.isChunked) == [true, false, false])
    #expect(server.recordedRequests.map(\.body) == [[1], [2], []])
  }

  @Test("An empty source is an empty body") func emptySource() async throws {
    server.enqueue(.ok, .ok)
    _ = try await client.send(post(ScriptedSource(length: 0)))
    _ = try await client.send(post(ScriptedSource()))
    #expect(server.recordedRequests.map(\.body) == [[], []])
    #expect(server.recordedRequests[0].header("Content-Length") == "0")
  }

  @Test("A source without bytes does not delay other transfers") func waitingSource() async throws {
    server.enqueue(.text("slow"), .text("other"))
    let source = ScriptedSource(.bytes([1]), .wait, .bytes([2]), .wait, .bytes([3]), length: 3)
    let slow = try client.request(
      server.url("/slow"), "POST", body: .source(source), idleTimeout: .seconds(5))
    async let response = client.send(slow)
    await source.hasWaited.wait()
    let other = try HTTPTestServer(routes: .none)
    other.enqueue(.text("other"))
    #expect(try await client.get(other.url("/")).text == "other")
    let ended = Task {
      while !source.isStopped {
        source.wake()
        await Task.yield()
      }
    }
    #expect(try await response.text == "slow")
    await ended.value
    #expect(try await server.takeRequest().body == [1, 2, 3])
  }

  @Test("A source that ends early is an error") func earlyEnd() async throws {
    server.enqueue(.ok)
    let failure = try await client.failure(of: post(ScriptedSource(.bytes([1, 2]), length: 5)))
    #expect(failure.kind == .cannotReadBody)
    #expect(failure.message.contains("2 bytes") && failure.message.contains("5 were announced"))
    #expect(failure.helps())
  }

  @Test("The failure of a source is the failure of the request") func failure() async throws {
    server.enqueue(.ok)
    let broken = TransportFailure(.noPermissionToReadFile, "The disk is on fire; use another one.")
    let source = ScriptedSource(.bytes([1]), .failure(broken), length: 5)
    let failure = try await client.failure(of: post(source))
    #expect(failure.kind == .noPermissionToReadFile)
    #expect(failure.message == broken.message)
    #expect(source.isStopped)
  }

  @Test("A file is sent unchanged") func file() async throws {
    let folder = try TemporaryFolder()
    let bytes = Content.bytes(3_000_000)
    let path = try folder.write(bytes, "a file.bin")
    server.enqueue(.ok, .ok)
    for _ in 0..<2 { _ = try await client.send(post(FileSource(path: path))) }
    #expect(server.recordedRequests.map(\.body) == [bytes, bytes])
    #expect(server.recordedRequests[0].header("Content-Length") == "3000000")
  }

  @Test(
    "A range of a file is sent, again from its first byte after a lost connection",
    arguments: [(0, 0), (0, 1), (1, 300_000), (299_999, 300_000), (300_000, 300_000), (150_000, 300_000)])
  func fileRange(start: Int64, end: Int64) async throws {
    let folder = try TemporaryFolder()
    let bytes = Content.bytes(300_000)
    let source = try FileSource(path: folder.write(bytes, "f"), range: start..<end)
    server.enqueue(.ok, .ok)
    _ = try await client.get(server.url("/"))
    server.closeIdleConnections()
    _ = try await client.send(post(source, "PUT"))
    #expect(server.connectionCount == 2)
    let request = try #require(server.recordedRequests.last)
    #expect(request.body == Array(bytes[Int(start)..<Int(end)]))
    #expect(request.header("Content-Length") == String(end - start))
  }

  @Test("A range that the file does not have is refused") func missingRange() throws {
    let folder = try TemporaryFolder()
    let path = try folder.write(Content.bytes(10), "f")
    for range in [0..<11, -1..<5] as [Range<Int64>] {
      #expect(throws: TransportFailure.self) { _ = try FileSource(path: path, range: range) }
    }
  }

  @Test("A file that another one of a different size has replaced is not sent", arguments: [9, 10, 11])
  func replacedFile(size: Int) throws {
    let folder = try TemporaryFolder()
    let path = try folder.write(Content.bytes(10), "f")
    let source = try FileSource(path: path)
    #expect(rename(try folder.write(Content.bytes(size), "new"), path) == 0)
    let failure = source.start(wake: {})
    #expect(failure?.kind == (size == 10 ? nil : .cannotReadBody))
    source.stop()
  }

  @Test("A file that has grown is sent with its earlier size") func grownFile() throws {
    let folder = try TemporaryFolder()
    let path = try folder.write(Content.bytes(10), "f")
    let source = try FileSource(path: path)
    _ = try folder.write(Content.bytes(20), "f")
    #expect(source.start(wake: {}) == nil)
    source.stop()
  }

  @Test("A file is sent again when a reused connection was closed") func repeatedFile() async throws {
    let folder = try TemporaryFolder()
    let bytes = Content.bytes(300_000)
    let source = try FileSource(path: folder.write(bytes, "f"))
    server.enqueue(.ok, .ok)
    _ = try await client.get(server.url("/"))
    server.closeIdleConnections()
    _ = try await client.send(post(source, "PUT"))
    #expect(server.recordedRequests.last?.body == bytes)
    #expect(server.connectionCount == 2)
  }

  @Test("A path other than a file is refused with a message") func notAFile() throws {
    let folder = try TemporaryFolder()
    func failure(_ path: String) -> TransportFailure? {
      do throws(TransportFailure) {
        _ = try FileSource(path: path)
        return nil
      } catch {
        return error
      }
    }
    #expect(failure(folder.path + "/missing")?.kind == .fileDoesNotExist)
    #expect(failure(folder.path)?.kind == .fileIsDirectory)
    #expect(failure("/dev/zero")?.kind == .cannotReadBody)
    for path in [folder.path + "/missing", folder.path, "/dev/zero"] {
      #expect(failure(path)?.message.contains(path) == true)
    }
  }
}
