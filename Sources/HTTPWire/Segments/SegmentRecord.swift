/// The record beside a partial file: its version and the bytes that are in it.
///
/// The head of the record is written as a whole. A line is appended for each range that was written since. The
/// appended lines hold only as long as the system runs, because their bytes may not have reached the disk. The bytes
/// of the ranges in the head have reached it.
package struct SegmentRecord: Sendable, Equatable {
  /// The URL of the file, without its user information.
  package var url: String
  package var version: RepresentationVersion
  /// The identifier of the running system.
  package var boot: String
  /// The ranges in the file.
  package var present: ByteRanges

  private static let title = "segmented download 1"

  package init(url: String, version: RepresentationVersion, boot: String, present: ByteRanges) {
    self.url = url
    self.version = version
    self.boot = boot
    self.present = present
  }

  /// The head of the record.
  package var text: String {
    let lines = [
      Self.title, "url \(url)", "length \(version.length)", "validator \(version.validator)", "boot \(boot)",
      "ranges \(present.text)",
    ]
    let head = lines.joined(separator: "\n") + "\n"
    return head + "check \(Self.check(head))\n"
  }

  /// Returns the line for a range that was written.
  package static func line(_ range: Range<Int>) -> String {
    let text = "+ \(range.lowerBound)-\(range.upperBound - 1)"
    return "\(text) \(check(text))\n"
  }

  /// Parses a record. Returns `nil` for a damaged head. Lines behind a damaged one are ignored.
  ///
  /// - Parameter boot: The identifier of the running system.
  package init?(_ text: String, boot: String) {
    var lines = text.split(separator: "\n", omittingEmptySubsequences: false)[...]
    guard lines.count > 7, lines.removeFirst() == Self.title else { return nil }
    var head = Self.title + "\n"
    var values: [Substring] = []
    for name in ["url ", "length ", "validator ", "boot ", "ranges "] {
      let line = lines.removeFirst()
      guard line.hasPrefix(name) else { return nil }
      head += line + "\n"
      values.append(line.dropFirst(name.count))
    }
    guard lines.removeFirst() == "check \(Self.check(head))", let length = Int(values[1]), length > 0,
      var present = ByteRanges(text: values[4])
    else { return nil }
    if values[3] == boot, !boot.isEmpty {
      // The last line is empty if the text is complete.
      for line in lines.dropLast() {
        let parts = line.split(separator: " ")
        guard parts.count == 3, parts[0] == "+", parts[2] == Self.check("+ \(parts[1])"),
          let range = ByteRanges(text: parts[1])
        else { break }
        for range in range.ranges { present.insert(range) }
      }
    }
    guard present.ranges.last.map({ $0.upperBound <= length }) ?? true else { return nil }
    self.init(
      url: String(values[0]), version: RepresentationVersion(length: length, validator: String(values[2])),
      boot: String(values[3]), present: present)
  }

  /// Returns the FNV-1a hash of a text, by which a line that was written in part is noticed.
  private static func check(_ text: String) -> String { FNVHash(text).text }
}
