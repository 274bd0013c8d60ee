import Alamofire
import Foundation
import FoundationNetworking
import Scenarios
import Testing

/// Property lists that are nested too deeply for Foundation's parsers.
@Suite("Nesting of property lists", .timeLimit(.minutes(5))) struct PropertyListNestingTests {
  /// A value in any number of arrays.
  private final class Nest: Decodable {
    let depth: Int

    init(from decoder: any Decoder) throws {
      var container = try decoder.unkeyedContainer()
      depth = container.isAtEnd ? 1 : try container.decode(Nest.self).depth + 1
    }
  }

  private static func list(_ count: Int, _ element: String = "array", head: String = "") -> String {
    let (begin, end) = ("<\(element)>", "</\(element)>")
    return head + "<plist version=\"1.0\">" + String(repeating: begin, count: count)
      + String(repeating: end, count: count) + "</plist>"
  }

  private static func value(_ data: Data) throws -> Int {
    try DecodableResponseSerializer<Nest>(decoder: PropertyListDecoder()).serialize(
      request: nil, response: nil, data: data, error: nil
    ).depth
  }

  private static func isCorrupt(_ data: Data) -> Bool {
    let error = #expect(throws: AFError.self) { try value(data) }
    guard case .dataCorrupted? = error?.underlyingError as? DecodingError else { return false }
    return true
  }

  @Test("Arrays within the limit are decoded", arguments: [String.Encoding.utf8, .utf16])
  func withinTheLimit(encoding: String.Encoding) throws {
    let head = "<?xml version=\"1.0\" encoding=\"\(encoding == .utf8 ? "UTF-8" : "UTF-16")\"?>\n"
    #expect(try Self.value(#require(Self.list(100, head: head).data(using: encoding))) == 100)
    let binary = try PropertyListSerialization.data(
      fromPropertyList: [[[Int]()]], format: .binary, options: 0)
    #expect(try Self.value(binary) == 3)
  }

  @Test("Resume data and checkpoints with too many elements are refused") func resumption() async {
    await #expect(processExitsWith: .success) {
      let data = Data(PropertyListNestingTests.list(60_000).utf8)
      let session = Session(configuration: .isolated)
      let download = await session.download(resumingWith: data).ended()
      #expect(download.error?.transferCode == .cannotDecodeRawData)
      let upload = await session.upload(resumingWith: data, file: URL(fileURLWithPath: "/dev/null")).ended()
      #expect(upload.error?.uploadError == .invalidCheckpoint)
      let removal = await session.removeUpload(data).ended()
      #expect(removal.error?.uploadError == .invalidCheckpoint)
    }
  }

  @Test("Too many elements are an error") func tooDeep() async {
    await #expect(processExitsWith: .success) {
      for element in ["array", "plist", "dict><key>a</key"] {
        #expect(
          PropertyListNestingTests.isCorrupt(Data(PropertyListNestingTests.list(200_000, element).utf8)),
          "\(element)")
      }
      for encoding in [String.Encoding.utf16, .utf16BigEndian, .utf32] {
        let mark: [UInt8] = encoding == .utf16BigEndian ? [0xFE, 0xFF] : []
        let text = try #require(PropertyListNestingTests.list(200_000).data(using: encoding))
        #expect(PropertyListNestingTests.isCorrupt(Data(mark) + text), "\(encoding)")
      }
      for name in ["ebcdic-cp-us", "utf-16", ""] {
        let head = "<?xml version='1.0' encoding='\(name)'?>"
        #expect(
          PropertyListNestingTests.isCorrupt(Data(PropertyListNestingTests.list(200_000, head: head).utf8)),
          "\(name)")
      }
    }
  }

  @Test("Arrays without an end in a binary property list are an error") func binary() async {
    // In a separate process, because Foundation's decoder ends the process.
    await #expect(processExitsWith: .success) {
      for document in [
        HostilePropertyList.cycle, HostilePropertyList.chain(200_000), HostilePropertyList.endlessArray,
        HostilePropertyList.linkedChains(100, length: 511),
      ] {
        #expect(PropertyListNestingTests.isCorrupt(Data(document)), "\(document.count) bytes")
      }
    }
  }

  @Test("A binary property list that repeats a large text is an error") func repeatedText() throws {
    func texts(_ count: Int) throws -> [String] {
      try DecodableResponseSerializer<[String]>(decoder: PropertyListDecoder()).serialize(
        request: nil, response: nil, data: Data(HostilePropertyList.copies(count, ofTextWith: 100_000)),
        error: nil)
    }
    #expect(try texts(3) == Array(repeating: String(repeating: "a", count: 100_000), count: 3))
    let error = #expect(throws: AFError.self) { try texts(700) }
    guard case .dataCorrupted(let context)? = error?.underlyingError as? DecodingError else {
      Issue.record("\(error as Any)")
      return
    }
    let cause = try #require(context.underlyingError as? CocoaError)
    #expect(cause.code == .propertyListReadCorrupt)
    #expect("\(cause.userInfo)".contains("67108864 bytes"))
  }

  @Test("An encoding that is not clear is an error") func unclearEncodings() throws {
    for declaration in [
      "version='1.0' encoding='UTF-8'", "version='1.0' encoding = \"UTF-8\"", "version='1.0'",
      "version='1.0'\nencoding\t=\n'us-ascii' standalone='yes'",
    ] {
      let text = Self.list(3, head: "<?xml \(declaration)?>")
      #expect(try Self.value(Data(text.utf8)) == 3, "\(declaration)")
    }
    for declaration in [
      "version='1.0' xencoding='UTF-8' encoding='ISO-8859-1'",
      "version='1.0' encoding='UTF-8' encoding='UTF-8'",
      "version='1.0' xencoding='UTF-8'", "version='encoding' encoding='UTF-8'", "version='1.0' encoding",
      "version='1.0' encodings='UTF-8'", "version='1.0' encoding=UTF-8",
    ] {
      #expect(Self.isCorrupt(Data(Self.list(3, head: "<?xml \(declaration)?>").utf8)), "\(declaration)")
    }
  }
}
