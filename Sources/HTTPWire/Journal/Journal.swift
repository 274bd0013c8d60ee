package import FoundationEssentials

/// The records of an unfinished transfer as bytes: a line for each record, with a checksum and the record as JSON.
///
/// A process may end while it writes a line, and a disk may damage one. The records before such a line are valid, and
/// nothing that follows it. The checksum proves nothing about the writer, so the values may be forged.
package struct Journal: Sendable {
  /// The records of a journal that was read.
  package struct Content: Sendable, Equatable {
    package fileprivate(set) var records: [JournalRecord] = []
    /// The number of bytes of the records.
    package fileprivate(set) var length = 0
    /// Whether an undamaged line with an unknown record ends the journal. A later version has written it, and it may
    /// say that something must not be repeated.
    package fileprivate(set) var isOfLaterVersion = false
  }

  /// The longest line of a journal; a longer one was not written by this library.
  package static let longestLine = 16 << 20

  private let hashes: any HashFunctions

  package init(hashes: any HashFunctions) {
    self.hashes = hashes
  }

  /// Returns the line of a record; `nil` if it cannot be encoded.
  package func line(of record: JournalRecord) -> Data? {
    guard let json = json(of: record), let sum = checksum(json), json.count < Self.longestLine else {
      return nil
    }
    return Data(sum.utf8) + [UInt8(ascii: " ")] + json + [UInt8(ascii: "\n")]
  }

  private func json(of record: JournalRecord) -> Data? {
    // A download in segments writes one for each piece, in a tenth of the time of an encoder.
    if case .wrote(let ranges) = record { return Data("{\"wrote\":{\"_0\":\"\(ranges.text)\"}}".utf8) }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return try? encoder.encode(record)
  }

  /// Returns the lines of records; `nil` if one cannot be encoded.
  package func lines(of records: [JournalRecord]) -> Data? {
    let lines = records.compactMap { line(of: $0) }
    return lines.count == records.count ? Data(lines.joined()) : nil
  }

  /// Returns the records before the first line that is damaged, not complete, or unknown.
  package func content(of bytes: Data) -> Content {
    var content = Content()
    let decoder = JSONDecoder()
    while let end = bytes[(bytes.startIndex + content.length)...].firstIndex(of: UInt8(ascii: "\n")) {
      let line = bytes[(bytes.startIndex + content.length)..<end]
      guard let json = payload(of: line) else { break }
      guard let record = try? decoder.decode(JournalRecord.self, from: json) else {
        content.isOfLaterVersion = true
        break
      }
      content.records.append(record)
      content.length = end - bytes.startIndex + 1
    }
    return content
  }

  /// Returns what a journal says; `nil` without a valid description, and for a journal of a later version.
  package func state(of bytes: Data) -> JournalState? {
    let content = content(of: bytes)
    return content.isOfLaterVersion ? nil : JournalState(content.records)
  }

  private func payload(of line: Data) -> Data? {
    guard line.count < Self.longestLine, let space = line.firstIndex(of: UInt8(ascii: " ")) else {
      return nil
    }
    let json = Data(line[(space + 1)...])
    return checksum(json).map { Data($0.utf8) } == Data(line[..<space]) ? json : nil
  }

  private func checksum(_ bytes: Data) -> String? {
    hashes.text(.sha256, Array(bytes)).map { String($0.prefix(16)) }
  }
}

/// A record about an unfinished transfer. The first one describes the transfer; each later one is a step that a new
/// process has to know of.
///
/// The journal of a background transfer may have any of them. The journal of a partial file has the representation and
/// the bytes that are in the file, like resume data. A checkpoint of an upload has the upload.
package enum JournalRecord: Codable, Sendable, Equatable {
  case described(TransferDescription)
  /// The head of a response that has arrived. The body begins at `offset` of the file, which is then only appended to.
  /// As long as the system runs, its size is the number of its valid bytes. It has no bytes beyond `offset` yet.
  case responded(StoredHead, offset: Int64, boot: String)
  /// The representation of which the file gets bytes. It has none yet.
  case identified(Representation, boot: String)
  /// The file has these bytes, as long as the system runs. They may not have reached the disk.
  case wrote(ByteRanges)
  /// These bytes of the file, and no others, are on the disk.
  case present(ByteRanges)
  /// The first `size` bytes of the file are on the disk, as an earlier version wrote it.
  case synced(size: Int64)
  /// The server may have received the whole request.
  case sent
  /// The URL of the response, if it differs from the request's URL.
  case located(url: String)
  /// The file has all its bytes, which are on the disk.
  case completed(size: Int64)
  /// The file is being moved.
  case moving(to: String, options: Int)
  case moved
  /// The response to an upload is complete; its body, if it has one, is in a file beside the journal.
  case answered(hasBody: Bool)
  /// Another attempt begins, and whatever came back is of no use. Right after ``moving(to:options:)`` it says that the
  /// file could not be moved, and the request stays sent.
  case restarted
  /// The response handlers are being called.
  case delivering
  /// The server has named the URL of a resumable upload, or no longer has the upload (`nil`).
  ///
  /// - Parameter mayBeComplete: Whether the server may have all bytes.
  case uploading(StoredUpload?, mayBeComplete: Bool)
  /// The request has transport options of its own. They are not written, because they may have keys and passwords.
  case configured
}

/// A resumable upload that the server has named. The offset is not written, because the server is asked for it.
package struct StoredUpload: Codable, Sendable, Equatable {
  /// The URL of the upload.
  package let url: String
  /// The URL that created the upload. Credentials go to its origin alone.
  package let creationURL: String
  package let dialect: UploadResumption.Dialect
  /// The status with which the server failed after the last byte. Completing the upload does not undo that failure.
  package var statusAfterLastByte: Int?

  package init(_ resource: UploadResource, creation: UploadResource, dialect: UploadResumption.Dialect) {
    url = resource.url
    creationURL = creation.url
    self.dialect = dialect
  }

  package var creation: UploadResource? { UploadResource(url: creationURL) }

  /// `nil` if the URL is invalid, or would leave TLS.
  package var resource: UploadResource? {
    guard let creation, let resource = UploadResource(url: url),
      creation.origin.scheme == "http" || resource.origin.scheme == "https"
    else { return nil }
    return resource
  }
}

/// The request of a transfer, as far as another process needs it.
package struct TransferDescription: Codable, Sendable, Equatable {
  package enum TransferKind: String, Codable, Sendable { case download, upload }

  /// The file that an upload sends.
  package struct BodyFile: Codable, Sendable, Equatable {
    package var path: String
    /// Whether the file is removed after the transfer.
    package var isOwned: Bool
    package var size: Int64
    /// The time of the last change, in seconds since 1970. `nil` if the file belongs to the journal.
    package var modified: Double?

    package init(path: String, isOwned: Bool, size: Int64) {
      self.path = path
      self.isOwned = isOwned
      self.size = size
    }
  }

  package var kind: TransferKind
  package var url: String
  package var method: String
  package var fields: [String: String]
  package var body: Data?
  package var bodyFile: BodyFile?
  package var timeout: Double
  package var cachePolicy: UInt
  /// Whether cookies are sent and stored. `nil` stands for true, and for a journal of an earlier version.
  package var handlesCookies: Bool?
  /// The URL of the document that the request belongs to, by which cookies are accepted.
  package var mainDocument: String?
  /// The second since 1970 in which the transfer was created.
  package var created: Double
  /// The second since 1970 before which no request is sent.
  package var earliestBegin: Double?
  /// The options of a resumable upload; `nil` for any other transfer.
  package var resumption: UploadResumption.Policy?
  /// The file of a download, for resume data; `nil` if it follows from the location of the journal.
  package var file: String?
  /// The identifier of the machine's boot.
  package var boot: String

  package init(
    kind: TransferKind, url: String, method: String, fields: [String: String], created: Double, boot: String
  ) {
    self.kind = kind
    self.url = url
    self.method = method
    self.fields = fields
    self.created = created
    self.boot = boot
    timeout = 60
    cachePolicy = 0
  }

  /// Whether the request may be sent again if the outcome of an earlier sending is not known (RFC 9110 §9.2.2).
  package var isIdempotent: Bool { RepeatDecision.isIdempotent(method) }

  /// Returns the seconds until the transfer may begin. If the clock was set back since, the wait is at most the one
  /// that was asked for.
  package func wait(at now: Double) -> Double {
    guard let earliestBegin else { return 0 }
    return max(0, earliestBegin - max(now, created))
  }

  /// Returns the seconds since the transfer was created; zero if the clock was set back.
  package func age(at now: Double) -> Double { max(0, now - created) }
}

/// The status line and the fields of a response, as received.
package struct StoredHead: Codable, Sendable, Equatable {
  package let status: Int
  private let version: UInt8
  private let fields: Data

  package init(_ head: ResponseHead) {
    status = head.status
    version = head.version.rawValue
    fields = Data(head.block.bytes)
  }

  package var head: ResponseHead {
    ResponseHead(
      status: status, version: HTTPVersion(rawValue: version) ?? .http1_1,
      block: FieldBlock(bytes: Array(fields)))
  }
}
