import Foundation
import FoundationNetworking
import Scenarios
import Testing

@testable import AlamofireV4

@Suite("Built-in serializers") struct SerializationTests {
  private struct Mishap: Error {}

  private func response(_ status: Int = 200, type: String? = nil) throws -> HTTPURLResponse {
    let url = try "http://a.test/".asURL()
    let fields = type.map { ["Content-Type": $0] }
    return try #require(
      HTTPURLResponse(url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: fields))
  }

  private func reason<T>(_ result: Result<T>) -> String {
    guard case .failure(AFError.responseSerializationFailed(let reason)) = result else { return "\(result)" }
    return "\(reason)"
  }

  @Test("A response without content has the empty value", arguments: [204, 205]) func noContent(status: Int)
    throws
  {
    let response = try response(status)
    for data in [nil, Data(), Data([0xFF, 0x00])] {
      #expect(Serialization.data(response: response, data: data, error: nil).value == Data())
      #expect(Serialization.string(encoding: .utf8, response: response, data: data, error: nil).value == "")
      #expect(Serialization.json(options: [], response: response, data: data, error: nil).value is NSNull)
      #expect(
        Serialization.propertyList(options: [], response: response, data: data, error: nil).value is NSNull)
    }
  }

  @Test("An earlier error is delivered") func earlierError() throws {
    for response in [nil, try response(204)] {
      let data = Data("{}".utf8)
      #expect(Serialization.data(response: response, data: data, error: Mishap()).error is Mishap)
      #expect(
        Serialization.string(encoding: nil, response: response, data: data, error: Mishap()).error is Mishap)
      #expect(
        Serialization.json(options: [], response: response, data: data, error: Mishap()).error is Mishap)
      #expect(
        Serialization.propertyList(options: [], response: response, data: data, error: Mishap()).error
          is Mishap)
    }
  }

  @Test("A missing body is an error") func missingBody() throws {
    let response = try response()
    #expect(reason(Serialization.data(response: response, data: nil, error: nil)) == "inputDataNil")
    #expect(
      reason(Serialization.string(encoding: nil, response: response, data: nil, error: nil)) == "inputDataNil"
    )
    for data in [nil, Data()] {
      #expect(
        reason(Serialization.json(options: [], response: response, data: data, error: nil))
          == "inputDataNilOrZeroLength")
      #expect(
        reason(Serialization.propertyList(options: [], response: response, data: data, error: nil))
          == "inputDataNilOrZeroLength")
    }
  }

  @Test("An empty body is data and text") func emptyBody() throws {
    let response = try response()
    #expect(Serialization.data(response: response, data: Data(), error: nil).value == Data())
    #expect(Serialization.string(encoding: nil, response: response, data: Data(), error: nil).value == "")
  }

  @Test("Text is decoded by the named encoding") func text() throws {
    let latin = Data([0xE9])
    let utf8 = Data("é".utf8)
    func text(_ encoding: String.Encoding? = nil, _ type: String?, _ data: Data) throws -> Result<String> {
      Serialization.string(encoding: encoding, response: try response(type: type), data: data, error: nil)
    }
    #expect(try text(nil, nil, latin).value == "é", "ISO Latin 1 without any name")
    #expect(try text(nil, "text/plain; charset=utf-8", utf8).value == "é")
    #expect(try text(nil, "application/json", utf8).value == "é")
    #expect(try text(.isoLatin1, "text/plain; charset=utf-8", latin).value == "é")
    #expect(Serialization.string(encoding: nil, response: nil, data: latin, error: nil).value == "é")
    let wrong = try text(nil, "text/plain; charset=utf-8", latin)
    #expect((wrong.error as? AFError)?.failedStringEncoding == .utf8)
  }

  @Test("JSON is decoded with its options") func json() throws {
    let object = Serialization.json(
      options: .allowFragments, response: nil, data: Data(#"{"a":1}"#.utf8), error: nil)
    #expect((object.value as? [String: Any])?["a"] as? Int == 1)
    let fragment = Data("7".utf8)
    #expect(
      Serialization.json(options: .allowFragments, response: nil, data: fragment, error: nil).value as? Int
        == 7)
    let broken = Serialization.json(options: [], response: nil, data: Data("{".utf8), error: nil)
    #expect(reason(broken).hasPrefix("jsonSerializationFailed"))
    #expect((broken.error as? AFError)?.underlyingError != nil)
  }

  @Test(
    "Property lists are decoded in every format",
    arguments: [PropertyListSerialization.PropertyListFormat.xml, .binary])
  func propertyLists(format: PropertyListSerialization.PropertyListFormat) throws {
    let data = try PropertyListSerialization.data(fromPropertyList: ["a": 1], format: format, options: 0)
    let list = Serialization.propertyList(options: [], response: nil, data: data, error: nil)
    #expect((list.value as? [String: Any])?["a"] as? Int == 1)
    let declared = Data("<?xml version=\"1.0\" encoding='ISO-8859-1'?><plist><string>a</string></plist>".utf8)
    #expect(
      Serialization.propertyList(options: [], response: nil, data: declared, error: nil).value as? String
        == "a")
    let broken = Serialization.propertyList(options: [], response: nil, data: Data([0, 1, 2]), error: nil)
    #expect(reason(broken).hasPrefix("propertyListSerializationFailed"))
  }

  @Test("A property list that is nested too deeply is an error") func deepPropertyLists() async {
    // In a separate process, because Foundation's parser ends the process.
    await #expect(processExitsWith: .success) {
      for element in ["plist", "array"] {
        let text = String(repeating: "<\(element)>", count: 200_000)
        let list = Serialization.propertyList(options: [], response: nil, data: Data(text.utf8), error: nil)
        #expect("\(list.error as Any)".contains("propertyListSerializationFailed"))
      }
      for text in HiddenTags.documents {
        let list = Serialization.propertyList(options: [], response: nil, data: Data(text.utf8), error: nil)
        #expect("\(list.error as Any)".contains("propertyListSerializationFailed"))
      }
    }
  }

  @Test("A binary property list that contains a set, or that repeats its objects too often, is an error")
  func hostilePropertyLists() async {
    // In a separate process, because Foundation's parser ends the process.
    await #expect(processExitsWith: .success) {
      for document in [
        HostilePropertyList.set, HostilePropertyList.tree(levels: 20),
        HostilePropertyList.copies(700, ofTextWith: 100_000),
      ] {
        let list = Serialization.propertyList(options: [], response: nil, data: Data(document), error: nil)
        #expect("\(list.error as Any)".contains("propertyListSerializationFailed"))
      }
    }
  }

  @Test("Files of downloads are read") func files() throws {
    let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    #expect(reason(Serialization.contents(of: nil, error: nil)) == "inputFileNil")
    #expect(reason(Serialization.contents(of: file, error: nil)).hasPrefix("inputFileReadFailed(at: file"))
    try Data("x".utf8).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    #expect(Serialization.contents(of: file, error: nil).value == Data("x".utf8))
    #expect(Serialization.contents(of: file, error: Mishap()).error is Mishap)
  }

  @Test("Serializers of the user are closures") func ownSerializers() {
    let data = DataResponseSerializer<Int> { _, _, data, error in
      error.map { .failure($0) } ?? .success(data?.count ?? -1)
    }
    #expect(data.serializeResponse(nil, nil, Data(count: 3), nil).value == 3)
    #expect(data.serializeResponse(nil, nil, nil, Mishap()).error is Mishap)
    let download = DownloadResponseSerializer<String> { _, _, url, _ in .success(url?.path ?? "") }
    #expect(download.serializeResponse(nil, nil, URL(fileURLWithPath: "/a"), nil).value == "/a")
  }
}

/// Property lists with very many tags in encodings in which other bytes can stand within a tag.
private enum HiddenTags {
  static let documents = [
    ("iso-2022-jp", "<p\u{1B}(Blist>"), ("hz-gb-2312", "<p~\nlist>"), ("iso-2022-kr", "<p\u{0F}list>"),
    ("iso-2022-cn", "<p\u{0F}list>"),
  ].map { encoding, tag in
    let end = String(repeating: "</plist>", count: 200_000)
    return "<?xml version='1.0' encoding='\(encoding)'?>" + String(repeating: tag, count: 200_000)
      + "<string>a</string>" + end
  }
}
