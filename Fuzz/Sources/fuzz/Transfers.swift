import FoundationEssentials
import HTTPWire

/// Responses to resumable uploads and to segments of a download: numbers and ranges are within their limits.
enum TransferAnswers {
  /// Reads the bytes as the response to a transfer. The first byte chooses the status. The rest is a field block.
  static func check(_ bytes: UnsafeRawBufferPointer) {
    guard let first = bytes.first else { return }
    let statuses = [104, 200, 201, 204, 206, 400, 409, 413, 416, 503]
    let block = FieldBlock(bytes: Array(bytes.dropFirst()))
    let head = ResponseHead(status: statuses[Int(first) % statuses.count], version: .http1_1, block: block)
    let now = HTTPDate(secondsSince1970: 1_700_000_000)
    check(SegmentAnswer(head, now: now))
    if let digest = FileDigest(of: head) {
      precondition(
        FileDigest(digest.algorithm, hex: digest.hex) == digest, "the digest is another one as text")
    }
    _ = UploadAnswer(head, body: Data(bytes.dropFirst()), now: now)
    _ = TusSupport(head)
    let text = String(decoding: bytes.dropFirst(), as: UTF8.self)
    _ = StructuredField.item(text)
    _ = StructuredField.dictionary(text)
    _ = UploadLimits(text)
    if let ranges = ByteRanges(text: text) {
      precondition(ByteRanges(text: ranges.text) == ranges, "\(ranges.text) are other ranges the second time")
    }
  }

  private static func check(_ answer: SegmentAnswer) {
    switch answer {
    case .part(let range, let length, _):
      precondition(!range.isEmpty && range.lowerBound >= 0 && range.upperBound <= length)
    case .whole(let length, _): precondition(length ?? 0 >= 0)
    case .refused, .unsatisfiable, .unusable: break
    }
  }
}
