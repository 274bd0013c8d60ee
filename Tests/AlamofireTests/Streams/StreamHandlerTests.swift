import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

/// The events that handlers of a stream get, over a transport that delivers chunk by chunk.
@Suite("Handlers of a stream", .timeLimit(.minutes(5)))
struct StreamHandlerTests {
  private let queue = DispatchQueue(label: "test.handlers")

  private func request(
    _ replies: FakeReply..., cancelsOnError: Bool = false, interceptor: (any RequestInterceptor)? = nil
  ) -> DataStreamRequest {
    let script = replies
    let fake = FakeTransport { _, index in script[min(index, script.count - 1)] }
    return Session.kept(fake: fake).streamRequest(
      "http://a.test/", automaticallyCancelOnStreamError: cancelsOnError, interceptor: interceptor)
  }

  @Test func eachChunkIsAnEventAndTheCompletionTheLast() async {
    let journal = DataJournal()
    let request = request(.chunks(["one", "two", "three"])).responseStream(on: queue, stream: journal.note)
    let completion = await journal.end()
    #expect(journal.values == [Data("one".utf8), Data("two".utf8), Data("three".utf8)])
    #expect(String(journal.kinds.values) == "sssc")
    #expect(completion.error == nil)
    #expect(completion.response?.statusCode == 200)
    #expect(completion.request?.url?.absoluteString == "http://a.test/")
    #expect(completion.metrics != nil)
    #expect(request.isFinished)
  }

  @Test func anEmptyBodyIsACompletionAlone() async {
    let journal = DataJournal()
    request(.ok).responseStream(on: queue, stream: journal.note)
    #expect(await journal.end().error == nil)
    #expect(journal.values.isEmpty)
  }

  @Test func manyHandlersGetEverythingInOrder() async {
    let chunks = (0..<1000).map { "\($0)," }
    let request = request(.chunks(chunks))
    request.suspend()
    let journals = (0..<10).map { _ in DataJournal() }
    for (index, journal) in journals.enumerated() {
      request.responseStream(on: index.isMultiple(of: 2) ? queue : .global(), stream: journal.note)
    }
    request.resume()
    for journal in journals {
      _ = await journal.end()
      #expect(journal.values.map { String(decoding: $0, as: UTF8.self) } == chunks)
      #expect(journal.completions.count == 1)
      #expect(journal.kinds.values.last == "c")
    }
  }

  @Test func textIsCutBetweenCharacters() async {
    let euro = Array("€".utf8)
    let reply = FakeReply(chunks: [
      Data([0x61, euro[0]]), Data([euro[1]]), Data([euro[2], 0x62, 0xF0, 0x9F]),
    ])
    let journal = StreamJournal<String, Never>()
    let serialized = StreamJournal<String, AFError>()
    // A handler that is added while the body comes gets the rest.
    request(reply).suspend().responseStreamString(on: queue, stream: journal.note)
      .responseStream(using: .string, on: queue, stream: serialized.note).resume()
    _ = await (journal.end(), serialized.end())
    #expect(journal.values == ["a", "€b", "\u{FFFD}"])
    #expect(serialized.values.last == "\u{FFFD}")
    #expect(serialized.values.joined() == "a€b\u{FFFD}")
  }

  @Test func valuesAreFoundWhereverTheNetworkCuts() async {
    let journal = StreamJournal<Point, AFError>()
    request(.chunks([#"{"x":1}{"x""#, ":2}\n", "\n", #"{"x":3}"# + "\n" + #"{"x":4"#, "}"]))
      .responseStreamDecodable(on: queue, stream: journal.note)
    #expect(await journal.end().error == nil)
    #expect(journal.values.map(\.x) == [1, 2, 3, 4])
    #expect(journal.results.count == 4)
  }

  @Test func aBrokenOffValueIsAFailureOfItsOwn() async {
    let journal = StreamJournal<Point, AFError>()
    request(.chunks([#"{"x":1}"#, #"{"x":"#])).responseStreamDecodable(on: queue, stream: journal.note)
    #expect(await journal.end().error == nil)
    #expect(journal.values.map(\.x) == [1])
    #expect(journal.results.count == 2)
  }

  @Test func theRestOfABrokenTransferIsNoValue() async {
    let journal = StreamJournal<Point, AFError>()
    request(.chunks([#"{"x":1}{"x":"#], failure: .connectionLost))
      .responseStreamDecodable(on: queue, stream: journal.note)
    #expect((await journal.end().error?.underlyingError as? URLError)?.code == .networkConnectionLost)
    #expect(journal.results.count == 1)
  }

  @Test func anotherDecoderGetsWhatTheNetworkGives() async throws {
    let encoder = PropertyListEncoder()
    let documents = try (1...3).map { try encoder.encode(Point(x: $0)) }
    let journal = StreamJournal<Point, AFError>()
    request(FakeReply(chunks: documents)).responseStreamDecodable(
      of: Point.self, on: queue, using: PropertyListDecoder(), stream: journal.note)
    _ = await journal.end()
    #expect(journal.values.map(\.x) == [1, 2, 3])
  }

  @Test func aPreprocessorChangesChunks() async {
    let journal = StreamJournal<Point, AFError>()
    request(.chunks([")]}',\n{\"x\"", ":1}{\"x\":2}"])).responseStreamDecodable(
      of: Point.self, on: queue, preprocessor: .googleXSSI, stream: journal.note)
    _ = await journal.end()
    #expect(journal.values.map(\.x) == [1, 2])
  }

  @Test func aSerializerOfAUserGetsEachChunk() async {
    struct Length: DataStreamSerializer {
      func serialize(_ data: Data) throws -> Int {
        guard data.count < 4 else { throw TestError(text: "too long") }
        return data.count
      }
    }
    let journal = StreamJournal<Int, AFError>()
    request(.chunks(["a", "bcde", "fg"])).responseStream(using: Length(), on: queue, stream: journal.note)
    #expect(await journal.end().error == nil, "the stream goes on")
    #expect(journal.values == [1, 2])
    guard
      case .failure(.responseSerializationFailed(.customSerializationFailed(let error))) =
        journal.results.values[1]
    else {
      Issue.record("\(journal.results.values)")
      return
    }
    #expect(error as? TestError == TestError(text: "too long"))
  }

  @Test func passthroughHandsOutTheBytes() async {
    let journal = StreamJournal<Data, AFError>()
    request(.chunks(["a", "b"])).responseStream(using: .passthrough, on: queue, stream: journal.note)
    _ = await journal.end()
    #expect(journal.values == [Data("a".utf8), Data("b".utf8)])
  }

  @Test func aHandlerAfterTheEndGetsTheCompletion() async {
    let first = DataJournal()
    let request = request(.chunks(["a"])).responseStream(on: queue, stream: first.note)
    _ = await first.end()
    let late = DataJournal()
    let other = StreamJournal<Point, AFError>()
    request.responseStream(on: queue, stream: late.note).responseStreamDecodable(
      on: queue, stream: other.note)
    #expect(await late.end().response?.statusCode == 200)
    #expect(await other.end().error == nil)
    #expect(late.values.isEmpty && first.completions.count == 1)
  }

  @Test func aValidatorsErrorIsInTheCompletionAndChunksCome() async {
    let journal = DataJournal()
    request(.status(404, "gone")).validate().responseStream(on: queue, stream: journal.note)
    #expect(await journal.end().error?.responseCode == 404)
    #expect(journal.text == "gone")
  }

  @Test func contentTypesCountForEmptyBodiesToo() async {
    let journal = DataJournal()
    request(.status(200, headers: [("Content-Type", "text/plain")])).validate(contentType: ["image/*"])
      .responseStream(on: queue, stream: journal.note)
    #expect(await journal.end().error?.responseContentType == "text/plain")
  }

  @Test func validatorsOfAUserSeeTheResponse() async {
    let journal = DataJournal()
    request(.status(200, "a")).validate(statusCode: [201]).responseStream(on: queue, stream: journal.note)
    #expect(await journal.end().error?.responseCode == 200)
    let other = DataJournal()
    request(.ok).validate { _, response in
      response.statusCode == 200 ? .failure(TestError()) : .success(())
    }.responseStream(on: queue, stream: other.note)
    #expect(await other.end().error?.isResponseValidationError == true)
  }

  @Test func redirectsAndChallengesAreNotHandedOut() async {
    let journal = DataJournal()
    var redirect = FakeReply.redirect(302, to: "http://a.test/b")
    redirect.chunks = [Data("look elsewhere".utf8)]
    var challenge = FakeReply.challenge()
    challenge.chunks = [Data("who are you".utf8)]
    request(redirect, challenge, .chunks(["here"])).authenticate(username: "u", password: "p")
      .responseStream(on: queue, stream: journal.note)
    #expect(await journal.end().response?.statusCode == 200)
    #expect(journal.text == "here")
  }
}

struct Point: Codable, Equatable, Sendable {
  var x: Int
}
