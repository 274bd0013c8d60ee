import Foundation
import HTTPTestServer
import Testing

@testable import Alamofire

/// Several handlers of one stream on one queue.
@Suite("The order of handlers of a stream", .timeLimit(.minutes(5)))
struct StreamOrderTests {
  private let queue = DispatchQueue(label: "test.order")
  private let events = Recorder<String>()

  private func request(_ chunks: [String]) -> DataStreamRequest {
    Session.retained(fake: FakeTransport(.chunks(chunks))).streamRequest("http://a.test/")
  }

  private func note<Success, Failure>(
    _ name: String, _ stream: DataStreamRequest.Stream<Success, Failure>
  ) {
    switch stream.event {
    case .stream(.success(let value)):
      let text = (value as? Data).map { String(decoding: $0, as: UTF8.self) } ?? "\(value)"
      events.add("\(name)\(text)")
    case .stream(.failure): events.add("\(name)!")
    case .complete: events.add("\(name).")
    }
  }

  private func expected(
    _ names: [String], _ count: Int, _ text: (Int) -> String = { "\($0)" }
  ) -> [String] {
    (0..<count).flatMap { index in names.map { $0 + text(index) } } + names.map { "\($0)." }
  }

  @Test("Each chunk is delivered to the handlers in the order of their addition", arguments: 0..<5)
  func data(run: Int) async {
    let names = ["a", "b", "c"]
    let request = request((0..<200).map { "\($0)" })
    request.suspend()
    for name in names { request.responseStream(on: queue) { note(name, $0) } }
    request.resume()
    #expect(await events.wait(for: 603) == expected(names, 200))
  }

  @Test("Values and bytes are delivered in order", arguments: 0..<5)
  func values(run: Int) async {
    let request = request((0..<100).map { "[\($0)]" })
    request.suspend()
    request.responseStreamDecodable(of: [Int].self, on: queue) { note("a", $0) }
    request.responseStreamString(on: queue) { note("b", $0) }
    request.responseStreamDecodable(of: [Int].self, on: queue) { note("c", $0) }
    request.responseStream(on: queue) { note("d", $0) }
    request.resume()
    #expect(await events.wait(for: 404) == expected(["a", "b", "c", "d"], 100) { "[\($0)]" })
  }

  @Test("The order holds on the main queue")
  func main() async {
    let request = request((0..<50).map { "\($0)" })
    request.suspend()
    request.responseStream { note("a", $0) }.responseStream { note("b", $0) }
    request.resume()
    #expect(await events.wait(for: 102) == expected(["a", "b"], 50))
  }

  @Test("A handler that cancels does not suppress the completions of the others")
  func muted() async {
    let request = request((0..<50).map { "\($0)" })
    request.suspend()
    request.responseStream(on: queue) { stream in
      note("a", stream)
      if case .stream = stream.event { stream.cancel() }
    }
    request.responseStream(on: queue) { note("b", $0) }
    request.resume()
    #expect(await eventually { events.values.contains("b.") && events.values.contains("a.") })
    #expect(events.values.first == "a0")
    #expect(events.values.filter { $0.hasPrefix("a") } == ["a0", "a."])
  }

  /// A handler that a test adds to a flow.
  private final class SpyHandler: StreamHandler {
    let runEnd: RunEnd
    let decodingQueue: DispatchQueue? = nil
    let events: Recorder<String>

    init(_ flow: StreamFlow, _ events: Recorder<String>) {
      runEnd = RunEnd(flow.delivery)
      self.events = events
    }

    func calls(with entries: [StreamEntry]) -> @Sendable () -> Void {
      let texts = entries.compactMap { $0.data.map { String(decoding: $0, as: UTF8.self) } }
      return { [events] in for text in texts { events.add(text) } }
    }

    func complete() { events.add(".") }
  }

  @Test("A handler that leaves while its queue is busy gets what was written before, and then its completion")
  func leaving() {
    let flow = StreamFlow(executor: nil)
    let handler = SpyHandler(flow, events)
    flow.add(handler, on: queue)
    queue.suspend()
    for text in ["a", "b"] { _ = Array(text.utf8).withUnsafeBytes { flow.receive($0) } }
    flow.fanout.leave(handler.runEnd, .left(handler))
    _ = Array("c".utf8).withUnsafeBytes { flow.receive($0) }
    queue.resume()
    queue.sync {}
    #expect(events.values.joined() == "ab.")
  }

  @Test("A slow handler on another queue does not change the order")
  func otherQueue() async {
    let request = request((0..<20).map { "\($0)" })
    let slow = Recorder<Int>()
    request.suspend()
    request.responseStream(on: queue) { note("a", $0) }
    request.responseStream(on: DispatchQueue(label: "slow")) { stream in
      if case .complete = stream.event { slow.add(1) }
    }
    request.responseStream(on: queue) { note("b", $0) }
    request.resume()
    #expect(await events.wait(for: 42) == expected(["a", "b"], 20))
    await slow.wait(for: 1)
  }
}
