import Alamofire
import Foundation
import Scenarios
import Testing

/// Forms as httpbin reads them.
@Suite(.needsHTTPBin, .timeLimit(.minutes(5))) struct MultipartTests {
  private struct Form: Decodable, Sendable, Equatable {
    var form: [String: Values]
    var files: [String: Values]
  }

  @Test("Fields and files are received", .steps, arguments: [false, true]) func fieldsAndFilesArrive(
    isFile: Bool
  )
    async throws
  {
    let server = try await HTTPBinServer.shared
    let folder = try ServerProcess.makeFolder("form")
    defer { try? FileManager.default.removeItem(at: folder) }
    let text = folder.appendingPathComponent("ä.txt")
    try Data("file".utf8).write(to: text)

    step("form")
    let form = MultipartFormData()
    form.append(Data("Zoë".utf8), withName: "name \"quoted\"")
    form.append(Data("1".utf8), withName: "list")
    form.append(Data("2\r\n".utf8), withName: "list")
    form.append(text, withName: "text")
    form.append(
      InputStream(data: Data("stream".utf8)), withLength: 6, name: "s", fileName: "s", mimeType: "a/b")

    let headers: HTTPHeaders = [.contentType(form.contentType)]
    let request: UploadRequest
    if isFile {
      let body = folder.appendingPathComponent("body")
      try form.writeEncodedData(to: body)
      request = AF.upload(body, to: server.url("/post"), headers: headers)
    } else {
      request = AF.upload(try form.encode(), to: server.url("/post"), headers: headers)
    }
    step("parts at the server")
    let read = try await request.validate().serializingDecodable(Form.self).value
    #expect(
      read
        == Form(
          form: ["name \"quoted\"": "Zoë", "list": ["1", "2\r\n"]], files: ["text": "file", "s": "stream"]))
  }
}
