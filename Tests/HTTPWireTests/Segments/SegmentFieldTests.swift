import HTTPWire
import Testing

private let noon = HTTPDate(secondsSince1970: 1_720_000_000)

private func head(_ status: Int, _ fields: [(String, String)]) -> ResponseHead {
  ResponseHead(status: status, fields: fields.map { HTTPHeader(name: $0.0, value: $0.1) })
}

@Suite("Fields of segments") struct SegmentFieldTests {
  @Test("A 206 is a part with its strong validator")
  func part() {
    let answer = SegmentAnswer(
      head(206, [("Content-Range", "bytes 5-9/20"), ("ETag", "\"a\"")]), now: noon)
    #expect(answer == .part(5..<10, length: 20, validator: "\"a\""))
  }

  @Test("A repeated length is accepted", arguments: [["5", "5"], ["5, 5"]])
  func repeatedLength(values: [String]) {
    let lengths = values.map { ("Content-Length", $0) }
    #expect(
      SegmentAnswer(head(206, [("Content-Range", "bytes 5-9/20")] + lengths), now: noon)
        == .part(5..<10, length: 20, validator: nil))
    #expect(SegmentAnswer(head(200, lengths), now: noon) == .whole(length: 5, validator: nil))
  }

  @Test("A weak entity tag, and a date without a later response, are not validators")
  func weak() {
    let range = ("Content-Range", "bytes 0-9/20")
    let modified = ("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
    let weak = [
      [range, ("ETag", "W/\"a\"")],
      [range, ("ETag", "W/\"a\""), modified, ("Date", "Mon, 01 Jul 2024 00:00:00 GMT")],
      [range, modified], [range, modified, ("Date", modified.1)], [range],
    ]
    for fields in weak {
      #expect(SegmentAnswer(head(206, fields), now: noon) == .part(0..<10, length: 20, validator: nil))
    }
    let strong = head(206, [range, modified, ("Date", "Mon, 01 Jan 2024 00:00:01 GMT")])
    #expect(SegmentAnswer(strong, now: noon) == .part(0..<10, length: 20, validator: modified.1))
  }

  @Test("A 206 with a content coding, without a known length or with several ranges cannot be used")
  func unusable() {
    let responses = [
      [("Content-Range", "bytes 0-9/20"), ("Content-Encoding", "gzip")], [("Content-Range", "bytes 0-9/*")],
      [("Content-Type", "multipart/byteranges; boundary=x")], [("Content-Range", "bytes 9-5/20")],
      [("Content-Range", "bytes 0-9/20"), ("Accept-Ranges", "none")],
      [("Content-Range", "bytes 0-9/20"), ("Content-Length", "20")],
      [("Content-Range", "bytes 0-9/20"), ("Content-Length", "10"), ("Content-Length", "20")],
    ]
    for fields in responses { #expect(SegmentAnswer(head(206, fields), now: noon) == .unusable) }
  }

  @Test("Other statuses have their meaning")
  func statuses() {
    #expect(
      SegmentAnswer(head(200, [("Content-Length", "7"), ("ETag", "\"a\"")]), now: noon)
        == .whole(length: 7, validator: "\"a\""))
    #expect(
      SegmentAnswer(head(200, [("Content-Length", "7"), ("Content-Encoding", "gzip")]), now: noon)
        == .whole(length: nil, validator: nil))
    #expect(
      SegmentAnswer(head(416, [("Content-Range", "bytes */0")]), now: noon) == .unsatisfiable)
    for status in [201, 202, 203, 204, 205, 207, 226, 304, 400, 401, 403, 404, 405, 410, 501] {
      let answer = SegmentAnswer(head(status, [("Content-Length", "7"), ("ETag", "\"a\"")]), now: noon)
      #expect(answer == .refused(status: status, isTemporary: false))
    }
    for status in [408, 425, 429, 500, 502, 503, 504] {
      #expect(SegmentAnswer(head(status, []), now: noon) == .refused(status: status, isTemporary: true))
    }
    #expect(SegmentAnswer(head(503, []), now: noon) == .refused(status: 503, isTemporary: true))
    #expect(SegmentAnswer(head(404, []), now: noon) == .refused(status: 404, isTemporary: false))
  }

  @Test("The strongest digest of the whole representation is found")
  func digests() {
    let short = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
    let long = "z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="
    let expected = FileDigest(
      .sha256, hex: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    #expect(expected != nil)
    #expect(FileDigest(of: head(206, [("Repr-Digest", "sha-256=:\(short):")])) == expected)
    #expect(FileDigest(of: head(206, [("Digest", "md5=abc, SHA-256=\(short)")])) == expected)
    #expect(FileDigest(of: head(200, [("Content-Digest", "sha-256=:\(short):;q=1")])) == expected)
    #expect(FileDigest(of: head(206, [("Content-Digest", "sha-256=:\(short):")])) == nil)
    #expect(
      FileDigest(of: head(200, [("Repr-Digest", "sha-256=:\(short):, sha-512=:\(long):")]))?.algorithm
        == .sha512)
    let encoded = [("Repr-Digest", "sha-256=:\(short):"), ("Content-Encoding", "gzip")]
    #expect(FileDigest(of: head(200, encoded)) == nil)
    for text in ["sha-256=:\(short)", "sha-256=\(short)", "sha-256=:AAAA:", "unixsum=:1:", ""] {
      #expect(FileDigest(of: head(200, [("Repr-Digest", text)])) == nil)
    }
    for text in ["", "e3b0", "zz", "+1" + String(repeating: "0", count: 62)] {
      #expect(FileDigest(.sha256, hex: text) == nil)
    }
  }

  @Test("The rate covers the last seconds")
  func rate() throws {
    var rate = TransferRate(window: .seconds(8))
    #expect(rate.bytesPerSecond(at: .seconds(1)) == nil)
    rate.begin(at: .seconds(1))
    #expect(rate.bytesPerSecond(at: .seconds(1)) == nil)
    for second in 2...60 { rate.add(second < 30 ? 1000 : 100, at: .seconds(second)) }
    let value = try #require(rate.bytesPerSecond(at: .seconds(60)))
    #expect(abs(value - 100) < 1)
    let later = try #require(rate.bytesPerSecond(at: .seconds(64)))
    #expect(later < 100)
  }
}
