import Foundation
import HTTPWire
import Testing

@testable import Alamofire

/// Each entry of a stream counts for its back-pressure.
@Suite("Weights of stream entries") struct StreamWeightTests {
  /// A handler that counts the bytes and events that it receives.
  private final class Counter: StreamHandler {
    let runEnd: RunEnd
    let received = Recorder<Int>()
    let decodingQueue: DispatchQueue? = nil

    init(_ flow: StreamFlow) { runEnd = RunEnd(flow.delivery) }

    func calls(with entries: [StreamEntry]) -> @Sendable () -> Void {
      { [received] in
        for entry in entries {
          if case .events(let events) = entry { received.add(events.count) }
          if let data = entry.data { received.add(data.count) }
        }
      }
    }

    func complete() {}
  }

  private static let ok = ResponseHead(
    status: 200, fields: [HTTPHeader(name: "Content-Type", value: "text/event-stream")])

  private func receive(_ text: String, _ flow: StreamFlow) {
    _ = Data(text.utf8).withUnsafeBytes { flow.receive($0) }
  }

  @Test("Bytes that wait count with an overhead for each piece, until they are handed out")
  func bytes() async {
    let flow = StreamFlow(executor: nil)
    let queue = DispatchQueue(label: "test.weights")
    queue.suspend()
    let counter = Counter(flow)
    flow.add(counter, on: queue)
    #expect(flow.begin(Self.ok, wake: {}) == nil)
    let begin = flow.heldBytes
    #expect(begin > 0 && begin < 1000)
    let most = flow.room()
    receive(String(repeating: "x", count: 5000), flow)
    #expect(flow.heldBytes == 2 * begin + 5000)
    receive(String(repeating: "y", count: 7), flow)
    #expect(flow.heldBytes == 3 * begin + 5007)
    #expect(flow.room() == most - 2 * begin - 5007)
    queue.resume()
    let received = await counter.received.wait(for: 1)
    #expect(received.reduce(0, +) > 0)
    _ = await eventually { flow.heldBytes == 0 }
    #expect(flow.heldBytes == 0)
  }

  @Test("An event counts with its data, its type and its ID, and an overhead") func events() async {
    let source = EventSource(
      EventSource.Settings(
        lastEventID: "", policy: .init(), limits: .init(), reconnects: nil, maximumFailureCount: nil))
    let flow = StreamFlow(executor: nil, eventSource: source)
    let queue = DispatchQueue(label: "test.weights")
    queue.suspend()
    let counter = Counter(flow)
    flow.add(counter, on: queue)
    #expect(flow.begin(Self.ok, wake: {}) == nil)
    let begin = flow.heldBytes
    #expect(flow.room() == BodyPiece.size, "an event may be much larger than its bytes")
    let (data, type, id) = (
      String(repeating: "d", count: 3000), String(repeating: "t", count: 200),
      String(repeating: "i", count: 10)
    )
    receive("event: \(type)\nid: \(id)\ndata: \(data)\n\n", flow)
    #expect(flow.heldBytes == 2 * begin + 3210)
    receive("data: 1\n\ndata: 2\n\n", flow)
    // The default type is `message`, and the ID is kept.
    #expect(flow.heldBytes == 4 * begin + 3210 + 2 * (1 + 7 + 10))
    queue.resume()
    #expect(await counter.received.wait(for: 2) == [1, 2])
  }
}
