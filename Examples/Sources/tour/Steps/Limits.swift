import Alamofire
import FoundationNetworking
import HTTPTestServer

let limits = Step("Limits, and a look at the queue") { stage in
  var options = TransportOptions()
  options.requestLimits.perHost = 2
  options.sessionBandwidth.download = 1_000_000
  options.timeLimits.firstByte = .milliseconds(300)
  let session = Session(transportOptions: options)

  // Two requests wait for their responses, so that others stay in the queue.
  let gate = Gate()
  let server = try HTTPTestServer(
    routes: .standard.adding("/gate") { _, _ in
      Reply(body: .parts([.bytes(Array("open ".utf8)), .gate(gate), .bytes(Array("sesame".utf8))]))
    })
  let first = (1...2).map { _ in session.request(server.url("/gate")).serializingString() }
  await gate.waitUntilReached(count: 2)
  let waiting = [session.request(server.url("/get")), session.request(server.url("/json"))]
  waiting[1].priority = URLSessionTask.highPriority
  let last = waiting.map { $0.serializingString() }
  while await session.transportSnapshot().waitingCount < 2 { await Task.yield() }
  for line in await "\(session.transportSnapshot())".split(separator: "\n") { stage.say(String(line)) }
  gate.open()
  for task in first + last { _ = try await task.value }

  let bar = ProgressBar(stage: stage)
  let started = ContinuousClock.now
  let data = try await session.request(server.url("/bytes/1000000"))
    .downloadProgress(queue: bar.queue) { bar.draw($0.fractionCompleted) }.serializingData().value
  bar.finish()
  let seconds = (ContinuousClock.now - started).components.seconds
  stage.show("\(data.count) bytes", "in about \(max(1, seconds)) s, by 1000000 bytes in a second")

  server.enqueue(.stall)
  let late = await session.request(server.url("/silence")).serializingData().response
  guard let error = late.error?.underlyingError as? URLError, error.timedOutPhase == .firstByte else {
    throw Surprise("A server that says nothing did not exceed the limit.")
  }
  stage.explain(error.localizedDescription)
}
