package import FoundationEssentials

/// The fields of a response that concern a resumable upload.
package struct UploadAnswer: Sendable, Equatable {
  package var status: Int
  /// `Upload-Offset`; `nil` without a valid one.
  package var offset: Int64?
  /// `Upload-Complete` of the draft; `nil` without a valid one.
  package var isComplete: Bool?
  /// `Upload-Length`; `nil` without a valid one.
  package var length: Int64?
  package var limits: UploadLimits?
  package var location: String?
  package var interopVersion: Int64?
  /// `Tus-Resumable`.
  package var tusVersion: String?
  /// `Retry-After` in seconds; a date is not read.
  package var retryAfter: Int64?
  package var problem: UploadProblem?

  package init(status: Int) { self.status = status }

  /// Reads a response.
  ///
  /// - Parameter body: The body of the response, for a document of RFC 9457; `nil` without one.
  package init(_ head: ResponseHead, body: Data? = nil) {
    let block = head.block
    status = head.status
    offset = block.value(of: "Upload-Offset").flatMap(Self.count)
    isComplete = block.value(of: "Upload-Complete").flatMap(StructuredField.boolean)
    length = block.value(of: "Upload-Length").flatMap(Self.count)
    limits = block.value(of: "Upload-Limit").flatMap { UploadLimits($0) }
    location = block.values(of: "Location").first
    interopVersion = block.value(of: "Upload-Draft-Interop-Version").flatMap(StructuredField.integer)
    tusVersion = block.value(of: "Tus-Resumable")
    retryAfter = block.value(of: "Retry-After").flatMap(Self.count)
    if let body, let type = block.value(of: "Content-Type").flatMap({ MediaType($0) }),
      FieldName.equal(type.type, "application"), FieldName.equal(type.subtype, "problem+json")
    {
      problem = UploadProblem(document: body)
    }
  }

  /// Whether a response of the draft's protocol came from a server that knows it.
  package var hasDraftFields: Bool { isComplete != nil || offset != nil || limits != nil }

  var isSuccess: Bool { (200..<300).contains(status) }

  /// Returns a number of bytes; `nil` if the text is none.
  fileprivate static func count(_ text: String) -> Int64? {
    StructuredField.integer(text).flatMap { $0 >= 0 ? $0 : nil }
  }
}

/// The problem types of the draft (RFC 9457).
package enum UploadProblem: String, Sendable, Equatable {
  case mismatchingOffset = "https://iana.org/assignments/http-problem-types#mismatching-upload-offset"
  case completedUpload = "https://iana.org/assignments/http-problem-types#completed-upload"
  case inconsistentLength = "https://iana.org/assignments/http-problem-types#inconsistent-upload-length"

  private struct Document: Decodable { let type: String }

  /// Reads a problem document; `nil` for another problem, or for data that are no problem document.
  package init?(document: Data) {
    guard let type = try? JSONDecoder().decode(Document.self, from: document).type else { return nil }
    self.init(rawValue: type)
  }
}

/// The support of a server for tus, as its response to OPTIONS tells.
package struct TusSupport: Sendable, Equatable {
  package static let version = "1.0.0"

  package let maximumSize: Int64?

  /// Reads the answer of a server; `nil` if the server does not create uploads by tus 1.0.
  package init?(_ head: ResponseHead) {
    let versions = Self.list(head.block.value(of: "Tus-Version") ?? head.block.value(of: "Tus-Resumable"))
    guard (200..<300).contains(head.status), versions.contains(Self.version),
      Self.list(head.block.value(of: "Tus-Extension")).contains("creation")
    else { return nil }
    maximumSize = head.block.value(of: "Tus-Max-Size").flatMap(UploadAnswer.count)
  }

  private static func list(_ text: String?) -> [String] {
    (text ?? "").split(separator: ",").map { part in
      String(part.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
    }
  }
}

/// The metadata of an upload by tus (`Upload-Metadata`).
package enum UploadMetadata {
  /// Returns the value of the field, with the keys in their order; `nil` without metadata.
  package static func field(_ metadata: [String: String]) throws(ResumableUploadError) -> String? {
    var parts: [String] = []
    for (key, value) in metadata.sorted(by: { $0.key < $1.key }) {
      guard !key.isEmpty, key.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: ",") })
      else {
        throw .invalidMetadataKey(key)
      }
      let encoded = Data(value.utf8).base64EncodedString()
      parts.append(encoded.isEmpty ? key : "\(key) \(encoded)")
    }
    return parts.isEmpty ? nil : parts.joined(separator: ",")
  }
}
