import HTTPWire
import Testing

@Suite struct ContentCodingTests {
  @Test(arguments: [
    ("gzip", [ContentCoding.gzip]), ("X-GZIP", [.gzip]), ("br", [.brotli]), ("Deflate", [.deflate]),
    ("zstd", [.zstd]), ("identity, gzip", [.gzip]), (" \t gzip \t ", [.gzip]), (",gzip,,", [.gzip]),
    ("gzip, br", [.brotli, .gzip]), ("deflate,gzip,\tzstd", [.zstd, .gzip, .deflate]),
  ])
  func codingsAreUndoneFromTheLastToTheFirst(value: String, codings: [ContentCoding]) {
    #expect(ContentDecodingPlan(fieldValue: value) == .decoded(codings))
  }

  @Test(arguments: [
    nil, "", " ", ",", "identity", "aws-chunked", "compress", "utf-8", "gzip, aws-chunked",
    "aws-chunked, gzip", "gzip;q=1", "gzipped", "UTF-8, gzip",
  ])
  func aBodyWithoutAKnownCodingIsHandedOverAsReceived(value: String?) {
    #expect(ContentDecodingPlan(fieldValue: value) == .asReceived)
  }

  @Test func fiveCodingsAreUndoneAndSixAreTooMany() {
    let five = Array(repeating: "gzip", count: 5).joined(separator: ",")
    #expect(ContentDecodingPlan(fieldValue: five) == .decoded(Array(repeating: .gzip, count: 5)))
    #expect(ContentDecodingPlan(fieldValue: five + ", identity") != .tooMany)
    #expect(ContentDecodingPlan(fieldValue: five + ",br") == .tooMany)
    #expect(ContentDecodingPlan(fieldValue: five + ",br,unknown") == .asReceived)
  }
}
