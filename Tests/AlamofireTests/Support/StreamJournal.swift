import Alamofire
import Foundation
import HTTPWire

/// The calls of a handler of a stream.
final class StreamJournal<Success: Sendable, Failure: Error>: Sendable {
  typealias Stream = DataStreamRequest.Stream<Success, Failure>

  let results = Recorder<Result<Success, Failure>>()
  let completions = Recorder<DataStreamRequest.Completion>()
  /// Both, in the order in which they came.
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
  func end() async -> DataStreamRequest.Completion { await completions.wait(for: 1)[0] }

  /// The handler.
  @Sendable func note(_ stream: Stream) throws {
    switch stream.event {
    case .stream(let result):
      kinds.add("s")
      results.add(result)
    case .complete(let completion):
      kinds.add("c")
      completions.add(completion)
    }
    try act(stream)
  }
}

typealias DataJournal = StreamJournal<Data, Never>

extension StreamJournal where Success == Data {
  var data: Data { values.reduce(Data(), +) }
  var text: String { String(decoding: data, as: UTF8.self) }
}

extension FakeReply {
  /// A body that comes in these chunks.
  static func chunks(_ chunks: [String], failure: TransportFailure.Kind? = nil) -> FakeReply {
    FakeReply(
      chunks: chunks.map { Data($0.utf8) }, failure: failure.map { .init($0, "broken by the script") })
  }
}
