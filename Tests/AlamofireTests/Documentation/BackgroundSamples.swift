import Alamofire
import Foundation
import FoundationNetworking

// Samples of the comments on background sessions and of BackgroundTransfers.md; see `SampleTests`.

private func configured() -> Session {
  let session = Session(configuration: .background(withIdentifier: "com.example.sync"))
  for case let download as DownloadRequest in session.restoredRequests {
    download.responseURL { print($0.result) }
  }
  return session
}

private func whole(library: URL, destination: @escaping DownloadRequest.Destination) {
  let configuration = URLSessionConfiguration.background(withIdentifier: "com.example.sync") { _, response in
    (library.appendingPathComponent(response.suggestedFilename ?? "file"), [.removePreviousFile])
  }
  let session = Session(configuration: configuration)
  for case let download as DownloadRequest in session.restoredRequests {
    download.responseURL { print($0.result) }
  }
  session.download("https://example.com/film.mp4", to: destination).responseURL { print($0.result) }
}

private func withFolders(library: URL) -> URLSessionConfiguration {
  let configuration = URLSessionConfiguration.background(withIdentifier: "com.example.sync") { _, response in
    (library.appendingPathComponent(response.suggestedFilename ?? "file"), [.createIntermediateDirectories])
  }
  return configuration
}

private func checkpoints(
  session: Session, checkpointFile: URL, destination: @escaping DownloadRequest.Destination
) async throws {
  let request = session.download("https://example.com/film.mp4", to: destination)
  let file = request.serializingDownloadedFileURL()
  for await progress in request.downloadProgress() where Int(progress.fractionCompleted * 100) % 10 == 0 {
    try request.checkpoint()?.write(to: checkpointFile, options: .atomic)
  }
  print(await file.result)
}
