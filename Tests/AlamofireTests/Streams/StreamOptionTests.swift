import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite("Options of streams", .timeLimit(.minutes(1))) struct StreamOptionTests {
  /// The forms in which a stream is read.
  enum Form: CaseIterable {
    case data, text, values, responses, chunks, strings, decodables, sequence, bufferedData, bufferedValues
  }

  /// Reads each body as the number 8.
  private struct Eight: DataDecoder {
    func decode<D: Decodable>(_ type: D.Type, from data: Data) throws -> D {
      try JSONDecoder().decode(type, from: Data("8".utf8))
    }
  }

  /// Replaces each body.
  private struct Replacement: DataPreprocessor {
    func preprocess(_ data: Data) throws -> Data { Data("7".utf8) }
  }

  /// Reads the first element, and leaves the loop.
  private func readOne(_ form: Form, of request: DataStreamRequest, cancels: Bool) async throws {
    let task = request.streamTask()
    switch form {
    case .data: for await _ in task.streamingData(automaticallyCancelling: cancels) { break }
    case .text: for await _ in task.streamingStrings(automaticallyCancelling: cancels) { break }
    case .values:
      for await _ in task.streamingDecodables(Int.self, automaticallyCancelling: cancels) { break }
    case .responses:
      let stream = task.streamingResponses(
        serializedUsing: StringStreamSerializer(), automaticallyCancelling: cancels)
      for await _ in stream { break }
    case .chunks: for try await _ in request.chunks(automaticallyCancelling: cancels) { break }
    case .strings: for try await _ in request.strings(automaticallyCancelling: cancels) { break }
    case .decodables:
      for try await _ in request.decodables(of: Int.self, automaticallyCancelling: cancels) { break }
    case .sequence:
      let values = request.values(using: StringStreamSerializer(), automaticallyCancelling: cancels)
      for try await _ in values { break }
    case .bufferedData:
      let stream = task.streamingData(
        automaticallyCancelling: cancels, bufferingPolicy: .bufferingOldest(9))
      for await _ in stream { break }
      // The stream is still referred to.
      if cancels { #expect(await eventually { request.isCancelled }) }
      withExtendedLifetime(stream) {}
    case .bufferedValues:
      let stream = task.streamingDecodables(
        Int.self, automaticallyCancelling: cancels, bufferingPolicy: .bufferingOldest(9))
      for await _ in stream { break }
    }
  }

  @Test("Leaving a loop cancels the request only if it should", arguments: Form.allCases, [true, false])
  func leaving(form: Form, cancels: Bool) async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.parts("1\n", .gate(gate), "2\n"))
    let request = Session.real().streamRequest(server.url("/"))
    try await readOne(form, of: request, cancels: cancels)
    if cancels { #expect(await eventually { request.isCancelled }) }
    gate.open()
    await request.finished()
    #expect(request.isCancelled == cancels)
  }

  /// Counts the chunks that it gets.
  private struct CountingSerializer: DataStreamSerializer {
    let chunks = Recorder<Int>()

    func serialize(_ data: Data) throws -> Int {
      chunks.add(data.count)
      return data.count
    }
  }

  @Test("A request that continues after its loop was left serializes at most one more chunk")
  func leftSerializer() async throws {
    let server = try HTTPTestServer()
    let gates = [Gate(), Gate()]
    server.enqueue(.parts("1", .gate(gates[0]), "22", .gate(gates[1]), "333"))
    let request = Session.real().streamRequest(server.url("/"))
    let serializer = CountingSerializer()
    do {
      let stream = request.streamTask().streamingResponses(
        serializedUsing: serializer, automaticallyCancelling: false, bufferingPolicy: .bufferingOldest(9))
      for await _ in stream { break }
    }
    gates[0].open()
    #expect(await serializer.chunks.wait(for: 2) == [1, 2])
    // The handler of the loop has returned, and the server does not wait for it any more.
    #expect(await eventually { request.flow.room() >= 1 << 20 })
    #expect(request.flow.room() == .max)
    gates[1].open()
    await request.finished()
    #expect(request.error == nil && serializer.chunks.values == [1, 2])
  }

  private func stream(_ body: String) -> DataStreamRequest {
    Session.retained(fake: FakeTransport(.text(body)), startRequestsImmediately: false)
      .streamRequest("http://a.test/")
  }

  @Test("A decoder and a preprocessor of the caller read the values") func decoders() async throws {
    let handled = Recorder<Int>()
    for (decoder, preprocessor) in [
      (Eight(), PassthroughPreprocessor()), (JSONDecoder(), Replacement()),
    ] as [(any DataDecoder, any DataPreprocessor)] {
      let request = stream("1")
      request.responseStreamDecodable(
        of: Int.self, on: .global(), using: decoder, preprocessor: preprocessor
      ) { stream in
        if let value = stream.value { handled.add(value) }
      }
      await request.resume().finished()
    }
    #expect(await handled.wait(for: 2) == [8, 7])
    var iterator = stream("1").resume().decodables(of: Int.self, using: Eight()).makeAsyncIterator()
    #expect(try await iterator.next() == 8)
  }

  @Test("A decoder of the caller reads the data of events") func events() async throws {
    let reply = FakeReply.status(
      200, "event: a\nid: b\ndata: 1\n\n", headers: [("Content-Type", "text/event-stream")])
    let handled = Recorder<String>()
    let session = Session.retained(fake: FakeTransport { _, index in index < 1 ? reply : .status(204) })
    session.eventSourceRequest("http://a.test/").responseDecodableEvents(
      of: Int.self, on: .global(), using: Eight()
    ) { stream in
      if let event = stream.value { handled.add("\(event.type) \(event.value) \(event.id)") }
    }
    #expect(await handled.wait(for: 1).first == "a 8 b")
    let other = Session.retained(fake: FakeTransport { _, index in index < 1 ? reply : .status(204) })
    var iterator = other.eventSourceRequest("http://a.test/").decodableEvents(of: Int.self, using: Eight())
      .makeAsyncIterator()
    let event = try await iterator.next()
    #expect(event?.value == 8 && event?.type == "a" && event?.id == "b")
    for request in [session, other] { request.cancelAllRequests() }
  }

  @Test("A stream of text reads the text") func text() async {
    let handled = Recorder<String>()
    let request = stream("täxt").responseStreamString(on: .global()) { stream in
      if let value = stream.value { handled.add(value) }
    }
    await request.resume().finished()
    #expect(await handled.wait(for: 1) == ["täxt"])
  }
}
