import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

// Samples of the comments on resumable uploads and of ResumableUploads.md; see `SampleTests`.

private func upload(fileURL: URL) {
  AF.upload(fileURL, to: "https://example.com/files").resumable().validate()
    .response { print($0.result) }
}

private func options(fileURL: URL) {
  var upload = ResumableUpload(.tus)
  upload.metadata = ["filename": "holiday.mp4"]
  AF.upload(fileURL, to: "https://example.com/files").resumable(upload)
}

private func checkpoint(fileURL: URL, checkpointURL: URL) {
  AF.upload(fileURL, to: "https://example.com/files").resumable()
    .onUploadCheckpoint { checkpoint in try? checkpoint.write(to: checkpointURL) }
    .response { print($0.result) }
}

private func continued(fileURL: URL, checkpointURL: URL) throws {
  let checkpoint = try Data(contentsOf: checkpointURL)
  AF.upload(resumingWith: checkpoint, file: fileURL).response { response in
    if response.error == nil { try? FileManager.default.removeItem(at: checkpointURL) }
  }
}

private func background(fileURL: URL) {
  let session = Session(configuration: .background(withIdentifier: "com.example.sync"))
  session.upload(fileURL, to: "https://example.com/files").resumable().response { print($0.result) }
}

private func endpoint(bytes: [UInt8]) throws {
  let uploads = UploadEndpoint(.draft)
  uploads.enqueue(.cut(afterBytes: 1000), .loseResponse)
  let server = try HTTPTestServer(routes: Routes.none.adding(uploads, at: "/files"))
  // …
  #expect(uploads.uploads.map(\.content) == [bytes])
  #expect(uploads.processedCount == 1)
  _ = server
}
