import HTTPWire
import Testing

@Suite struct ContentCodingTests {
  @Test(
    "Codings are decoded from the last to the first",
    arguments: [
      ("gzip", [ContentCoding.gzip]), ("X-GZIP", [.gzip]), ("br", [.brotli]), ("Deflate", [.deflate]),
      ("zstd", [.zstd]), ("identity, gzip", [.gzip]), (" \t gzip \t ", [.gzip]), (",gzip,,", [.gzip]),
      ("gzip, br", [.brotli, .gzip]), ("deflate,gzip,\tzstd", [.zstd, .gzip, .deflate]),
    ])
  func order(value: String, codings: [ContentCoding]) {
    #expect(ContentDecodingPlan(fieldValue: value) == .decoded(codings))
  }

  @Test(
    "A body without a known coding is delivered as received",
    arguments: [
      nil, "", " ", ",", "identity", "aws-chunked", "compress", "utf-8", "gzip, aws-chunked",
      "aws-chunked, gzip", "gzip;q=1", "gzipped", "UTF-8, gzip",
    ])
  func unknownCoding(value: String?) {
    #expect(ContentDecodingPlan(fieldValue: value) == .asReceived)
  }

  @Test("Five codings are decoded and six are refused") func limit() {
    let five = Array(repeating: "gzip", count: 5).joined(separator: ",")
    #expect(ContentDecodingPlan(fieldValue: five) == .decoded(Array(repeating: .gzip, count: 5)))
    #expect(ContentDecodingPlan(fieldValue: five + ", identity") != .tooMany)
    #expect(ContentDecodingPlan(fieldValue: five + ",br") == .tooMany)
    #expect(ContentDecodingPlan(fieldValue: five + ",br,unknown") == .asReceived)
  }
}
