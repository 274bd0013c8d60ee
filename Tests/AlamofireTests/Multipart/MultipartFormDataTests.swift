import Alamofire
import Foundation
import Testing

/// The bytes of encoded forms.
@Suite(.timeLimit(.minutes(5))) struct MultipartFormDataTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func encoded(_ fill: (MultipartFormData) -> Void) throws -> String? {
    let form = MultipartFormData(boundary: "B")
    fill(form)
    return try form.text()
  }

  @Test("A plain field has a name only") func plainField() throws {
    let text = try encoded { $0.append(Data("value".utf8), withName: "field") }
    #expect(text == "--B\r\nContent-Disposition: form-data; name=\"field\"\r\n\r\nvalue\r\n--B--\r\n")
  }

  @Test("The type of a file follows from its given name, or else from its own name")
  func typeOfGivenName() throws {
    for (own, given, type) in [
      ("upload", "engine.png", "image/png"), ("upload.tmp-x", "engine.PNG", "image/png"),
      ("notes.txt", "engine.png", "image/png"), ("engine.png", "engine", "image/png"),
      ("engine.png", "engine.v2-x", "image/png"), ("upload", "engine", "application/octet-stream"),
      ("upload", "", "application/octet-stream"), ("upload", "a/b.png", "image/png"),
    ] {
      let file = folder[own]
      try Data("x".utf8).write(to: file)
      let text = try encoded { $0.append(file, withName: "f", fileName: given) }
      let head =
        "Content-Disposition: form-data; name=\"f\"; filename=\"\(given)\"\r\nContent-Type: \(type)\r\n"
      #expect(text?.contains(head) == true, "\(own) as \(given)")
      try FileManager.default.removeItem(at: file)
    }
  }

  @Test("Parts are written in order between boundaries") func boundaries() throws {
    let text = try encoded { form in
      form.append(Data("1".utf8), withName: "a")
      form.append(Data("2".utf8), withName: "b", mimeType: "text/plain")
      form.append(Data("3".utf8), withName: "a", fileName: "c.bin", mimeType: "application/octet-stream")
      form.append(Data(), withName: "d", fileName: "e")
    }
    #expect(
      text == """
        --B\r
        Content-Disposition: form-data; name="a"\r
        \r
        1\r
        --B\r
        Content-Disposition: form-data; name="b"\r
        Content-Type: text/plain\r
        \r
        2\r
        --B\r
        Content-Disposition: form-data; name="a"; filename="c.bin"\r
        Content-Type: application/octet-stream\r
        \r
        3\r
        --B\r
        Content-Disposition: form-data; name="d"; filename="e"\r
        \r
        \r
        --B--\r

        """)
  }

  @Test("A form without parts is the closing boundary") func emptyForm() throws {
    #expect(try encoded { _ in } == "--B--\r\n")
    #expect(MultipartFormData().contentLength == 0)
  }

  @Test("A file has a name and a type") func file() throws {
    let picture = try folder.file("Bild ä.PNG", Data("png".utf8))
    let odd = try folder.file("a.unknown-type", Data())
    let text = try encoded { form in
      form.append(picture, withName: "p")
      form.append(odd, withName: "q")
      form.append(picture, withName: "r", fileName: "", mimeType: "x/y")
    }
    #expect(
      text == """
        --B\r
        Content-Disposition: form-data; name="p"; filename="Bild ä.PNG"\r
        Content-Type: image/png\r
        \r
        png\r
        --B\r
        Content-Disposition: form-data; name="q"; filename="a.unknown-type"\r
        Content-Type: application/octet-stream\r
        \r
        \r
        --B\r
        Content-Disposition: form-data; name="r"; filename=""\r
        Content-Type: x/y\r
        \r
        png\r
        --B--\r

        """)
  }

  @Test("A stream has the given head") func stream() throws {
    let form = MultipartFormData(boundary: "B")
    let headers: HTTPHeaders = ["X-Z": "1", "Content-Disposition": "form-data; name=s", "A": ""]
    form.append(InputStream(data: Data("12".utf8)), withLength: 2, headers: headers)
    form.append(InputStream(data: Data()), withLength: 0, headers: [])
    form.append(
      InputStream(data: Data("3".utf8)), withLength: 1, name: "n", fileName: "f", mimeType: "a/b")
    #expect(
      try form.text() == """
        --B\r
        X-Z: 1\r
        Content-Disposition: form-data; name=s\r
        A: \r
        \r
        12\r
        --B\r
        \r
        \r
        --B\r
        Content-Disposition: form-data; name="n"; filename="f"\r
        Content-Type: a/b\r
        \r
        3\r
        --B--\r

        """)
    #expect(form.contentLength == 3)
  }

  @Test("A form with two texts has 241 bytes") func length() throws {
    let form = MultipartFormData()
    form.append(Data("français".utf8), withName: "french")
    form.append(Data("日本語".utf8), withName: "japanese")
    #expect(try form.encode().count == 241)
    #expect(form.contentLength == 18)
  }

  @Test("Parts can be appended after an encoding") func appendAfterEncoding() throws {
    let form = MultipartFormData(boundary: "B")
    form.append(Data("1".utf8), withName: "a")
    let first = try form.encode()
    #expect(try form.encode() == first)
    form.append(Data("2".utf8), withName: "b")
    #expect(form.contentLength == 2)
    let both = try #require(try form.text())
    #expect(both.hasPrefix(String(decoding: first.dropLast(4), as: UTF8.self)))
    #expect(both.hasSuffix("name=\"b\"\r\n\r\n2\r\n--B--\r\n"))
  }

  @Test("Both encoders write ten thousand parts") func manyParts() throws {
    let file = try folder.file("small.txt", Data("x".utf8))
    let form = MultipartFormData(boundary: "B")
    var expected = ""
    for index in 0..<10_000 {
      expected += "--B\r\nContent-Disposition: form-data; name=\"n\(index)\""
      if index % 100 == 0 {
        form.append(file, withName: "n\(index)")
        expected += "; filename=\"small.txt\"\r\nContent-Type: text/plain\r\n\r\nx\r\n"
      } else {
        form.append(Data("\(index)".utf8), withName: "n\(index)")
        expected += "\r\n\r\n\(index)\r\n"
      }
    }
    let text = try form.text()
    #expect(text == expected + "--B--\r\n")
  }

  @Test("A subclass decides about the type") func subclass() {
    class Mixed: MultipartFormData {
      override var contentType: String {
        get { "multipart/mixed; boundary=\(boundary)" }
        set {}
      }
    }
    #expect(Mixed(boundary: "B").contentType == "multipart/mixed; boundary=B")
    let form = MultipartFormData(boundary: "B")
    form.contentType = "multipart/related; boundary=B"
    #expect(form.contentType == "multipart/related; boundary=B")
  }

  @Test("The content length does not overflow") func overflow() {
    let form = MultipartFormData()
    for _ in 0..<3 { form.append(InputStream(data: Data()), withLength: .max - 1, headers: []) }
    #expect(form.contentLength == .max)
    #expect(multipartFailure { _ = try form.encode() }?.lengths == [UInt64.max - 1, 0])
  }
}
