package import FoundationEssentials

/// The journal of one background transfer as bytes: a line for each record, with a checksum and the record as JSON.
///
/// A process may end while it writes a line, and a disk may damage one. The records before such a line are valid.
package struct TransferLog: Sendable {
  /// A longer line is no record of this library.
  package static let longestLine = 16 << 20

  private let hashes: any HashFunctions

  package init(hashes: any HashFunctions) {
    self.hashes = hashes
  }

  /// Returns the line of a record; `nil` if it cannot be encoded.
  package func line(of record: TransferRecord) -> Data? {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let json = try? encoder.encode(record), let sum = checksum(json), json.count < Self.longestLine
    else {
      return nil
    }
    return Data(sum.utf8) + [UInt8(ascii: " ")] + json + [UInt8(ascii: "\n")]
  }

  /// Returns the records before the first line that is damaged or not complete, and the number of their bytes.
  package func records(in bytes: Data) -> (records: [TransferRecord], length: Int) {
    var records: [TransferRecord] = []
    var length = 0
    let decoder = JSONDecoder()
    while let end = bytes[(bytes.startIndex + length)...].firstIndex(of: UInt8(ascii: "\n")) {
      let line = bytes[(bytes.startIndex + length)..<end]
      guard let json = payload(of: line), let record = try? decoder.decode(TransferRecord.self, from: json)
      else { break }
      records.append(record)
      length = end - bytes.startIndex + 1
    }
    return (records, length)
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

/// A record in the journal of a background transfer. The first one describes the transfer; each later one is a step
/// that a new process has to know of.
package enum TransferRecord: Codable, Sendable, Equatable {
  case described(TransferDescription)
  /// The head of a response that has arrived. The body begins at `offset` of the file; the file has no bytes beyond
  /// that.
  case responded(StoredHead, offset: Int64, boot: String)
  /// The first `size` bytes of the file are on the disk.
  case synced(size: Int64)
  /// The server may have received the whole request.
  case sent
  /// The URL of the response, if it is not that of the request.
  case located(url: String)
  /// The file has all its bytes, which are on the disk.
  case completed(size: Int64)
  /// The file is being moved.
  case moving(to: String, options: Int)
  case moved
  /// The response to an upload is complete; its body, if it has one, is in a file beside the journal.
  case answered(hasBody: Bool)
  /// Another attempt begins, and whatever came back is of no use.
  case restarted
  /// The response handlers are being called.
  case delivering
  /// The server has named the URL of a resumable upload, or no longer has the upload (`nil`).
  ///
  /// - Parameter mayBeComplete: Whether the server may have all bytes.
  case uploading(StoredUpload?, mayBeComplete: Bool)
}

/// A resumable upload that the server has named. The offset is not written, because the server is asked for it.
package struct StoredUpload: Codable, Sendable, Equatable {
  /// The URL of the upload.
  package let url: String
  /// The URL that created the upload. Credentials go to its origin alone.
  package let creationURL: String
  package let dialect: UploadResumption.Dialect
  /// The status with which the server failed behind the last byte. The end of the upload does not mend that.
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

/// The request of a background transfer, as far as another process needs it.
package struct TransferDescription: Codable, Sendable, Equatable {
  package enum Kind: String, Codable, Sendable { case download, upload }

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

  package var kind: Kind
  package var url: String
  package var method: String
  package var fields: [String: String]
  package var body: Data?
  package var bodyFile: BodyFile?
  package var timeout: Double
  package var cachePolicy: UInt
  /// The second since 1970 in which the transfer was made.
  package var created: Double
  /// The second since 1970 before which nothing is sent.
  package var earliestBegin: Double?
  /// The options of a resumable upload; `nil` for any other transfer.
  package var resumption: UploadResumption.Policy?
  /// The identifier of the machine's boot.
  package var boot: String

  package init(
    kind: Kind, url: String, method: String, fields: [String: String], created: Double, boot: String
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

  /// Returns the seconds since the transfer was made; none if the clock was set back.
  package func age(at now: Double) -> Double { max(0, now - created) }
}

/// The status line and the fields of a response, as they came.
package struct StoredHead: Codable, Sendable, Equatable {
  package let status: Int
  private let version: UInt8
  private let fields: Data

  package init(_ head: ResponseHead) {
    status = head.status
    version = head.version.rawValue
    fields = Data(head.block.bytes)
  }

  /// The size of the whole file, if the response tells it and its body is not encoded.
  var wholeSize: Int64? {
    let block = head.block
    guard !block.contains("Content-Encoding") else { return nil }
    switch status {
    case 200:
      guard let text = block.value(of: "Content-Length"), text.utf8.allSatisfy({ (0x30...0x39).contains($0) })
      else { return nil }
      return Int64(text)
    case 206: return ContentRange(head)?.total
    default: return nil
    }
  }

  package var head: ResponseHead {
    ResponseHead(
      status: status, version: HTTPVersion(rawValue: version) ?? .http1_1,
      block: FieldBlock(bytes: Array(fields)))
  }
}

/// The files of the background transfers of one identifier: journals, downloaded files and bodies of uploads. One
/// process at a time has them. Every call may wait for the disk.
package protocol TransferFiles: Sendable {
  /// The path of the folder.
  var location: String { get }
  /// The identifier of the machine's boot.
  var boot: String { get }
  /// Returns the names of all files; `nil` if the folder cannot be read.
  func names() -> [String]?
  /// Returns the content of a file; `nil` if it does not exist or cannot be read.
  func read(_ name: String) -> Data?
  /// Returns the size of a file in bytes; `nil` if it does not exist.
  func size(of name: String) -> Int64?
  /// Returns the second since 1970 in which a file was last changed; `nil` if it does not exist.
  func changed(_ name: String) -> Int64?
  /// Makes a file, which is on the disk afterwards. Returns the number of the error, if there is one.
  func make(_ name: String, _ bytes: Data) -> Int32?
  /// Replaces a file by one with other bytes, which is on the disk when its name is. Returns the number of the error,
  /// if there is one; then nothing has happened.
  func replace(_ name: String, by bytes: Data) -> Int32?
  /// Appends to a file, all bytes or none. Returns the number of the error, if there is one.
  func append(_ bytes: Data, to name: String) -> Int32?
  /// Shortens a file.
  func cut(_ name: String, to length: Int)
  /// Waits until the bytes of a file are on the disk. Returns false if that failed.
  func synchronize(_ name: String) -> Bool
  func remove(_ name: String)
  /// Lets another process, or another session, have the files.
  func unlock()
}

extension TransferFiles {
  package func path(of name: String) -> String { "\(location)/\(name)" }
}

/// The reason why the folder of background transfers cannot be used.
package enum TransferFolderError: Error, Sendable, Equatable {
  /// Another process, or another session of this one, uses it.
  case inUse
  /// Its session has ended.
  case closed
  /// A folder that belongs to another user, or to which other users may write.
  case notOurs
  /// A folder that cannot be made or locked; the text is that of the system.
  case unusable(String)
}
