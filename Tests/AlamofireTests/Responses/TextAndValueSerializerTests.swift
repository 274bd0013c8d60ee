import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@Suite struct TextAndValueSerializerTests {
  typealias Common = SerializerTests

  // MARK: Text

  static let texts: [(String.Encoding?, String?, [UInt8], String)] = [
    (nil, "utf-8", [0xC3, 0xA9], "é"), (nil, "UTF-8", [0xC3, 0xA9], "é"), (nil, nil, [0xE9], "é"),
    (nil, nil, [0xC3, 0xA9], "Ã©"), (nil, "iso-8859-1", [0xE9], "é"), (nil, "klingon", [0xE9], "é"),
    (nil, "utf-16be", [0x00, 0x41, 0x20, 0xAC], "A€"), (nil, "utf-16le", [0x41, 0x00, 0xAC, 0x20], "A€"),
    (nil, "utf-16", [0xFE, 0xFF, 0x00, 0x41], "A"), (nil, "utf-16", [0xFF, 0xFE, 0x41, 0x00], "A"),
    (nil, "unicode-1-1", [0xFE, 0xFF, 0x00, 0x41], "A"),
    (nil, "ISO-10646-UCS-2", [0xFE, 0xFF, 0x00, 0x41], "A"),
    (nil, "utf-32be", [0, 0, 0, 0x41], "A"), (nil, "utf-32le", [0x41, 0, 0, 0], "A"),
    (nil, "utf-32", [0, 0, 0xFE, 0xFF, 0, 0, 0, 0x41], "A"), (.utf8, "iso-8859-1", [0xC3, 0xA9], "é"),
    (.ascii, nil, [0x41], "A"),
  ]

  @Test("Text is decoded by the named encoding", arguments: texts)
  func text(
    encoding: String.Encoding?, name: String?, bytes: [UInt8], expected: String
  ) throws {
    let serializer = StringResponseSerializer(encoding: encoding)
    let onWire = try serializer.serialize(
      method: "GET", status: 200, textEncodingName: { name }, data: Data(bytes))
    #expect(onWire == expected)
    let response = Common.response(type: "text/plain" + (name.map { "; charset=\($0)" } ?? ""))
    let text = try serializer.serialize(request: nil, response: response, data: Data(bytes), error: nil)
    #expect(text == expected)
  }

  @Test(
    "JSON without a charset is UTF-8, and with one is in that",
    arguments: [
      ("application/json", [0xC3, 0xA9], "é"), ("Application/JSON ; q=1", [0xC3, 0xA9], "é"),
      ("application/problem+json", [0xC3, 0xA9], "é"), ("application/json", [0xE9], "é"),
      ("application/json; charset=iso-8859-1", [0xC3, 0xA9], "Ã©"),
      ("application/json; charset=klingon", [0xC3, 0xA9], "Ã©"),
      ("application/jsonp", [0xC3, 0xA9], "Ã©"), ("text/json", [0xC3, 0xA9], "Ã©"),
      ("json", [0xC3, 0xA9], "Ã©"),
    ] as [(String, [UInt8], String)])
  func json(type: String, bytes: [UInt8], expected: String) async throws {
    let text = try StringResponseSerializer().serialize(
      request: nil, response: Common.response(type: type), data: Data(bytes), error: nil)
    #expect(text == expected)
    let reply = FakeReply(fields: [HTTPHeader(name: "Content-Type", value: type)], chunks: [Data(bytes)])
    let session = Session.retained(fake: FakeTransport { _, _ in reply })
    #expect(await session.request("http://a.test/").serializingString().result.success == expected)
    let download = await session.download("http://a.test/").serializingString().response
    #expect(download.value == expected)
    download.removeFile()
    let given = try StringResponseSerializer(encoding: .isoLatin1).serialize(
      request: nil, response: Common.response(type: type), data: Data([0xC3, 0xA9]), error: nil)
    #expect(given == "Ã©", "the caller's encoding counts")
  }

  @Test("Text in another encoding is an error with the encoding that was tried") func wrongEncoding() {
    let reason = { (encoding: String.Encoding?, name: String?, bytes: [UInt8]) in
      Common.reason {
        try StringResponseSerializer(encoding: encoding).serialize(
          method: nil, status: nil, textEncodingName: { name }, data: Data(bytes))
      }
    }
    #expect(reason(nil, "utf-8", [0xFF]) == "no text in \(String.Encoding.utf8.rawValue)")
    #expect(reason(.utf8, "iso-8859-1", [0xFF]) == "no text in \(String.Encoding.utf8.rawValue)")
    #expect(reason(.ascii, nil, [0xFF]) == "no text in \(String.Encoding.ascii.rawValue)")
  }

  @Test("The charset of the response is read only without a given encoding") func charset() throws {
    var count = 0
    let name = { () -> String? in
      count += 1
      return "utf-8"
    }
    _ = try StringResponseSerializer(encoding: .utf8).serialize(
      method: nil, status: nil, textEncodingName: name, data: Data([0x41]))
    _ = try StringResponseSerializer().serialize(
      method: "HEAD", status: nil, textEncodingName: name, data: nil)
    _ = try DataResponseSerializer().serialize(
      method: nil, status: nil, textEncodingName: name, data: Data([0x41]))
    #expect(count == 0)
    _ = try StringResponseSerializer().serialize(
      method: nil, status: nil, textEncodingName: name, data: Data([0x41]))
    #expect(count == 1)
  }

  @Test("An empty body is an empty text") func emptyText() throws {
    let text = try StringResponseSerializer().serialize(
      request: nil, response: Common.response(204), data: Data(), error: nil)
    #expect(text == "")
  }

  // MARK: JSON without a type

  @available(*, deprecated)
  static func json(_ text: String?, options: JSONSerialization.ReadingOptions = .allowFragments) throws -> Any
  {
    try JSONResponseSerializer(emptyResponseCodes: [200], options: options).serialize(
      request: nil, response: Common.response(), data: text.map { Data($0.utf8) }, error: nil)
  }

  @available(*, deprecated)
  @Test("JSON is read without a type") func untypedJSON() throws {
    #expect(try Self.json(#"{"a": [1, "x"]}"#) as? NSDictionary == ["a": [1, "x"] as [any Sendable]])
    #expect(try Self.json("3") as? Int == 3)
    #expect(try Self.json(nil) is NSNull)
    #expect(Common.reason { try Self.json("{") } == "no JSON")
    #expect(Common.reason { try Self.json("3", options: []) } == "no JSON")
    let defaults = JSONResponseSerializer()
    #expect(defaults.options == .allowFragments)
    #expect(defaults.emptyResponseCodes == [204, 205])
    #expect(defaults.emptyRequestMethods == [.head])
    #expect(defaults.dataPreprocessor is PassthroughPreprocessor)
  }

  // MARK: Values

  struct Item: Codable, Equatable, Sendable { var name: String }

  struct Reply: Codable, Equatable, EmptyResponse {
    var items: [Item]
    static func emptyValue() -> Reply { Reply(items: []) }
  }

  static func value<T: Decodable>(
    _ serializer: DecodableResponseSerializer<T>, _ data: Data?, status: Int = 200
  ) throws -> T {
    try serializer.serialize(request: nil, response: Common.response(status), data: data, error: nil)
  }

  @Test("Values are decoded") func values() throws {
    #expect(try Self.value(.init(), Data(#"{"name": "a"}"#.utf8)) == Item(name: "a"))
    #expect(try Self.value(.init(dataPreprocessor: .googleXSSI), Data(")]}',\n[1, 2]".utf8)) == [1, 2])
    // The indices of bytes begin at 0, with the prefix or without it.
    #expect(try GoogleXSSIPreprocessor().preprocess(Data(")]}',\n[1]".utf8)).startIndex == 0)
  }

  @Test("Another decoder can be used") func otherDecoder() throws {
    let data = try PropertyListEncoder().encode(Item(name: "b"))
    #expect(try Self.value(.init(decoder: PropertyListDecoder()), data) == Item(name: "b"))
  }

  @Test("An error of the decoder is wrapped") func decoderError() {
    #expect(
      Common.reason { try Self.value(DecodableResponseSerializer<Item>(), Data("{}".utf8)) }
        == "not decoded: DecodingError")
    #expect(
      Common.reason { try Self.value(DecodableResponseSerializer<Item>(), Data("?".utf8)) }
        == "not decoded: DecodingError")
  }

  @Test("An empty body is the empty value") func emptyValue() throws {
    #expect(try Self.value(DecodableResponseSerializer<Reply>(), nil, status: 204) == Reply(items: []))
    #expect(try Self.value(DecodableResponseSerializer<Empty>(), Data(), status: 205) == .value)
    #expect(
      Common.reason { try Self.value(DecodableResponseSerializer<Item>(), nil, status: 204) }
        == "no empty Item")
    #expect(
      Common.reason { try Self.value(DecodableResponseSerializer<Reply?>(), nil, status: 204) }
        == "no empty Optional<Reply>")
    #expect(
      Common.reason { try Self.value(DecodableResponseSerializer<Empty>(), nil, status: 200) } == "empty")
  }

  @Test("Empty is decoded from every object") func empty() throws {
    #expect(try Self.value(DecodableResponseSerializer<Empty>(), Data(#"{"a": 1}"#.utf8)) == Empty.value)
    #expect(try JSONEncoder().encode(Empty.value) == Data("{}".utf8))
  }
}
