import Alamofire
import HTTPTestServer

let progress = Step("The progress of a download") { stage in
  // Four megabytes in twenty chunks, with a pause after each.
  stage.server.enqueue(
    .bytes(4_000_000).with(effect: .slowDrip(bytesPerStep: 200_000, interval: .milliseconds(40))))

  let bar = ProgressBar(stage: stage)
  let data = try await AF.request(stage.server.url("/engine.bin"))
    .downloadProgress(queue: bar.queue) { bar.draw($0) }
    .serializingData().value

  bar.finish()
  stage.show("in memory", "\(data.count) bytes")
}
