import Alamofire
import HTTPTestServer

let segmentedDownloads = Step("A download in segments") { stage in
  let folder = FileManager.default.temporaryDirectory.appendingPathComponent("tour-\(UUID().uuidString)")
  try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(at: folder) }

  // A server that gives each connection about 500 kB in a second.
  let file = Reply.patternBytes(2_000_000)
  let routes = Routes.none.adding("/engine.bin", methods: ["GET"]) { request, _ in
    let ends = (request.header("Range") ?? "").dropFirst(6).split(separator: "-").compactMap { Int($0) }
    guard ends.count == 2, ends[0] <= ends[1], ends[1] < file.count else { return .data(file) }
    var reply = Reply.data(Array(file[ends[0]...ends[1]])).with(header: "ETag", value: "\"engine\"")
    reply.status = 206
    return reply.with(header: "Content-Range", value: "bytes \(ends[0])-\(ends[1])/\(file.count)")
      .with(effect: .slowDrip(bytesPerStep: 10_000, interval: .milliseconds(20)))
  }
  let server = try HTTPTestServer(routes: routes)

  let download = AF.segmentedDownload(
    server.url("/engine.bin"), segments: 4, minimumSegmentSize: 50_000,
    to: folder.appendingPathComponent("engine.bin"))
  let bar = ProgressBar(stage: stage)
  download.downloadProgress(queue: bar.queue) { bar.draw($0.fractionCompleted) }
  let done = try await download.value
  bar.finish()
  let isWhole = try Data(contentsOf: done) == Data(file)
  stage.show("the file, by four connections", isWhole ? "2000000 bytes, as they should be" : "damaged")
}
