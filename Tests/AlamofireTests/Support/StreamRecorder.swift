import Alamofire
import Foundation
import HTTPWire

/// Records the events of a stream handler.
final class StreamRecorder<Success: Sendable, Failure: Error>: Sendable {
  typealias Stream = DataStreamRequest.Stream<Success, Failure>

  let results = Recorder<Result<Success, Failure>>()
  let completions = Recorder<DataStreamRequest.Completion>()
  /// The kinds of the events, in order.
  let kinds = Recorder<Character>()
  private let act: @Sendable (Stream) throws -> Void

  init(_ act: @escaping @Sendable (Stream) throws -> Void = { _ in }) {
    self.act = act
  }

  var values: [Success] {
    results.values.compactMap { result in
      guard case .success(let value) = result else { return nil }
      return value
    }
  }

  /// Waits for the completion.
  func end() async throws -> DataStreamRequest.Completion { try await completions.value(0) }

  /// Records an event. Used as the handler of a stream. A completion is recorded last, because the test that waits for
  /// it reads what the action has done.
  @Sendable func note(_ stream: Stream) throws {
    switch stream.event {
    case .stream(let result):
      kinds.add("s")
      results.add(result)
      try act(stream)
    case .complete(let completion):
      defer {
        kinds.add("c")
        completions.add(completion)
      }
      try act(stream)
    }
  }
}

typealias DataRecorder = StreamRecorder<Data, Never>

extension StreamRecorder where Success == Data {
  var data: Data { values.reduce(Data(), +) }
  var text: String { String(decoding: data, as: UTF8.self) }
}

extension FakeReply {
  /// Returns a reply whose body has these chunks.
  static func chunks(_ chunks: [String], failure: TransportFailure.FailureKind? = nil) -> FakeReply {
    FakeReply(
      chunks: chunks.map { Data($0.utf8) }, failure: failure.map { .init($0, "broken by the script") })
  }
}
