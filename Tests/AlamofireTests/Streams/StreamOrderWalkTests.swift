import Alamofire
import Foundation
import HTTPWire
import Randomness
import Scenarios
import Testing

/// Handlers that are added to one queue while chunks arrive. The queue calls them exactly as a model says.
@Suite("Random handlers of a stream", .seeded, .timeLimit(.minutes(5)))
struct StreamOrderWalkTests {
  /// Makes texts of chunks, and sometimes takes long.
  private struct Slow: DataStreamSerializer {
    let isSlow: Bool

    func serialize(_ data: Data) throws -> String {
      if isSlow { for _ in 0..<50 { sched_yield() } }
      return String(decoding: data, as: UTF8.self)
    }
  }

  /// A request that was not sent, whose body the test writes.
  private struct Walk {
    let queue = DispatchQueue(label: "test.walk")
    let events = Recorder<String>()
    let request: DataStreamRequest
    var random: SeededGenerator
    var handlerCount = 0
    var expected: [String] = []

    init(_ index: Int) {
      random = Seed.generator(index)
      let session = Session.retained(fake: FakeTransport())
      request = session.streamRequest("http://a.test/", shouldAutomaticallyResume: false)
    }

    mutating func add() {
      let name = handlerCount
      handlerCount += 1
      let events = events
      let note = { @Sendable (_ text: String?) in events.add("\(name):\(text ?? "end")") }
      if Bool.random(using: &random) {
        request.responseStream(on: queue) { note($0.value.map { String(decoding: $0, as: UTF8.self) }) }
      } else {
        request.responseStream(using: Slow(isSlow: Bool.random(using: &random)), on: queue) {
          note($0.value)
        }
      }
    }

    mutating func write(_ text: String) {
      _ = Array(text.utf8).withUnsafeBytes { request.flow.receive($0) }
      expected += (0..<handlerCount).map { "\($0):\(text)" }
    }

    mutating func step(_ number: Int) {
      if handlerCount < 6, Int.random(in: 0..<20, using: &random) == 0 { add() }
      write("\(number)")
    }
  }

  @Test(
    "Each chunk reaches the handlers in their order, and each handler from its addition on", .steps,
    arguments: 0..<30)
  func walk(index: Int) async {
    var walk = Walk(index)
    walk.add()
    for number in 0..<300 {
      step("operation \(number)")
      walk.step(number)
    }
    // The completions follow the chunks, because the end waits for handlers.
    walk.request.cancel()
    walk.expected += (0..<walk.handlerCount).map { "\($0):end" }
    #expect(await walk.events.wait(for: walk.expected.count) == walk.expected)
  }

  @Test("A tiny chunk counts with its overhead, so that many fill a stream") func tinyChunks() async {
    let request = Session.retained(fake: FakeTransport())
      .streamRequest("http://a.test/", shouldAutomaticallyResume: false)
    let gate = DispatchSemaphore(value: 0)
    let ends = Recorder<Bool>()
    request.responseStream(on: DispatchQueue(label: "test.slow")) { stream in
      if stream.value == nil { ends.add(true) } else { gate.wait() }
    }
    let byte = [UInt8(1)]
    var count = 0
    while count < 1 << 20, case .more = byte.withUnsafeBytes({ request.flow.receive($0) }) { count += 1 }
    #expect(count == (1 << 20) / 65, "each of them weighs 64 bytes more than its own")
    for _ in 0...count { gate.signal() }
    request.cancel()
    await ends.wait(for: 1)
  }
}
