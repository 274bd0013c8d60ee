import Alamofire
import HTTPTestServer

let downloads = Step("A download that breaks, and goes on") { stage in
  let file = FileManager.default.temporaryDirectory.appendingPathComponent("tour-\(UUID().uuidString)")
  defer { try? FileManager.default.removeItem(at: file) }
  let whole = Reply.patternBytes(2_000_000)
  let fields = [("ETag", "\"engine\""), ("Accept-Ranges", "bytes")]
  var first = Reply.data(whole).with(effect: .closeAfterBody(bytes: 800_000))
  var rest = Reply.data(Array(whole[800_000...]))
  for (name, value) in fields { first = first.with(header: name, value: value) }
  for (name, value) in fields { rest = rest.with(header: name, value: value) }
  rest.status = 206
  rest = rest.with(header: "Content-Range", value: "bytes 800000-1999999/2000000")
  stage.server.enqueue(first, rest)

  let url = stage.server.url("/engine.bin")
  let broken = await AF.download(url, to: { _, _ in (file, []) }).serializingDownloadedFileURL().response
  stage.show("the connection breaks", "\((broken.error?.underlyingError as? URLError)?.code.rawValue ?? 0)")
  guard let resumeData = broken.resumeData else { throw Surprise("There is nothing to go on from.") }

  let bar = ProgressBar(stage: stage)
  let done = try await AF.download(resumingWith: resumeData, to: { _, _ in (file, []) })
    .downloadProgress(queue: bar.queue) { bar.draw($0) }
    .serializingDownloadedFileURL().value
  bar.finish()
  let isWhole = try Data(contentsOf: done) == Data(whole)
  stage.show("the file", isWhole ? "2000000 bytes, as they should be" : "damaged")
}
