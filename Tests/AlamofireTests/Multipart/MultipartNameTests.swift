import Alamofire
import Foundation
import Testing

/// A name, a type or a boundary cannot add a field or a part.
@Suite struct MultipartNameTests {
  private static let escapes: [(name: String, escaped: String)] = [
    ("", ""), ("plain name", "plain name"), ("ä日本👩‍👩‍👧", "ä日本👩‍👩‍👧"), ("a\"b", "a%22b"),
    ("a\r\nX-Evil: 1\r\n\r\nb", "a%0D%0AX-Evil: 1%0D%0A%0D%0Ab"), ("\n", "%0A"), ("\r", "%0D"),
    ("a\0b\u{7F}\t\u{1B}", "a%00b%7F%09%1B"), ("a\\b%22;=", "a\\b%22;="), ("C:\\", "C:%5C"),
    ("\\\\", "\\%5C"), ("\\\"", "\\%22"),
    ("\u{2028}\u{85}", "\u{2028}\u{85}"),
  ]

  @Test("Names are escaped as by browsers", arguments: escapes.indices) func nameEscapes(index: Int) throws {
    let (name, escaped) = Self.escapes[index]
    let form = MultipartFormData(boundary: "B")
    form.append(Data("v".utf8), withName: name, fileName: name)
    let head = "--B\r\nContent-Disposition: form-data; name=\"\(escaped)\"; filename=\"\(escaped)\"\r\n\r\n"
    // Compared as bytes, because CR and LF are one character of Swift.
    #expect(try form.encode() == Data("\(head)v\r\n--B--\r\n".utf8))
  }

  @Test(
    "A type with a control character is an error",
    arguments: ["a/b\r\nX: y", "a/b\n", "\r", "a\0", "a/b; name=\u{1}"])
  func controlCharacters(type: String) throws {
    let form = MultipartFormData()
    form.append(Data(), withName: "a", mimeType: type)
    form.append(Data("counted".utf8), withName: "b")
    let failure = multipartFailure { _ = try form.encode() }
    #expect(failure?.kind == .invalidHeaderField)
    #expect(form.contentLength == 7)
    let folder = try TemporaryFolder()
    #expect(multipartFailure { try form.writeEncodedData(to: folder["f"]) }?.kind == .invalidHeaderField)
    #expect(try folder.names == [])
  }

  @Test(
    "An invalid field is an error",
    arguments: [
      HTTPHeader(name: "X", value: "a\r\nY: b"), HTTPHeader(name: "X\r\nY", value: "a"),
      HTTPHeader(name: "X: a", value: ""), HTTPHeader(name: "", value: "a"),
      HTTPHeader(name: "X", value: "\0"),
    ])
  func invalidFields(header: HTTPHeader) {
    let form = MultipartFormData()
    form.append(InputStream(data: Data()), withLength: 0, headers: [header.name: header.value])
    #expect(multipartFailure { _ = try form.encode() }?.kind == .invalidHeaderField)
  }

  @Test("The error does not contain the value") func errorText() throws {
    let form = MultipartFormData()
    form.append(Data(), withName: "a", mimeType: "secret\r\n")
    let error = try #require(throws: AFError.self) { try form.encode() }
    let text = error.localizedDescription
    #expect(text.contains("Content-Type") && !text.contains("secret"))
  }

  @Test("The first invalid part is reported") func firstError() {
    let form = MultipartFormData(boundary: "")
    let missing = URL(fileURLWithPath: "/nowhere/first.txt")
    form.append(missing, withName: "a")
    form.append(Data(), withName: "b", mimeType: "\n")
    let failure = multipartFailure { _ = try form.encode() }
    guard case .bodyPartFileNotReachableWithError(missing, _) = failure else {
      Issue.record("another failure")
      return
    }
  }

  // MARK: Boundaries

  @Test("The boundary is random") func randomBoundary() throws {
    let boundaries = (0..<100).map { _ in MultipartFormData().boundary }
    #expect(Set(boundaries).count == 100)
    for boundary in boundaries {
      #expect(boundary.wholeMatch(of: /alamofire\.boundary\.[0-9a-f]{16}/) != nil)
    }
    let form = MultipartFormData()
    #expect(form.contentType == "multipart/form-data; boundary=\(form.boundary)")
  }

  @Test(
    "A boundary is quoted if necessary",
    arguments: [
      ("B", "B"), ("----WebKitFormBoundary0", "----WebKitFormBoundary0"), ("a b", "\"a b\""),
      ("0'()+_,-./:=?", "\"0'()+_,-./:=?\""),
      (String(repeating: "x", count: 70), String(repeating: "x", count: 70)),
    ])
  func quotedBoundaries(boundary: String, value: String) throws {
    let form = MultipartFormData(boundary: boundary)
    #expect(form.contentType == "multipart/form-data; boundary=\(value)")
    #expect(try form.encode() == Data("--\(boundary)--\r\n".utf8))
  }

  @Test(
    "An invalid boundary is an error",
    arguments: ["", " ", "a ", "a\"b", "a\r\nb", "ä", "a;b", "a\0", "@", String(repeating: "x", count: 71)])
  func invalidBoundaries(boundary: String) throws {
    let form = MultipartFormData(boundary: boundary)
    form.append(Data("1".utf8), withName: "a")
    let folder = try TemporaryFolder()
    #expect(multipartFailure { _ = try form.encode() }?.kind == .invalidBoundary)
    #expect(multipartFailure { try form.writeEncodedData(to: folder["f"]) }?.kind == .invalidBoundary)
    #expect(multipartFailure { _ = try form.makeUpload() }?.kind == .invalidBoundary)
    #expect(try folder.names == [])
    let error = try #require(throws: AFError.self) { try form.encode() }
    #expect(error.localizedDescription.contains("RFC 2046"))
    #expect(!error.localizedDescription.contains("\r"))
  }
}
