import Alamofire
import HTTPTestServer
import Testing

// Samples of Downloads.md; see `SampleTests`.

private let url = "https://example.com/film.mp4"

private func show(_ value: Any) {}

/// The samples are run that would wait forever if nothing started their requests.
@Suite("Guide to downloads", .timeLimit(.minutes(1))) struct DownloadsGuideTests {
  @Test("The loop over the progress ends with the download") func progressSample() async throws {
    let server = try HTTPTestServer()
    await progress(url: server.url("/bytes/100000"))
    #expect(server.requestCount == 1)
  }

  @Test("The loop that writes checkpoints ends with the download") func checkpointSample() async throws {
    let server = try HTTPTestServer()
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    defer { try? FileManager.default.removeItem(at: folder) }
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let file = folder.appendingPathComponent("film")
    try await checkpoints(
      session: Session(), url: server.url("/bytes/100000"),
      checkpointFile: folder.appendingPathComponent("checkpoint"),
      destination: { _, _ in (file, []) })
    #expect(try Data(contentsOf: file).count == 100_000)
  }
}

private func first() async throws {
  let file = try await AF.download(url)
    .validate()
    .serializingDownloadedFileURL()
    .value
  show(file)
}

private func destinations(queue: DispatchQueue) {
  let folder = URL(fileURLWithPath: "/var/lib/films")
  let destination: DownloadRequest.Destination = { temporaryURL, response in
    let file = folder.appendingPathComponent(response.suggestedFilename ?? "film")
    return (file, [.createIntermediateDirectories, .removePreviousFile])
  }

  AF.download(url, to: destination)
    .validate()
    .responseURL(queue: queue) { response in print(response.result) }
}

private func progress(url: String) async {
  let request = AF.download(url)
  let file = request.serializingDownloadedFileURL()  // starts the request
  for await progress in request.downloadProgress() {
    print(progress.completedUnitCount, "of", progress.totalUnitCount)
  }
  print(await file.result)
  if let url = try? await file.value { try? FileManager.default.removeItem(at: url) }
}

private func resuming(destination: @escaping DownloadRequest.Destination) {
  let request = AF.download(url, to: destination)
  request.cancel { resumeData in
    guard let resumeData else { return }
    AF.download(resumingWith: resumeData, to: destination)
      .validate()
      .responseURL { response in print(response.result) }
  }
}

private func loop(destination: @escaping DownloadRequest.Destination) async throws {
  var response = await AF.download(url, to: destination).serializingDownloadedFileURL().response
  for _ in 0..<5 {
    guard let resumeData = response.resumeData else { break }
    response = await AF.download(resumingWith: resumeData, to: destination)
      .serializingDownloadedFileURL()
      .response
  }
  print(try response.result.get())
}

private func checkpoints(
  session: Session, url: String, checkpointFile: URL, destination: @escaping DownloadRequest.Destination
) async throws {
  let request = session.download(url, to: destination)
  let file = request.serializingDownloadedFileURL()
  for await progress in request.downloadProgress() where Int(progress.fractionCompleted * 100) % 10 == 0 {
    try request.checkpoint()?.write(to: checkpointFile, options: .atomic)
  }
  print(await file.result)
}

private func checksum(digest: @escaping @Sendable (URL) -> String?) {
  struct WrongDigest: Error {}

  let request = AF.download(url).validate { _, _, file in
    digest(file ?? URL(fileURLWithPath: "/dev/null")) == "6bf4…" ? .success(()) : .failure(WrongDigest())
  }
  show(request)
}
