import Alamofire
import Foundation
import HTTPTestServer
import Testing

/// The bodies of uploads with forms.
@Suite(.timeLimit(.minutes(5))) struct MultipartUploadTests {
  private func form(_ count: Int) -> MultipartFormData {
    let form = MultipartFormData(boundary: "B")
    form.append(Data(count: count), withName: "a")
    return form
  }

  @Test("Below the threshold a form is encoded in memory") func belowThreshold() throws {
    let form = form(99)
    let upload = try form.makeUpload(threshold: 100)
    #expect(upload.body == .data(try form.encode()))
    #expect(upload.contentType == "multipart/form-data; boundary=B")
    #expect(MultipartFormData.encodingMemoryThreshold == 10_000_000)
    guard case .data = try self.form(9_999_999).makeUpload().body else {
      Issue.record("written to a file")
      return
    }
  }

  @Test("At the threshold a form is encoded in a file", arguments: [(100, UInt64(100)), (0, 0)])
  func atThreshold(count: Int, threshold: UInt64) throws {
    let form = form(count)
    guard case .file(let url) = try form.makeUpload(threshold: threshold).body else {
      Issue.record("held in memory")
      return
    }
    defer { try? FileManager.default.removeItem(at: url) }
    #expect(try Data(contentsOf: url) == form.encode())
    let attributes = try FileManager.default.attributesOfItem(atPath: url.path)
    #expect(attributes[.posixPermissions] as? Int == 0o600, "others may read the form")
    guard case .file(let second) = try form.makeUpload(threshold: threshold).body else { return }
    defer { try? FileManager.default.removeItem(at: second) }
    #expect(second != url)
  }

  @Test("A form that fails leaves no file") func failure() throws {
    let folder = try TemporaryFolder()
    let form = MultipartFormData(fileManager: FolderFileManager(folder))
    form.append(Data(count: 10), withName: "a")
    form.append(InputStream(data: Data()), withLength: 10, headers: [])
    #expect(multipartFailure { _ = try form.makeUpload(threshold: 5) }?.lengths == [10, 0])
    // The lock file of this process, by which later processes detect that it runs, is not removed.
    #expect(try folder.names.filter { !$0.hasSuffix(".lock") } == [])
  }

  @Test("The content type of a subclass is sent") func subclass() throws {
    class Related: MultipartFormData {
      override var contentType: String {
        get { "multipart/related; boundary=\(boundary)" }
        set {}
      }
    }
    #expect(try Related(boundary: "R").makeUpload().contentType == "multipart/related; boundary=R")
  }

  @Test("A server reads the parts") func server() async throws {
    struct Echo: Decodable, Sendable, Equatable {
      var form: [String: String]
      var files: [String: String]
    }
    let server = try HTTPTestServer()
    let form = MultipartFormData()
    form.append(Data("Zoë\r\n--".utf8), withName: "text")
    form.append(Data("bytes".utf8), withName: "file", fileName: "a.txt", mimeType: "text/plain")
    let upload = try form.makeUpload()
    guard case .data(let data) = upload.body else { return }
    let echo = try await Session.real()
      .upload(data, to: server.url("/post"), headers: [.contentType(upload.contentType)])
      .serializingDecodable(Echo.self).value
    #expect(echo == Echo(form: ["text": "Zoë\r\n--"], files: ["file": "bytes"]))
  }
}
