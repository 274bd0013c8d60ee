import Alamofire
import Foundation
import Testing

@Suite struct ValidationRulesTests {
  static func text(_ reason: ValidationRules.Reason?) -> String? {
    switch reason {
    case nil: nil
    case .dataFileNil: "no file"
    case .dataFileReadFailed(let url): "unreadable \(url.lastPathComponent)"
    case .missingContentType(let types): "missing \(types)"
    case .unacceptableContentType(let types, let type): "\(type) not in \(types)"
    case .unacceptableStatusCode(let code): "status \(code)"
    case .customValidationFailed: "custom"
    }
  }

  @Test("The status code must be acceptable") func statusCode() {
    #expect(Self.text(ValidationRules.statusCode(200, in: 200..<300)) == nil)
    #expect(Self.text(ValidationRules.statusCode(299, in: ValidationRules.successfulStatusCodes)) == nil)
    #expect(
      Self.text(ValidationRules.statusCode(300, in: ValidationRules.successfulStatusCodes)) == "status 300")
    #expect(
      Self.text(ValidationRules.statusCode(199, in: ValidationRules.successfulStatusCodes)) == "status 199")
    #expect(Self.text(ValidationRules.statusCode(404, in: [200, 404])) == nil)
    #expect(Self.text(ValidationRules.statusCode(404, in: Set([404]))) == nil)
    #expect(Self.text(ValidationRules.statusCode(200, in: [])) == "status 200")
  }

  /// Content type, acceptable types, and the rejected type.
  static let contentTypes: [(String?, [String], String?)] = [
    ("application/json", ["application/json"], nil),
    ("application/json; charset=utf-8", ["application/json"], nil),
    ("application/json", ["application/json;charset=utf-8"], nil),
    (" application/json ", [" application/json\n"], nil),
    ("image/jpeg", ["*/*"], nil), ("image/jpeg", ["image/*"], nil), ("image/jpeg", ["*/jpeg"], nil),
    ("image/jpeg", ["a/b", "image/*"], nil),
    ("image/jpeg", ["image/png", "a/b"], #"image/jpeg not in ["a/b", "image/png"]"#),
    ("image/jpeg; q=1", ["a/b"], #"image/jpeg not in ["a/b"]"#),
    ("Image/jpeg", ["image/jpeg"], #"Image/jpeg not in ["image/jpeg"]"#),
    ("*/*", ["image/jpeg"], #"*/* not in ["image/jpeg"]"#),
    ("image/*", ["image/jpeg"], #"image/* not in ["image/jpeg"]"#),
    ("image/jpeg", [], "image/jpeg not in []"), ("image/jpeg", ["jpeg"], #"image/jpeg not in ["jpeg"]"#),
    ("image/jpeg", ["a/b/c", "*"], #"image/jpeg not in ["*", "a/b/c"]"#),
    (nil, ["z/z", "a/b"], #"missing ["a/b", "z/z"]"#), (nil, [], "missing []"),
    ("", ["a/b"], #"missing ["a/b"]"#), ("jpeg", ["image/*"], #"missing ["image/*"]"#),
    ("a/b/c", ["a/b"], #"missing ["a/b"]"#), (nil, ["*/*"], nil), ("jpeg", ["a/b", " */*;q=0.1"], nil),
    ("jpeg", ["*/*"], nil),
  ]

  @Test("The content type must be acceptable", arguments: contentTypes)
  func contentType(type: String?, acceptable: [String], wrong: String?) {
    #expect(Self.text(ValidationRules.contentType(type, in: acceptable, isBodyEmpty: false)) == wrong)
    #expect(Self.text(ValidationRules.contentType(type, in: acceptable, isBodyEmpty: true)) == nil)
  }

  @Test("The content type of a download is validated unless its file is empty") func contentTypeOfDownload()
    throws
  {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let full = folder.appendingPathComponent("full")
    let empty = folder.appendingPathComponent("empty")
    try Data([1]).write(to: full)
    try Data().write(to: empty)
    let check = { (url: URL?) in Self.text(ValidationRules.contentType("a/b", in: ["c/d"], ofFileAt: url)) }
    #expect(check(full) == #"a/b not in ["c/d"]"#)
    #expect(check(empty) == nil)
    #expect(check(nil) == "no file")
    #expect(check(folder.appendingPathComponent("absent")) == "unreadable absent")
    #expect(check(URL(string: "http://localhost/x")) == "unreadable x")
    #expect(Self.text(ValidationRules.contentType("a/b", in: ["a/*"], ofFileAt: full)) == nil)
  }

  @Test("Accept has the acceptable types") func accept() {
    #expect(ValidationRules.acceptableContentTypes(accept: nil) == ["*/*"])
    #expect(
      ValidationRules.acceptableContentTypes(accept: "a/b,c/d;q=0.1, */*") == ["a/b", "c/d;q=0.1", "*/*"])
    #expect(ValidationRules.acceptableContentTypes(accept: "") == [])
  }

  static let standard: [(Int, String?, String?, Bool, String?)] = [
    (200, "a/b", nil, false, nil), (200, nil, nil, false, nil), (204, nil, "c/d", true, nil),
    (200, "a/b", "a/b, c/d", false, nil), (200, "a/b", "c/d", false, #"a/b not in ["c/d"]"#),
    (200, "a/b", "c/d", true, nil), (404, "a/b", "c/d", false, "status 404"),
    (500, nil, nil, true, "status 500"),
    (200, nil, "c/d", false, #"missing ["c/d"]"#), (200, nil, "c/d, */*;q=0.5", false, nil),
  ]

  @Test("The standard rules are status and Accept", arguments: standard)
  func standardRules(
    status: Int, type: String?, accept: String?, isEmpty: Bool, wrong: String?
  ) {
    let reason = ValidationRules.standard(
      status: status, contentType: type, accept: accept, isBodyEmpty: isEmpty)
    #expect(Self.text(reason) == wrong)
  }
}
