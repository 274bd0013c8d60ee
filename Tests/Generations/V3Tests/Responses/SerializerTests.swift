import AlamofireV3
import Foundation
import FoundationNetworking
import Scenarios
import Testing

@Suite struct SerializerTests {
  private func response(_ status: Int = 200, type: String? = nil) throws -> HTTPURLResponse {
    let url = try #require(URL(string: "http://example.com/"))
    return try #require(
      HTTPURLResponse(
        url: url, statusCode: status, httpVersion: nil, headerFields: type.map { ["Content-Type": $0] }))
  }

  private let failure = NSError(domain: "own", code: 5)

  @Test("An earlier error is preserved") func earlierError() {
    #expect(
      Request.dataResponseSerializer().serializeResponse(nil, nil, Data(), failure).error === failure)
    #expect(
      Request.stringResponseSerializer().serializeResponse(nil, nil, Data(), failure).error === failure)
    #expect(Request.JSONResponseSerializer().serializeResponse(nil, nil, Data(), failure).error === failure)
    #expect(
      Request.propertyListResponseSerializer().serializeResponse(nil, nil, Data(), failure).error === failure)
  }

  @Test("Status 204 has the empty value", arguments: [nil, Data(), Data("x".utf8)]) func status204(
    data: Data?
  ) throws {
    let none = try response(204)
    #expect(Request.dataResponseSerializer().serializeResponse(nil, none, data, nil).value == Data())
    #expect(Request.stringResponseSerializer().serializeResponse(nil, none, data, nil).value == "")
    #expect(
      Request.JSONResponseSerializer().serializeResponse(nil, none, data, nil).value is NSNull)
    #expect(
      Request.propertyListResponseSerializer().serializeResponse(nil, none, data, nil).value is NSNull)
  }

  @Test("Other statuses have no value without data", arguments: [200, 205]) func otherStatuses(status: Int)
    throws
  {
    let some = try response(status)
    #expect(Request.dataResponseSerializer().serializeResponse(nil, some, nil, nil).error?.code == -6004)
    #expect(Request.stringResponseSerializer().serializeResponse(nil, some, nil, nil).error?.code == -6005)
    for data in [nil, Data()] {
      let json = Request.JSONResponseSerializer().serializeResponse(nil, some, data, nil).error
      #expect(json.map { "\($0.domain) \($0.code)" } == "com.alamofire.error -6006")
      let list = Request.propertyListResponseSerializer().serializeResponse(nil, some, data, nil).error
      #expect(list?.code == -6007)
      #expect(list?.localizedFailureReason?.isEmpty == false)
    }
    #expect(Request.dataResponseSerializer().serializeResponse(nil, some, Data(), nil).value == Data())
    #expect(Request.stringResponseSerializer().serializeResponse(nil, some, Data(), nil).value == "")
  }

  @Test("A property list that is nested too deeply is an error of Foundation") func deepPropertyLists() async
  {
    // In a separate process, because Foundation's parser ends the process.
    await #expect(processExitsWith: .success) {
      for element in ["plist", "array"] {
        let text = String(repeating: "<\(element)>", count: 200_000)
        let result = Request.propertyListResponseSerializer().serializeResponse(
          nil, nil, Data(text.utf8), nil)
        #expect(result.error?.domain == NSCocoaErrorDomain)
      }
      for text in HiddenTags.documents {
        let result = Request.propertyListResponseSerializer().serializeResponse(
          nil, nil, Data(text.utf8), nil)
        #expect(result.error?.domain == NSCocoaErrorDomain)
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
        let result = Request.propertyListResponseSerializer().serializeResponse(
          nil, nil, Data(document), nil)
        #expect(result.error?.domain == NSCocoaErrorDomain)
      }
    }
  }

  @Test("Text is decoded by the named encoding") func text() throws {
    let latin = Data([0xe4])
    let plain = try response()
    let utf8 = try response(type: "text/plain; charset=utf-8")
    let serializer = Request.stringResponseSerializer()
    #expect(serializer.serializeResponse(nil, plain, latin, nil).value == "ä")
    #expect(serializer.serializeResponse(nil, utf8, latin, nil).error?.code == -6005)
    #expect(serializer.serializeResponse(nil, utf8, Data("ä".utf8), nil).value == "ä")
    let own = Request.stringResponseSerializer(encoding: .utf8)
    #expect(own.serializeResponse(nil, plain, Data("ä".utf8), nil).value == "ä")
  }

  @Test("JSON and property lists are decoded") func documents() throws {
    let json = Request.JSONResponseSerializer().serializeResponse(nil, nil, Data("[1]".utf8), nil)
    #expect(json.value as? [Int] == [1])
    let fragment = Request.JSONResponseSerializer().serializeResponse(nil, nil, Data("7".utf8), nil)
    #expect(fragment.value as? Int == 7)
    let noJSON = Request.JSONResponseSerializer().serializeResponse(nil, nil, Data("{".utf8), nil)
    #expect(noJSON.error?.domain == NSCocoaErrorDomain)
    let data = try PropertyListSerialization.data(fromPropertyList: ["a": 1], format: .binary, options: 0)
    let list = Request.propertyListResponseSerializer().serializeResponse(nil, nil, data, nil)
    #expect(list.value as? [String: Int] == ["a": 1])
    let noList = Request.propertyListResponseSerializer().serializeResponse(nil, nil, Data("{".utf8), nil)
    #expect(noList.error?.domain == NSCocoaErrorDomain)
  }

  @Test("A result returns its case") func result() {
    let success = Result<Int, NSError>.Success(1)
    #expect(success.isSuccess && !success.isFailure && success.value == 1 && success.error == nil)
    #expect("\(success) \(success.debugDescription)" == "SUCCESS SUCCESS: 1")
    let failed = Result<Int, NSError>.Failure(failure)
    #expect(failed.isFailure && !failed.isSuccess && failed.value == nil && failed.error === failure)
    #expect(failed.description == "FAILURE")
    #expect(failed.debugDescription.hasPrefix("FAILURE: "))
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
