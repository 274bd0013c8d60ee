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
  /// The seconds that `Retry-After` asks for, at most a year.
  package var retryAfter: Int64?
  package var problem: UploadProblem?

  package init(status: Int) { self.status = status }

  /// Reads a response.
  ///
  /// - Parameters:
  ///   - body: The body of the response, for a document of RFC 9457; `nil` without one.
  ///   - now: The time with which a date of `Retry-After` is compared, if the response has no date.
  package init(_ head: ResponseHead, body: Data? = nil, now: HTTPDate) {
    let block = head.block
    status = head.status
    offset = block.value(of: "Upload-Offset").flatMap(Self.count)
    isComplete = block.value(of: "Upload-Complete").flatMap(StructuredField.boolean)
    length = block.value(of: "Upload-Length").flatMap(Self.count)
    limits = block.value(of: "Upload-Limit").flatMap { UploadLimits($0) }
    location = block.values(of: "Location").first
    interopVersion = block.value(of: "Upload-Draft-Interop-Version").flatMap(StructuredField.integer)
    tusVersion = block.value(of: "Tus-Resumable")
    retryAfter = block.value(of: "Retry-After").flatMap { value in
      RetryAfter.seconds(of: value, date: block.value(of: "Date"), now: now).map {
        Int64(min($0, 31_536_000))
      }
    }
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

  /// Reads a problem document; `nil` for another problem, or for data that are not a problem document.
  package init?(document: Data) {
    guard let type = try? JSONDecoder().decode(Document.self, from: document).type else { return nil }
    self.init(rawValue: type)
  }
}

/// The tus support that a server announces in its response to OPTIONS.
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

/// The limits that a server announces for an upload (`Upload-Limit` of the IETF's draft, `Tus-Max-Size` of tus).
package struct UploadLimits: Sendable, Equatable {
  /// The largest upload in bytes.
  package var maximumSize: Int64?
  package var minimumSize: Int64?
  /// The largest content of one request in bytes.
  package var maximumAppendSize: Int64?
  /// The smallest content of a request that does not end the upload.
  package var minimumAppendSize: Int64?

  package init() {}

  /// Reads a field `Upload-Limit`. Unknown members are ignored. `nil` if the field is not a dictionary, or if a known
  /// member is not a non-negative integer.
  package init?(_ field: String) {
    guard let members = StructuredField.dictionary(field) else { return nil }
    for (key, member) in members {
      guard let target = Self.member(key) else { continue }
      guard case .integer(let value) = member, value >= 0 else { return nil }
      self[keyPath: target] = value
    }
  }

  private static func member(_ key: String) -> WritableKeyPath<UploadLimits, Int64?>? {
    switch key {
    case "max-size": \.maximumSize
    case "min-size": \.minimumSize
    case "max-append-size": \.maximumAppendSize
    case "min-append-size": \.minimumAppendSize
    default: nil
    }
  }

  /// Adopts the limits that another response names.
  package mutating func update(with newer: UploadLimits) {
    maximumSize = newer.maximumSize ?? maximumSize
    minimumSize = newer.minimumSize ?? minimumSize
    maximumAppendSize = newer.maximumAppendSize ?? maximumAppendSize
    minimumAppendSize = newer.minimumAppendSize ?? minimumAppendSize
  }
}

/// A failure of a resumable upload, apart from the failures of any request.
///
/// It is the underlying error of an `AFError`.
public enum ResumableUploadError: Error, Sendable, Equatable {
  /// The server does not speak the protocol that the upload requires.
  case unsupportedByServer
  /// The server named an offset that cannot be right: beyond the length, beyond the sent bytes, or below an offset
  /// that it named before. The offset is `nil` if a response without one had to have one.
  case wrongOffset(Int64?)
  /// The server answered with success, but took no byte.
  case noProgress
  /// The server states a different length than the upload has.
  case wrongLength(Int64)
  /// The upload is larger, or smaller, than the server accepts.
  case sizeNotAccepted(limit: Int64)
  /// The server no longer has the upload, and may have processed it before. The upload is not sent again, because the
  /// server might process it twice.
  case uploadIsGone
  /// The server has all bytes of the upload, and answered the last ones with this status of a failure.
  case failedAfterUpload(status: Int)
  /// The URL of the upload is missing, invalid, or would leave TLS.
  case unusableUploadURL
  /// The body is an `InputStream`, which cannot be read again from an offset.
  case bodyIsStream
  /// The file has changed since the upload began.
  case fileHasChanged
  /// The data are not a checkpoint of this library.
  case invalidCheckpoint
  /// A key of the metadata is empty, not ASCII, or contains a space or a comma.
  case invalidMetadataKey(String)

  /// The failure and its remedy, in one sentence or two.
  package var message: String {
    switch self {
    case .unsupportedByServer:
      "The server does not support this protocol for resumable uploads. Upload without resumable(_:)."
    case .wrongOffset(let offset?):
      "The server named \(offset) as the offset of the upload, which cannot be right."
    case .wrongOffset(nil): "The response of the server has no valid Upload-Offset or Upload-Complete."
    case .noProgress: "The server answered with success, but took no byte of the upload."
    case .wrongLength(let length):
      "The server names \(length) bytes as the length of the upload, which is wrong."
    case .sizeNotAccepted(let limit):
      "The size of the upload is not accepted by the server, whose limit is \(limit) bytes."
    case .uploadIsGone:
      "The server no longer has the upload, and may have processed it. Check that before it is sent again."
    case .failedAfterUpload(let status):
      "The server has the whole upload, but answered its last bytes with status \(status)."
    case .unusableUploadURL: "The URL of the upload is missing, invalid, or would leave TLS."
    case .bodyIsStream: "An InputStream cannot be uploaded resumably; upload a file or data."
    case .fileHasChanged: "The file has changed since the upload began; begin the upload again."
    case .invalidCheckpoint: "This is no checkpoint of an upload; begin the upload again."
    case .invalidMetadataKey(let key): "\"\(key)\" is no valid key of Upload-Metadata."
    }
  }
}
