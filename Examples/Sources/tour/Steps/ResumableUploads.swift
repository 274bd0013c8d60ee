import Alamofire
import HTTPTestServer

let resumableUploads = Step("An upload that breaks, and goes on") { stage in
  let file = FileManager.default.temporaryDirectory.appendingPathComponent("tour-\(UUID().uuidString)")
  let bytes = Reply.patternBytes(2_000_000)
  try Data(bytes).write(to: file)
  defer { try? FileManager.default.removeItem(at: file) }

  // A server of the protocol tus that breaks two connections.
  let endpoint = UploadEndpoint(.tus)
  endpoint.enqueue(.cut(afterBytes: 700_000), .cut(afterBytes: 600_000))
  let server = try HTTPTestServer(routes: Routes.none.adding(endpoint, at: "/files"))

  let bar = ProgressBar(stage: stage)
  let response = await AF.upload(file, to: server.url("/files")).resumable().validate()
    .uploadProgress(queue: bar.queue) { bar.draw($0.fractionCompleted) }
    .serializingData(emptyResponseCodes: [200, 201, 204]).response
  bar.finish()
  if let error = response.error { throw error }
  let isWhole = endpoint.uploads.map(\.content) == [bytes]
  stage.show("on the server, after two breaks", isWhole ? "2000000 bytes, stored once" : "damaged")
}
