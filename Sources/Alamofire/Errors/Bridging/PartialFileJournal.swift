import Foundation
package import FoundationNetworking
import HTTPSystem
import HTTPWire

/// The journal next to a file that a program saves on its own. `af` keeps it until the file is complete.
package struct PartialFileJournal: Sendable, Equatable {
  /// The meaning of a partial response for the file.
  package enum Part: Sendable, Equatable {
    /// The range begins with the next byte of the file, whose length is the total, if it is known.
    case rest(total: Int64?)
    case otherPart, otherVersion
  }

  /// The largest size of a journal in bytes. A larger file is not read.
  package static let largestSize = Journal.longestLine

  /// The number of bytes at the beginning of the file that count; 0 if it begins again.
  package let offset: Int64
  /// The size of the undamaged lines, after which others may be appended; `nil` for a new journal, and for one without
  /// the form of this version. No line is found after a damaged one.
  package let validSize: Int?
  /// Whether bytes that are written to the file from now on count. The ones of an encoded body do not: the file has its
  /// decoded bytes, and ranges count the encoded ones.
  package let countsNewBytes: Bool
  private let version: Representation
  private let flushedSize: Int64

  /// Reads a journal; `nil` for any other bytes, because the file may be the user's. No byte counts if the journal is
  /// damaged at its beginning, or has a record of a later version.
  package init?(_ bytes: Data, fileSize: Int64) {
    countsNewBytes = true
    if let version = Self.version1(bytes) {
      (self.version, offset, validSize, flushedSize) = (version, fileSize, nil, 0)
      return
    }
    guard Self.hasRecord(bytes) else { return nil }
    let state = Journal.standard.state(of: bytes)
    version = state?.representation ?? Representation(length: nil, validator: nil)
    offset = state?.receivedSize(boot: PartialFile.boot, fileSize: fileSize) ?? 0
    flushedSize = state?.receivedSize(boot: "", fileSize: fileSize) ?? 0
    validSize = Journal.standard.content(of: bytes).length
  }

  /// Whether one of the first lines is undamaged. Lines of a journal are short.
  private static func hasRecord(_ bytes: Data) -> Bool {
    bytes.prefix(1 << 20).split(separator: 0x0A, maxSplits: 64).prefix(64).contains { line in
      let content = Journal.standard.content(of: line + [0x0A])
      return content.length > 0 || content.isOfLaterVersion
    }
  }

  /// Makes the journal of a file without bytes. `nil` if the response does not identify its representation, or has a
  /// part of it.
  package init?(_ response: HTTPURLResponse) {
    let head = response.receivedHead
    countsNewBytes = !Representation.isEncoded(head)
    version = Representation(head, now: .now)
    (offset, validSize, flushedSize) = (0, nil, 0)
    // Without a journal, all bytes of the file would count.
    let isKnown = version.length != nil || version.validator != nil || !countsNewBytes
    if response.statusCode == 206 || !isKnown { return nil }
  }

  /// Makes the state of a file without a journal. All of its bytes count, and a part of any version continues it.
  package init(fileSize: Int64) {
    countsNewBytes = true
    version = Representation(length: nil, validator: nil)
    (offset, validSize, flushedSize) = (fileSize, nil, 0)
  }

  package var length: Int64? { version.length.map { Int64($0) } }
  /// The value of `If-Range`; `nil` without a strong validator.
  package var validator: String? { version.validator }

  /// Returns the meaning of a response with the status 206.
  package func part(_ response: HTTPURLResponse) -> Part {
    switch version.continuation(after: offset, by: response.receivedHead) {
    case .rest(_, let total): .rest(total: total)
    case .otherPart: .otherPart
    case .otherVersion: .otherVersion
    }
  }

  /// The lines of a journal whose file is appended to from now on. They may follow earlier ones. `nil` if the
  /// representation cannot be read back.
  ///
  /// The URL is not among them, because the file may be readable by others, and because signed URLs change. The
  /// validator decides.
  package var lines: Data? {
    guard version.isValid else { return nil }
    let description = TransferDescription(
      kind: .download, url: "", method: "GET", fields: [:], created: 0, boot: "")
    var records: [JournalRecord] = [
      .described(description), .identified(version, boot: PartialFile.boot),
      .present(ByteRanges(first: flushedSize)),
    ]
    if countsNewBytes { records.append(.wrote(ByteRanges(first: .max))) }
    return Journal.standard.lines(of: records)
  }

  /// Returns the line for the first bytes of the file, which are on the disk.
  package static func line(flushed count: Int64) -> Data? {
    Journal.standard.line(of: .present(ByteRanges(first: count)))
  }

  /// Reads the fields of a journal from before the first release, until 0.2.
  private static func version1(_ bytes: Data) -> Representation? {
    guard bytes.count <= 65_536, bytes.last == 0x0A else { return nil }
    var values: [String: String] = [:]
    for line in bytes.dropLast().split(separator: 0x0A, omittingEmptySubsequences: false) {
      guard let text = String(validating: line, as: UTF8.self), let colon = text.firstRange(of: ": "),
        values.updateValue(String(text[colon.upperBound...]), forKey: String(text[..<colon.lowerBound]))
          == nil
      else { return nil }
    }
    let (tag, date, length) = (values["ETag"], values["Last-Modified"], values["Content-Length"])
    guard Set(values.keys).isSubset(of: ["ETag", "Last-Modified", "Content-Length"]),
      tag.map(Representation.isTag) ?? true, !(date.map(Representation.isTag) ?? false),
      length?.utf8.allSatisfy({ (0x30...0x39).contains($0) }) ?? true
    else { return nil }
    let version = Representation(length: length.flatMap { Int($0) }, validator: tag ?? date)
    return version.isValid && (version.length != nil) == (length != nil) ? version : nil
  }
}
