import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

/// The values of streams that are read with `for try await`.
@Suite("Values of streams", .timeLimit(.minutes(5)))
struct StreamValuesTests {
  private func request(
    _ replies: FakeReply..., interceptor: (any RequestInterceptor)? = nil
  ) -> DataStreamRequest {
    let script = replies
    let fake = FakeTransport { _, index in script[min(index, script.count - 1)] }
    return Session.retained(fake: fake, interceptor: interceptor).streamRequest("http://a.test/")
  }

  /// Reads a sequence to its end or its error.
  private func read<Value>(_ values: StreamValues<Value>) async -> (values: [Value], error: AFError?) {
    var found: [Value] = []
    do throws(AFError) {
      var iterator = values.makeAsyncIterator()
      while let value = try await iterator.next() { found.append(value) }
      return (found, nil)
    } catch {
      return (found, error)
    }
  }

  @Test("A loop receives the chunks and ends with the body") func chunks() async throws {
    var body = Data()
    for try await data in request(.chunks(["a", "b", "c"])).chunks() { body += data }
    #expect(body == Data("abc".utf8))
    let empty = await read(request(.status(204)).chunks())
    #expect(empty.values.isEmpty && empty.error == nil)
  }

  @Test("Texts and documents are framed") func framing() async throws {
    let euro = Array("€".utf8)
    let reply = FakeReply(chunks: [Data([euro[0]]), Data([euro[1], euro[2]])])
    #expect(await read(request(reply).strings()).values == ["€"])
    let points = await read(request(.chunks([#"{"x":1}{"#, #""x":2}"#])).decodables(of: Point.self))
    #expect(points.values.map(\.x) == [1, 2])
    struct Length: DataStreamSerializer {
      func serialize(_ data: Data) throws -> Int { data.count }
    }
    #expect(await read(request(.chunks(["a", "bc"])).values(using: Length())).values == [1, 2])
  }

  @Test("The decoder of documents can be chosen") func decoder() async throws {
    struct Event: Decodable, Sendable { var firstDay: Int }
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    let request = request(.chunks([#"{"first_day":1}"#]))
    #expect(await read(request.decodables(of: Event.self, using: decoder)).values.map(\.firstDay) == [1])
  }

  private func isDecodingFailure(_ error: AFError?) -> Bool {
    guard case .responseSerializationFailed(reason: .decodingFailed(let error))? = error else { return false }
    return error is DecodingError
  }

  @Test("A chunk that another decoder cannot decode is thrown") func invalidChunk() async {
    let request = request(.chunks([#"{"y":1}"#]))
    let read = await read(request.decodables(of: Point.self, using: OtherDecoder()))
    #expect(read.values.isEmpty)
    #expect(isDecodingFailure(read.error), "\(String(describing: read.error))")
  }

  private struct OtherDecoder: DataDecoder {
    func decode<D: Decodable>(_ type: D.Type, from data: Data) throws -> D {
      try JSONDecoder().decode(type, from: data)
    }
  }

  @Test("A document that cannot be decoded is thrown") func invalidDocument() async {
    let request = request(.chunks([#"{"x":1}{"y":1}{"x":2}"#]))
    let read = await read(request.decodables(of: Point.self))
    #expect(read.values.map(\.x) == [1])
    #expect(isDecodingFailure(read.error), "\(String(describing: read.error))")
    // The iterator was released.
    #expect(request.isCancelled || request.isFinished)
  }

  @Test("An error of the request is thrown after the chunks") func failure() async {
    let broken = await read(request(.chunks(["a"], failure: .connectionLost)).chunks())
    #expect(broken.values == [Data("a".utf8)])
    #expect((broken.error?.underlyingError as? URLError)?.code == .networkConnectionLost)
    let unsent = await read(Session.retained(fake: FakeTransport()).streamRequest("").chunks())
    #expect(unsent.error?.isInvalidURLError == true)
  }

  @Test("An error of a validator is thrown after the chunks") func validation() async {
    let refused = await read(request(.status(404, "none")).validate().strings())
    #expect(refused.values == ["none"])
    #expect(refused.error?.responseCode == 404)
  }

  @Test("After its end and after its error a sequence has no values") func afterEnd() async throws {
    var complete = request(.chunks(["a"])).chunks().makeAsyncIterator()
    #expect(try await complete.next() != nil)
    for _ in 0..<2 { #expect(try await complete.next() == nil) }
    var broken = request(.failure(.connectionLost)).chunks().makeAsyncIterator()
    await #expect(throws: AFError.self) { try await broken.next() }
    for _ in 0..<2 { #expect(try await broken.next() == nil) }
  }

  @Test("A response that begins again is an error after the first chunk") func retry() async {
    let spy = SpyInterceptor(retries: 1)
    let joined = request(
      .chunks(["one"], failure: .connectionLost), .chunks(["two"]), interceptor: spy)
    let read = await read(joined.strings())
    #expect(read.values == ["one"])
    #expect((read.error?.underlyingError as? URLError)?.code == .networkConnectionLost)
    #expect(read.error?.localizedDescription.contains("began again") == true)
    let early = request(.failure(.connectionLost), .chunks(["two"]), interceptor: SpyInterceptor(retries: 1))
    #expect(await self.read(early.strings()).values == ["two"])
    #expect(early.retryCount == 1)
  }

  @Test("Leaving the loop cancels the request, unless that is switched off", arguments: [true, false])
  func leave(cancels: Bool) async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.parts("first", .gate(gate), "second"))
    let request = Session.real().streamRequest(server.url("/"))
    for try await _ in request.chunks(automaticallyCancelling: cancels) { break }
    #expect(request.isCancelled == cancels)
    gate.open()
    let recorder = DataRecorder()
    request.responseStream(on: .global(), stream: recorder.note)
    #expect(try await recorder.end().error?.isExplicitlyCancelledError ?? false == cancels)
  }

  @Test("A cancelled request and a cancelled task throw") func cancellation() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    defer { gate.open() }
    server.enqueue(.parts("first", .gate(gate), "second"), .parts("first", .gate(gate), "second"))
    let request = Session.real().streamRequest(server.url("/"))
    var error: AFError?
    do {
      for try await _ in request.chunks() { request.cancel() }
    } catch let caught {
      error = caught.asAFError
    }
    #expect(error?.isExplicitlyCancelledError == true)
    let other = Session.real().streamRequest(server.url("/"))
    let task = Task {
      for try await _ in other.chunks() { withUnsafeCurrentTask { $0?.cancel() } }
    }
    let result = await task.result
    guard case .failure(let failure) = result else {
      Issue.record("A cancelled task ended without an error, as if the body were complete.")
      return
    }
    #expect(failure.asAFError?.isExplicitlyCancelledError == true)
  }

  @Test("A loop stays on its actor") @MainActor func isolation() async throws {
    var count = 0
    for try await data in request(.chunks(["a", "b"])).chunks() {
      MainActor.assertIsolated()
      count += data.count
    }
    #expect(count == 2)
  }
}
