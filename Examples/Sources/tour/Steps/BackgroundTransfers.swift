import Alamofire
import FoundationNetworking
import HTTPTestServer

let backgroundTransfers = Step("A download that survives its process") { stage in
  let folder = FileManager.default.temporaryDirectory.appendingPathComponent("tour-\(UUID().uuidString)")
  defer { try? FileManager.default.removeItem(at: folder) }
  let file = folder.appendingPathComponent("engine.bin")
  func makeSession() -> Session {
    Session(
      configuration: .background(withIdentifier: "tour", folder: folder.appendingPathComponent("journal")) {
        _, _ in (file, [])
      })
  }

  let whole = Reply.patternBytes(2_000_000)
  var rest = Reply.data(Array(whole[1_200_000...])).with(header: "ETag", value: "\"engine\"")
  rest.status = 206
  rest = rest.with(header: "Content-Range", value: "bytes 1200000-1999999/2000000")
  stage.server.enqueue(
    .data(whole).with(header: "ETag", value: "\"engine\"").with(effect: .stallAfterBody(bytes: 1_200_000)),
    rest.with(effect: .slowDrip(bytesPerStep: 40_000, interval: .milliseconds(20))))

  do {
    let session = makeSession()
    let first = session.download(stage.server.url("/engine.bin")).resume()
    for await progress in first.downloadProgress() where progress.completedUnitCount >= 1_200_000 { break }
    stage.show("the session ends after", "1200000 bytes")
  }
  let session = makeSession()
  guard let restored = session.restoredRequests.first as? DownloadRequest else {
    throw Surprise("The journal has no download.")
  }
  stage.show("the next one has found", restored.originalRequest?.url?.path ?? "nothing")
  let bar = ProgressBar(stage: stage)
  let done = try await restored.downloadProgress(queue: bar.queue) { bar.draw($0) }
    .serializingDownloadedFileURL().value
  bar.finish()
  let isWhole = try Data(contentsOf: done) == Data(whole)
  stage.show("the file", isWhole ? "2000000 bytes, as they should be" : "damaged")
}
