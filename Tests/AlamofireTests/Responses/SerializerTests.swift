import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

/// Common properties of serializers, and the serializers without their own encoding.
@Suite struct SerializerTests {
  struct Failure: Error, Equatable {}

  static let url = URL(fileURLWithPath: "/")

  static func request(_ method: String? = "GET") -> URLRequest {
    var request = URLRequest(url: url)
    request.httpMethod = method
    return request
  }

  static func response(_ status: Int = 200, type: String? = nil) -> HTTPURLResponse? {
    HTTPURLResponse(
      url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: type.map { ["Content-Type": $0] })
  }

  /// Returns a description of the failed serialization.
  static func reason(_ body: () throws -> some Any) -> String? {
    do {
      _ = try body()
      return nil
    } catch AFError.responseSerializationFailed(let reason) {
      switch reason {
      case .inputDataNilOrZeroLength: return "empty"
      case .inputFileNil: return "no file"
      case .inputFileReadFailed(let url): return "unreadable \(url.lastPathComponent)"
      case .stringSerializationFailed(let encoding): return "no text in \(encoding.rawValue)"
      case .jsonSerializationFailed: return "no JSON"
      case .decodingFailed(let error): return "not decoded: \(type(of: error))"
      case .customSerializationFailed(let error): return "custom: \(type(of: error))"
      case .invalidEmptyResponse(let type): return "no empty \(type)"
      }
    } catch {
      return "\(type(of: error))"
    }
  }

  @Test("An earlier error is rethrown unchanged") func earlierError() throws {
    let data = Data("1".utf8)
    #expect(throws: Failure()) {
      try DataResponseSerializer().serialize(request: nil, response: nil, data: data, error: Failure())
    }
    #expect(throws: Failure()) {
      try StringResponseSerializer().serialize(request: nil, response: nil, data: nil, error: Failure())
    }
    #expect(throws: Failure()) {
      try DecodableResponseSerializer<Int>().serialize(
        request: nil, response: nil, data: data, error: Failure())
    }
    #expect(throws: Failure()) {
      try URLResponseSerializer().serializeDownload(
        request: nil, response: nil, fileURL: Self.url, error: Failure())
    }
    #expect(throws: Failure()) {
      try DataResponseSerializer().serializeDownload(
        request: nil, response: nil, fileURL: nil, error: Failure())
    }
  }

  /// Method, status, and whether an empty body is allowed by default.
  static let emptiness: [(String?, Int?, Bool)] = [
    ("GET", 200, false), ("GET", nil, false), (nil, nil, false), (nil, 200, false), ("HEAD", 200, true),
    ("HEAD", nil, true), ("REPORT", 200, false), ("GET", 204, true), ("GET", 205, true), (nil, 204, true),
    ("GET", 206, false), ("HEAD", 404, true),
  ]

  @Test("An empty body is allowed for HEAD, 204 and 205", arguments: emptiness, [nil, Data()])
  func emptyBodies(expected: (String?, Int?, Bool), data: Data?) throws {
    let (method, status, isAllowed) = expected
    let wrong = isAllowed ? nil : "empty"
    let none = { () -> String? in nil }
    let wire = { (serializer: any WireSerializer) in
      Self.reason {
        try serializer.serialize(method: method, status: status, textEncodingName: none, data: data)
      }
    }
    #expect(wire(DataResponseSerializer()) == wrong)
    #expect(wire(StringResponseSerializer()) == wrong)
    #expect(wire(DecodableResponseSerializer<Empty>()) == wrong)
    #expect(wire(UntypedJSONSerializer()) == wrong)
    let request = method.map { Self.request($0) }
    let response = status.flatMap { Self.response($0) }
    let serializer = DataResponseSerializer()
    #expect(serializer.emptyResponseAllowed(forRequest: request, response: response) == isAllowed)
    #expect(
      Self.reason { try serializer.serialize(request: request, response: response, data: data, error: nil) }
        == wrong)
  }

  @Test("The rules for empty bodies can be changed") func emptyBodyRules() throws {
    let serializer = DataResponseSerializer(emptyResponseCodes: [200], emptyRequestMethods: [.options])
    let serialize = { (method: String, status: Int) in
      Self.reason {
        try serializer.serialize(
          request: Self.request(method), response: Self.response(status), data: nil, error: nil)
      }
    }
    #expect(serialize("GET", 200) == nil)
    #expect(serialize("OPTIONS", 500) == nil)
    #expect(serialize("HEAD", 204) == "empty")
    #expect(serializer.requestAllowsEmptyResponseData(nil) == nil)
    #expect(serializer.responseAllowsEmptyResponseData(nil) == nil)
    #expect(serializer.requestAllowsEmptyResponseData(Self.request("OPTIONS")) == true)
    #expect(serializer.requestAllowsEmptyResponseData(Self.request("GET")) == false)
    #expect(serializer.responseAllowsEmptyResponseData(Self.response(200)) == true)
    #expect(serializer.responseAllowsEmptyResponseData(Self.response(204)) == false)
    #expect(DataResponseSerializer.defaultEmptyRequestMethods == [.head])
    #expect(DataResponseSerializer.defaultEmptyResponseCodes == [204, 205])
  }

  @Test("Data is returned without a copy") func data() throws {
    let data = Data(repeating: 7, count: 10_000)
    let result = try DataResponseSerializer().serialize(request: nil, response: nil, data: data, error: nil)
    #expect(result == data)
    let address = { (data: Data) in data.withUnsafeBytes { $0.baseAddress } }
    #expect(address(result) == address(data))
    let empty = try DataResponseSerializer().serialize(
      request: nil, response: Self.response(204), data: nil, error: nil)
    #expect(empty.isEmpty)
  }

  struct Doubling: DataPreprocessor {
    func preprocess(_ data: Data) throws -> Data {
      guard data.count < 10 else { throw Failure() }
      return data + data
    }
  }

  @Test("The preprocessor is called for non-empty bodies") func preprocessor() throws {
    let serializer = DataResponseSerializer(dataPreprocessor: Doubling())
    let serialize = { (data: Data?) in
      try serializer.serialize(request: nil, response: Self.response(204), data: data, error: nil)
    }
    #expect(try serialize(Data([1])) == Data([1, 1]))
    #expect(try serialize(nil) == Data())
    #expect(throws: Failure()) { try serialize(Data(count: 10)) }
    let text = StringResponseSerializer(dataPreprocessor: Doubling(), encoding: .utf8)
    #expect(try text.serialize(request: nil, response: nil, data: Data("a".utf8), error: nil) == "aa")
  }

  static let prefixed: [(String, String)] = [
    (")]}',\n{}", "{}"), (")]}',\n", ""), (")]}',{}", ")]}',{}"), ("{}", "{}"), ("", ""), (")]}'", ")]}'"),
    (" )]}',\n", " )]}',\n"), (")]}',\n)]}',\n", ")]}',\n"),
  ]

  @Test("The Google prefix is removed once", arguments: prefixed)
  func googlePrefix(text: String, expected: String) throws {
    #expect(try GoogleXSSIPreprocessor().preprocess(Data(text.utf8)) == Data(expected.utf8))
    let slice = Data("xx\(text)".utf8).dropFirst(2)
    #expect(try GoogleXSSIPreprocessor().preprocess(slice) == Data(expected.utf8))
    #expect(try PassthroughPreprocessor().preprocess(Data(text.utf8)) == Data(text.utf8))
  }

  /// A serializer of a user that relies on defaults for all methods but one.
  struct CountSerializer: ResponseSerializer {
    func serialize(
      request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: (any Error)?
    ) throws -> Int {
      guard let data else { throw Failure() }
      return data.count
    }
  }

  @Test("A serializer of a user has all defaults") func ownSerializer() throws {
    let serializer = CountSerializer()
    #expect(serializer.emptyRequestMethods == [.head])
    #expect(serializer.emptyResponseCodes == [204, 205])
    #expect(serializer.dataPreprocessor is PassthroughPreprocessor)
    #expect(try serializer.serialize(request: nil, response: nil, data: Data([1]), error: nil) == 1)
  }

  struct ThrowingSerializer: ResponseSerializer {
    let error: any Error
    func serialize(
      request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: (any Error)?
    ) throws -> Int {
      throw self.error
    }
  }

  @Test("Files are read and serialized") func files() throws {
    let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try Data("[1, 2]".utf8).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    let absent = file.appendingPathExtension("absent")
    let read = { (serializer: any DownloadResponseSerializerProtocol, url: URL?) in
      Self.reason {
        try serializer.serializeDownload(request: nil, response: nil, fileURL: url, error: nil)
      }
    }
    let text = try StringResponseSerializer().serializeDownload(
      request: nil, response: nil, fileURL: file, error: nil)
    #expect(text == "[1, 2]")
    let numbers = try DecodableResponseSerializer<[Int]>().serializeFile(
      method: nil, status: nil, textEncodingName: { nil }, fileURL: file)
    #expect(numbers == [1, 2])
    #expect(read(DataResponseSerializer(), nil) == "no file")
    #expect(read(URLResponseSerializer(), nil) == "no file")
    #expect(read(DataResponseSerializer(), absent) == "unreadable \(absent.lastPathComponent)")
    #expect(read(ThrowingSerializer(error: Failure()), file) == "custom: Failure")
    #expect(read(ThrowingSerializer(error: AFError.explicitlyCancelled), file) == "AFError")
    #expect(read(DataResponseSerializer(dataPreprocessor: Doubling()), file) == nil)
    try Data(count: 20).write(to: file)
    #expect(read(DataResponseSerializer(dataPreprocessor: Doubling()), file) == "custom: Failure")
    try Data().write(to: file)
    #expect(read(StringResponseSerializer(), file) == "empty")
  }

  @Test("A URL is returned without reading the file") func urlSerializer() throws {
    let url = URL(fileURLWithPath: "/no/such/file")
    let result = try URLResponseSerializer().serializeDownload(
      request: nil, response: nil, fileURL: url, error: nil)
    #expect(result == url)
  }

  @Test("The shorthands make the serializers") func shorthands() {
    func made<S: ResponseSerializer>(_ serializer: S) -> S { serializer }
    func download<S: DownloadResponseSerializerProtocol>(_ serializer: S) -> S { serializer }
    let data: DataResponseSerializer = made(.data)
    #expect(data.emptyResponseCodes == [204, 205])
    #expect(made(.data(emptyResponseCodes: [1])).emptyResponseCodes == [1])
    #expect(made(.string).encoding == nil)
    #expect(made(.string(dataPreprocessor: .googleXSSI, encoding: .utf16)).encoding == .utf16)
    #expect(made(.decodable(of: Int.self, emptyRequestMethods: [.put])).emptyRequestMethods == [.put])
    _ = download(.url)
    let passthrough: any DataPreprocessor = .passthrough
    #expect(passthrough is PassthroughPreprocessor)
  }
}
