import AlamofireV4
import Testing

@Suite("Multipart forms") struct MultipartTests {
  private func text(_ form: MultipartFormData) throws -> String {
    String(decoding: try form.encode(), as: UTF8.self)
  }

  @Test("Parts are written in order") func order() throws {
    let form = MultipartFormData()
    form.append(Data("1".utf8), withName: "a")
    form.append(Data("2".utf8), withName: "b", mimeType: "text/x")
    form.append(Data("3".utf8), withName: "c", fileName: "c.txt", mimeType: "text/plain")
    let mark = "--\(form.boundary)"
    #expect(
      try text(form)
        == "\(mark)\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n"
        + "\(mark)\r\nContent-Disposition: form-data; name=\"b\"\r\nContent-Type: text/x\r\n\r\n2\r\n"
        + "\(mark)\r\nContent-Disposition: form-data; name=\"c\"; filename=\"c.txt\"\r\n"
        + "Content-Type: text/plain\r\n\r\n3\r\n\(mark)--\r\n")
    #expect(form.contentLength == 3)
    #expect(form.contentType == "multipart/form-data; boundary=\(form.boundary)")
    form.contentType = "multipart/mixed; boundary=\(form.boundary)"
    #expect(form.contentType.hasPrefix("multipart/mixed"))
  }

  @Test("Streams and files can be parts") func streamsAndFiles() throws {
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID()).txt")
    let target = file.appendingPathExtension("form")
    try Data("file".utf8).write(to: file)
    defer { for url in [file, target] { try? FileManager.default.removeItem(at: url) } }
    let form = MultipartFormData()
    form.append(file, withName: "f")
    form.append(file, withName: "g", fileName: "g.bin", mimeType: "a/b")
    let stream = { InputStream(data: Data("12345".utf8)) }
    form.append(stream(), withLength: 5, name: "s", fileName: "s.bin", mimeType: "c/d")
    form.append(
      stream(), withLength: 5, headers: ["X-B": "2", "Content-Disposition": "form-data; name=\"h\""])
    #expect(form.contentLength == 18)
    try form.writeEncodedData(to: target)
    let written = try String(contentsOf: target, encoding: .utf8)
    #expect(
      written.contains(
        "name=\"f\"; filename=\"\(file.lastPathComponent)\"\r\nContent-Type: text/plain\r\n\r\nfile\r\n"))
    #expect(written.contains("name=\"g\"; filename=\"g.bin\"\r\nContent-Type: a/b\r\n\r\nfile\r\n"))
    #expect(written.contains("name=\"s\"; filename=\"s.bin\"\r\nContent-Type: c/d\r\n\r\n12345\r\n"))
    #expect(written.contains("Content-Disposition: form-data; name=\"h\"\r\nX-B: 2\r\n\r\n12345\r\n"))
  }

  @Test("An invalid part is an error of this module") func invalidPart() throws {
    let nowhere = URL(fileURLWithPath: "/nowhere/file.txt")
    let form = MultipartFormData()
    form.append(nowhere, withName: "f")
    let encoding = #expect(throws: AFError.self) { try form.encode() }
    #expect(encoding?.isMultipartEncodingError == true && encoding?.url == nowhere)
    let target = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID()).form")
    let writing = #expect(throws: AFError.self) { try form.writeEncodedData(to: target) }
    guard case .multipartEncodingFailed(.bodyPartFileNotReachableWithError(nowhere, _)) = writing else {
      Issue.record("\(String(describing: writing))")
      return
    }
  }

  @Test("A stream of another length is an error") func streamLength() {
    let form = MultipartFormData()
    form.append(
      InputStream(data: Data("12".utf8)), withLength: 5, name: "s", fileName: "s.bin", mimeType: "c/d")
    let error = #expect(throws: AFError.self) { try form.encode() }
    guard case .multipartEncodingFailed(.inputStreamReadFailed) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
  }
}
