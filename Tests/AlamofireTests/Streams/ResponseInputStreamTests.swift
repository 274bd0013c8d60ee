import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

@Suite("A stream as InputStream", .timeLimit(.minutes(5)))
struct ResponseInputStreamTests {
  private func read(_ stream: InputStream, by count: Int) async -> Data {
    stream.open()
    return await onAThread(stream) { stream in
      var all = Data()
      while let data = stream.bytes(count) { all += data }
      return all
    }
  }

  @Test("The whole body is read", arguments: [1, 7, 1024, 1_000_000])
  func everything(count: Int) async throws {
    let server = try HTTPTestServer()
    let stream = try #require(Session.real().streamRequest(server.url("/bytes/50000")).asInputStream())
    #expect(stream.streamStatus == .notOpen)
    #expect(await read(stream, by: count) == Data(Reply.patternBytes(50_000)))
    #expect(stream.streamStatus == .atEnd)
    #expect(stream.streamError == nil)
    #expect(!stream.hasBytesAvailable)
    #expect(stream.bytes(1) == nil)
    stream.close()
    #expect(stream.streamStatus == .closed && stream.streamError == nil)
  }

  @Test("Threads share one stream") func threads() async throws {
    let server = try HTTPTestServer()
    for closes in [false, true] {
      let stream = try #require(Session.real().streamRequest(server.url("/bytes/500000")).asInputStream())
      stream.open()
      let total = await withTaskGroup(of: Int.self) { group in
        for _ in 0..<4 {
          nonisolated(unsafe) let shared = stream
          group.addTask {
            await onAThread(shared) { stream in
              var total = 0
              while let data = stream.bytes(1000) {
                total += data.count
                if closes, total > 50_000 { stream.close() }
              }
              return total
            }
          }
        }
        return await group.reduce(0, +)
      }
      if !closes { #expect(total == 500_000) }
      #expect(stream.streamStatus == (closes ? .closed : .atEnd))
    }
  }

  @Test("An empty body ends at once") func emptyBody() async throws {
    let request = Session.retained(fake: FakeTransport(.ok)).streamRequest("http://a.test/")
    let stream = try #require(request.asInputStream())
    #expect(await read(stream, by: 10).isEmpty)
    #expect(stream.streamStatus == .atEnd)
    #expect(request.error == nil)
  }

  @Test("A failure is the error of the stream") func failure() async throws {
    let fake = FakeTransport(.chunks(["some"], failure: .connectionLost))
    let stream = try #require(Session.retained(fake: fake).streamRequest("http://a.test/").asInputStream())
    #expect(await read(stream, by: 10) == Data("some".utf8))
    #expect(stream.streamStatus == .error)
    #expect((stream.streamError?.asAFError?.underlyingError as? URLError)?.code == .networkConnectionLost)
    var byte: UInt8 = 0
    #expect(stream.read(&byte, maxLength: 1) == -1)
    stream.close()
    #expect(stream.streamStatus == .closed)
    #expect((stream.streamError?.asAFError?.underlyingError as? URLError)?.code == .networkConnectionLost)
    #expect(stream.read(&byte, maxLength: 1) == -1)
  }

  @Test("Closing before the end cancels the request") func close() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.parts("first", .gate(gate)))
    let request = Session.real().streamRequest(server.url("/"))
    let stream = try #require(request.asInputStream())
    stream.open()
    #expect(await onAThread(stream) { $0.bytes(100) } == Data("first".utf8))
    stream.close()
    #expect(request.isCancelled)
    #expect(stream.streamStatus == .closed && stream.streamError == nil)
    #expect(stream.bytes(1) == nil)
    var byte: UInt8 = 0
    #expect(stream.read(&byte, maxLength: 1) == -1, "it was closed before its end")
  }

  @Test("Closing ends a blocked read") func blockedRead() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.parts(.gate(gate)))
    let stream = try #require(Session.real().streamRequest(server.url("/")).asInputStream())
    stream.open()
    nonisolated(unsafe) let read = stream
    let bytes = Task { await onAThread(read) { $0.bytes(100) } }
    await gate.waitUntilReached()
    stream.close()
    #expect(await bytes.value == nil)
  }

  @Test("Releasing the stream cancels the request") func release() throws {
    let gate = Latch()
    let fake = FakeTransport(.chunks(["never"]).held(by: gate))
    let request = Session.retained(fake: fake, startRequestsImmediately: false).streamRequest(
      "http://a.test/")
    do { _ = request.asInputStream() }
    #expect(request.isCancelled)
    gate.open()
  }

  @Test("A stream that is closed after the end of its request holds no unread bytes") func unreadBytes()
    async throws
  {
    let fake = FakeTransport(.chunks(["unread"]))
    let request = Session.retained(fake: fake).streamRequest("http://a.test/")
    let stream = try #require(request.asInputStream())
    await request.finished()
    #expect(request.flow.heldBytes > 0)
    stream.close()
    #expect(request.flow.heldBytes == 0)
  }

  @Test("Bodies of two responses are not concatenated") func retry() async throws {
    let gate = Latch()
    let spy = SpyInterceptor(retry: { _, _, count in count == 1 ? .retry : .doNotRetry })
    // More than is buffered, so that the request runs until it is read.
    let two = String(repeating: "two", count: 1_000_000)
    let held = FakeReply.chunks([two, two]).held(by: gate)
    let other = FakeTransport(.chunks(["one"], failure: .connectionLost), held)
    let events = EventSpy()
    let request = Session.retained(fake: other, interceptor: spy).streamRequest("http://a.test/")
      .eventMonitor(events)
    let stream = try #require(request.asInputStream())
    stream.open()
    #expect(await onAThread(stream) { $0.bytes(100) } == Data("one".utf8))
    gate.open()
    #expect(await onAThread(stream) { $0.bytes(100) } == nil)
    #expect(stream.streamStatus == .error)
    stream.close()
    #expect(stream.streamError != nil)
    #expect(events.reported.filter { $0 == "requestDidCancel" }.count == 1)
    #expect((request.error?.underlyingError as? URLError)?.code == .networkConnectionLost)
  }

  @Test("An upload can read from the stream") func upload() async throws {
    let server = try HTTPTestServer()
    let session = Session.real()
    let stream = try #require(session.streamRequest(server.url("/bytes/300000")).asInputStream())
    let response = await session.upload(stream, to: server.url("/post")).end()
    #expect(response.response?.statusCode == 200)
    let posts = server.recordedRequests.filter { $0.method == "POST" }
    #expect(posts.first?.body == Reply.patternBytes(300_000))
  }
}
