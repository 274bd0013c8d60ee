import Alamofire

// Samples of Downloads.md; see `SampleTests`.

private let url = "https://example.com/film.mp4"

private func show(_ value: Any) {}

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

private func progress() async {
  let request = AF.download(url)
  for await progress in request.downloadProgress() {
    print(progress.completedUnitCount, "of", progress.totalUnitCount)
  }
  let response = await request.serializingDownloadedFileURL().response
  print(response.result)
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
  session: Session, checkpointFile: URL, destination: @escaping DownloadRequest.Destination
) async throws {
  let request = session.download(url, to: destination)
  for await progress in request.downloadProgress() where Int(progress.fractionCompleted * 100) % 10 == 0 {
    try request.checkpoint()?.write(to: checkpointFile, options: .atomic)
  }
}

private func checksum(digest: @escaping @Sendable (URL) -> String?) {
  struct WrongDigest: Error {}

  let request = AF.download(url).validate { _, _, file in
    digest(file ?? URL(fileURLWithPath: "/dev/null")) == "6bf4…" ? .success(()) : .failure(WrongDigest())
  }
  show(request)
}
