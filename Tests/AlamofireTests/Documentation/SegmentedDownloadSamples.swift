import Alamofire

// Samples of the comments on downloads in segments and of SegmentedDownloads.md; see `SampleTests`.

private func loop(_ destination: URL) async throws -> URL {
  let download = AF.segmentedDownload("https://example.com/image.iso", to: destination)
  for await progress in download.progress() {
    print(progress.completedBytes, progress.bytesPerSecond ?? 0)
  }
  let file = try await download.value
  return file
}

private func mirrors(_ destination: URL) -> SegmentedDownload {
  let download = AF.segmentedDownload(
    "https://example.com/image.iso", mirrors: ["https://mirror.example.com/image.iso"],
    checksum: .sha256("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"), to: destination)
  return download
}

private func credentials(_ destination: URL, secret: String) {
  AF.segmentedDownload("https://example.com/private.iso", to: destination)
    .authenticate(username: "ann", password: secret)
    .response { print($0.result) }
}

private func handlers(_ destination: URL) {
  AF.segmentedDownload("https://example.com/image.iso", segments: 8, to: destination)
    .downloadProgress { print($0.fractionCompleted, $0.connectionCount) }
    .response { print($0.result, $0.droppedMirrors) }
}
