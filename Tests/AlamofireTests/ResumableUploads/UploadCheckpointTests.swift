import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire
import Testing

@testable import Alamofire

/// The data with which another process continues an upload.
@Suite("Checkpoints of uploads") struct UploadCheckpointTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func upload(
    _ url: String = "https://a.test/files/1", creation: String = "https://a.test/files"
  ) throws -> StoredUpload {
    StoredUpload(
      try #require(UploadResource(url: url)), creation: try #require(UploadResource(url: creation)),
      dialect: .draft)
  }

  private func isRefused(_ data: Data) -> Bool { (try? UploadCheckpoint(data)) == nil }

  @Test("A checkpoint has the upload, the method and the properties of the file") func roundTrip() throws {
    var upload = try upload()
    upload.statusAfterLastByte = 500
    let file = UploadFileIdentity(size: 7, modified: 1_700_000_000.25)
    let checkpoint = UploadCheckpoint(upload, method: "PUT", file: file)
    let data = try #require(checkpoint.data)
    #expect(try UploadCheckpoint(data) == checkpoint)
    let state = try #require(Journal.standard.state(of: data))
    #expect(state.mayBeComplete(boot: ""), "the other process does not know what was sent")
    #expect(state.description.bodyFile?.path == "", "the other process names the file")
    let request = try CheckpointRequest(checkpoint: data, headers: ["A": "1"]).asURLRequest()
    #expect(request.url?.absoluteString == "https://a.test/files" && request.httpMethod == "PUT")
    #expect(request.value(forHTTPHeaderField: "A") == "1")
  }

  @Test("Forged data are no checkpoint") func forged() throws {
    func data(
      kind: TransferDescription.TransferKind = .upload, size: Int64 = 7, modified: Double? = 1,
      hasFile: Bool = true,
      _ upload: StoredUpload?
    ) throws -> Data {
      var description = TransferDescription(
        kind: kind, url: "https://a.test/files", method: "POST", fields: [:], created: 0, boot: "")
      if hasFile { description.bodyFile = .init(path: "", isOwned: false, size: size) }
      description.bodyFile?.modified = modified
      return try #require(
        Journal.standard.lines(of: [.described(description), .uploading(upload, mayBeComplete: true)]))
    }
    let valid = try upload()
    #expect(try !isRefused(data(valid)) && !isRefused(data(size: 0, valid)))
    #expect(try isRefused(data(kind: .download, valid)))
    #expect(try isRefused(data(size: -1, valid)))
    #expect(try isRefused(data(modified: nil, valid)))
    #expect(try isRefused(data(hasFile: false, valid)))
    #expect(try isRefused(data(nil)))
    #expect(try isRefused(data(upload("http://a.test/files/1"))), "the upload would leave TLS")
    #expect(isRefused(Data()) && isRefused(Data("x".utf8)))
    #expect(try isRefused(data(valid) + Data(count: 1 << 20)), "it is too large")
  }

  @Test("A property list from before the first release is a checkpoint") func firstVersion() throws {
    func list(_ changes: [String: Any] = [:]) throws -> Data {
      var list: [String: Any] = [
        "version": 1, "url": "https://a.test/files/1", "creationURL": "https://a.test/files",
        "method": "POST",
        "isTus": true, "file": ["size": 7, "modified": 1.5],
      ]
      for (key, value) in changes { list[key] = value }
      return try PropertyListSerialization.data(fromPropertyList: list, format: .binary, options: 0)
    }
    for isTus in [false, true] {
      let checkpoint = try UploadCheckpoint(list(["isTus": isTus]))
      #expect(checkpoint.upload.dialect == (isTus ? .tus : .draft) && checkpoint.method == "POST")
      #expect(checkpoint.file == UploadFileIdentity(size: 7, modified: 1.5))
      #expect(checkpoint.upload.url == "https://a.test/files/1")
      #expect(checkpoint.upload.creationURL == "https://a.test/files")
    }
    for changes in [
      ["version": 2], ["url": "x"], ["url": "http://a.test/files/1"], ["creationURL": ""],
      ["file": ["size": -1, "modified": 1.5]],
    ] as [[String: Any]] {
      #expect(try isRefused(list(changes)), "\(changes)")
    }
  }

  @Test("Only a regular file has an identity") func identities() throws {
    let file = try folder.file("a", Data("1234".utf8))
    let identity = try #require(UploadFileIdentity(file))
    #expect(identity.size == 4)
    let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
    let date = try #require(attributes[.modificationDate] as? Date)
    #expect(identity.modified == date.timeIntervalSince1970, "checkpoints of earlier versions have this time")
    #expect(UploadFileIdentity(folder.url) == nil && UploadFileIdentity(folder["missing"]) == nil)
    try FileManager.default.createSymbolicLink(at: folder["link"], withDestinationURL: file)
    #expect(UploadFileIdentity(folder["link"]) == identity, "a link is read as its file")
    #expect(UploadFileIdentity(try #require(URL(string: "https://a.test\(file.path)"))) == nil)
  }
}
