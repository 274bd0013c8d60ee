import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Scenarios
import Testing

/// Events of stream handlers, with a transport that delivers single chunks.
@Suite("Handlers of a stream", .timeLimit(.minutes(5)))
struct StreamHandlerTests {
  private let queue = DispatchQueue(label: "test.handlers")

  private func request(
    _ replies: FakeReply..., cancelsOnError: Bool = false, interceptor: (any RequestInterceptor)? = nil
  ) -> DataStreamRequest {
    let script = replies
    let fake = FakeTransport { _, index in script[min(index, script.count - 1)] }
    return Session.retained(fake: fake).streamRequest(
      "http://a.test/", automaticallyCancelOnStreamError: cancelsOnError, interceptor: interceptor)
  }

  @Test("Each chunk is an event and the completion is the last") func chunks() async throws {
    let recorder = DataRecorder()
    let request = request(.chunks(["one", "two", "three"])).responseStream(on: queue, stream: recorder.note)
    let completion = try await recorder.end()
    #expect(recorder.values == [Data("one".utf8), Data("two".utf8), Data("three".utf8)])
    #expect(String(recorder.kinds.values) == "sssc")
    #expect(completion.error == nil)
    #expect(completion.response?.statusCode == 200)
    #expect(completion.request?.url?.absoluteString == "http://a.test/")
    #expect(completion.metrics != nil)
    #expect(request.isFinished)
  }

  @Test("Serializers run on the serialization queue of the session") func serializationQueue() async throws {
    struct Place: DataStreamSerializer {
      func serialize(_ data: Data) throws -> String { queueLabel() }
    }
    let session = Session.retained(
      fake: FakeTransport(.chunks(["one", "two"])),
      serializationQueue: DispatchQueue(label: "test.serialization"))
    let recorder = StreamRecorder<String, AFError>()
    session.streamRequest("http://a.test/").responseStream(using: Place(), on: queue, stream: recorder.note)
    _ = try await recorder.end()
    #expect(recorder.values == ["test.serialization", "test.serialization"])
  }

  @Test("An empty body has only a completion") func emptyBody() async throws {
    let recorder = DataRecorder()
    request(.ok).responseStream(on: queue, stream: recorder.note)
    #expect(try await recorder.end().error == nil)
    #expect(recorder.values.isEmpty)
  }

  @Test("All handlers receive all chunks in order") func handlers() async throws {
    let chunks = (0..<1000).map { "\($0)," }
    let request = request(.chunks(chunks))
    request.suspend()
    let recorders = (0..<10).map { _ in DataRecorder() }
    for (index, recorder) in recorders.enumerated() {
      request.responseStream(on: index.isMultiple(of: 2) ? queue : .global(), stream: recorder.note)
    }
    request.resume()
    for recorder in recorders {
      _ = try await recorder.end()
      #expect(recorder.values.map { String(decoding: $0, as: UTF8.self) } == chunks)
      #expect(recorder.completions.count == 1)
      #expect(recorder.kinds.values.last == "c")
    }
  }

  @Test("Text is divided between characters") func text() async throws {
    let euro = Array("€".utf8)
    let reply = FakeReply(chunks: [
      Data([0x61, euro[0]]), Data([euro[1]]), Data([euro[2], 0x62, 0xF0, 0x9F]),
    ])
    let recorder = StreamRecorder<String, Never>()
    let serialized = StreamRecorder<String, AFError>()
    // A handler that is added during the transfer receives the rest.
    request(reply).suspend().responseStreamString(on: queue, stream: recorder.note)
      .responseStream(using: .string, on: queue, stream: serialized.note).resume()
    _ = try await (recorder.end(), serialized.end())
    #expect(recorder.values == ["a", "€b", "\u{FFFD}"])
    #expect(serialized.values.last == "\u{FFFD}")
    #expect(serialized.values.joined() == "a€b\u{FFFD}")
  }

  @Test("Values are found at any chunk boundaries") func values() async throws {
    let recorder = StreamRecorder<Point, AFError>()
    request(.chunks([#"{"x":1}{"x""#, ":2}\n", "\n", #"{"x":3}"# + "\n" + #"{"x":4"#, "}"]))
      .responseStreamDecodable(on: queue, stream: recorder.note)
    #expect(try await recorder.end().error == nil)
    #expect(recorder.values.map(\.x) == [1, 2, 3, 4])
    #expect(recorder.results.count == 4)
  }

  @Test("An incomplete value is a separate failure") func incompleteValue() async throws {
    let recorder = StreamRecorder<Point, AFError>()
    request(.chunks([#"{"x":1}"#, #"{"x":"#])).responseStreamDecodable(on: queue, stream: recorder.note)
    #expect(try await recorder.end().error == nil)
    #expect(recorder.values.map(\.x) == [1])
    #expect(recorder.results.count == 2)
  }

  @Test("The rest of a broken transfer is not a value") func brokenTransfer() async throws {
    let recorder = StreamRecorder<Point, AFError>()
    request(.chunks([#"{"x":1}{"x":"#], failure: .connectionLost))
      .responseStreamDecodable(on: queue, stream: recorder.note)
    #expect((try await recorder.end().error?.underlyingError as? URLError)?.code == .networkConnectionLost)
    #expect(recorder.results.count == 1)
  }

  @Test("Another decoder receives the chunks of the network") func otherDecoder() async throws {
    let encoder = PropertyListEncoder()
    let documents = try (1...3).map { try encoder.encode(Point(x: $0)) }
    let recorder = StreamRecorder<Point, AFError>()
    request(FakeReply(chunks: documents)).responseStreamDecodable(
      of: Point.self, on: queue, using: PropertyListDecoder(), stream: recorder.note)
    _ = try await recorder.end()
    #expect(recorder.values.map(\.x) == [1, 2, 3])
  }

  @Test("A preprocessor changes chunks") func preprocessor() async throws {
    let recorder = StreamRecorder<Point, AFError>()
    request(.chunks([")]}',\n{\"x\"", ":1}{\"x\":2}"])).responseStreamDecodable(
      of: Point.self, on: queue, preprocessor: .googleXSSI, stream: recorder.note)
    _ = try await recorder.end()
    #expect(recorder.values.map(\.x) == [1, 2])
  }

  @Test("A serializer of a user receives each chunk") func ownSerializer() async throws {
    struct Length: DataStreamSerializer {
      func serialize(_ data: Data) throws -> Int {
        guard data.count < 4 else { throw TestError(text: "too long") }
        return data.count
      }
    }
    let recorder = StreamRecorder<Int, AFError>()
    request(.chunks(["a", "bcde", "fg"])).responseStream(using: Length(), on: queue, stream: recorder.note)
    #expect(try await recorder.end().error == nil, "the stream goes on")
    #expect(recorder.values == [1, 2])
    guard
      case .failure(.responseSerializationFailed(.customSerializationFailed(let error))) =
        recorder.results.values[1]
    else {
      Issue.record("\(recorder.results.values)")
      return
    }
    #expect(error as? TestError == TestError(text: "too long"))
  }

  @Test("Passthrough delivers the bytes") func passthrough() async throws {
    let recorder = StreamRecorder<Data, AFError>()
    request(.chunks(["a", "b"])).responseStream(using: .passthrough, on: queue, stream: recorder.note)
    _ = try await recorder.end()
    #expect(recorder.values == [Data("a".utf8), Data("b".utf8)])
  }

  @Test("A handler that is added after the end receives the completion") func lateHandler() async throws {
    let first = DataRecorder()
    let request = request(.chunks(["a"])).responseStream(on: queue, stream: first.note)
    _ = try await first.end()
    let late = DataRecorder()
    let other = StreamRecorder<Point, AFError>()
    request.responseStream(on: queue, stream: late.note).responseStreamDecodable(
      on: queue, stream: other.note)
    #expect(try await late.end().response?.statusCode == 200)
    #expect(try await other.end().error == nil)
    #expect(late.values.isEmpty && first.completions.count == 1)
  }

  @Test("An error of a validator is in the completion, and chunks are delivered") func validatorError()
    async throws
  {
    let recorder = DataRecorder()
    request(.status(404, "gone")).validate().responseStream(on: queue, stream: recorder.note)
    #expect(try await recorder.end().error?.responseCode == 404)
    #expect(recorder.text == "gone")
  }

  @Test("Content types of empty bodies are validated") func contentType() async throws {
    let recorder = DataRecorder()
    request(.status(200, headers: [("Content-Type", "text/plain")])).validate(contentType: ["image/*"])
      .responseStream(on: queue, stream: recorder.note)
    #expect(try await recorder.end().error?.responseContentType == "text/plain")
  }

  @Test("Validators of a user receive the response") func ownValidators() async throws {
    let recorder = DataRecorder()
    request(.status(200, "a")).validate(statusCode: [201]).responseStream(on: queue, stream: recorder.note)
    #expect(try await recorder.end().error?.responseCode == 200)
    let other = DataRecorder()
    request(.ok).validate { _, response in
      response.statusCode == 200 ? .failure(TestError()) : .success(())
    }.responseStream(on: queue, stream: other.note)
    #expect(try await other.end().error?.isResponseValidationError == true)
  }

  @Test("Bodies of redirects and challenges are not delivered") func redirectsAndChallenges() async throws {
    let recorder = DataRecorder()
    var redirect = FakeReply.redirect(302, to: "http://a.test/b")
    redirect.chunks = [Data("look elsewhere".utf8)]
    var challenge = FakeReply.challenge()
    challenge.chunks = [Data("who are you".utf8)]
    request(redirect, challenge, .chunks(["here"])).authenticate(username: "u", password: "p")
      .responseStream(on: queue, stream: recorder.note)
    #expect(try await recorder.end().response?.statusCode == 200)
    #expect(recorder.text == "here")
  }
}

struct Point: Codable, Equatable, Sendable {
  var x: Int
}
