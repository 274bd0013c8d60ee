import Alamofire
import Foundation
import Glibc

/// The validator and the length of the resource of a partial file. A small file beside the partial file holds the two
/// until the download is complete, so that `--continue` never joins parts of two versions.
struct PartialFileRecord: Equatable, Sendable {
  /// A strong entity tag (RFC 9110 §8.8.3).
  var entityTag: String?
  /// A date of modification that is a strong validator (RFC 9110 §8.8.2.2).
  var modificationDate: String?
  var length: Int64?

  /// Makes the record of a whole response; `nil` if the response says nothing of its version.
  init?(_ response: HTTPURLResponse) {
    entityTag = Self.strongTag(response)
    modificationDate = Self.strongDate(response)
    length = response.expectedContentLength >= 0 ? response.expectedContentLength : nil
    if entityTag == nil, modificationDate == nil, length == nil { return nil }
  }

  /// The value of `If-Range`; `nil` if the server sent no strong validator.
  var validator: String? { entityTag ?? modificationDate }

  /// Whether a partial response is of the same version. If the first part had a strong entity tag, this one has to
  /// repeat it, because a server may ignore `If-Range` (RFC 9110 §15.3.7.3). It may omit a date that was in `If-Range`.
  func matches(_ response: HTTPURLResponse, total: Int64?) -> Bool {
    if let length, let total, length != total { return false }
    let tag = response.value(forHTTPHeaderField: "ETag")
    if let entityTag { return tag == entityTag }
    guard let modificationDate else { return true }
    return response.value(forHTTPHeaderField: "Last-Modified").map { $0 == modificationDate } ?? (tag == nil)
  }

  private static func strongTag(_ response: HTTPURLResponse) -> String? {
    guard let tag = response.value(forHTTPHeaderField: "ETag"), tag.hasPrefix("\"") else { return nil }
    return tag
  }

  /// Returns the modification date if it is strong: the response was made a second later at least.
  private static func strongDate(_ response: HTTPURLResponse) -> String? {
    guard let text = response.value(forHTTPHeaderField: "Last-Modified"), let modified = seconds(text),
      let made = response.value(forHTTPHeaderField: "Date").flatMap(seconds), made > modified
    else { return nil }
    return text
  }

  /// Returns the time of `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 §5.6.7).
  private static func seconds(_ date: String) -> Int? {
    let words = date.split(separator: " ")
    guard words.count == 6, words[5] == "GMT", let day = Int32(words[1]), let year = Int32(words[3]),
      let month = months.firstIndex(of: String(words[2]))
    else { return nil }
    let clock = words[4].split(separator: ":").compactMap { Int32($0) }
    guard clock.count == 3, (0...9999).contains(year) else { return nil }
    var time = tm()
    (time.tm_mday, time.tm_mon, time.tm_year) = (day, Int32(month), year - 1900)
    (time.tm_hour, time.tm_min, time.tm_sec) = (clock[0], clock[1], clock[2])
    return timegm(&time)
  }

  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]
}

extension PartialFileRecord {
  static func path(of file: String) -> String { FileNames.path(beside: file, suffix: ".af-continue") }

  private static let names = (tag: "ETag: ", date: "Last-Modified: ", length: "Content-Length: ")

  /// Reads the record of a partial file; `nil` if there is none.
  init?(file: String) {
    guard let data = FileManager.default.contents(atPath: Self.path(of: file)) else { return nil }
    for line in String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init) {
      if line.hasPrefix(Self.names.tag) {
        entityTag = String(line.dropFirst(Self.names.tag.count))
      } else if line.hasPrefix(Self.names.date) {
        modificationDate = String(line.dropFirst(Self.names.date.count))
      } else if line.hasPrefix(Self.names.length) {
        length = Int64(line.dropFirst(Self.names.length.count))
      }
    }
  }

  /// Writes the record beside a file. Without a record the file can still be continued, so that a failure is none of
  /// the download.
  func write(beside file: String) {
    let lines = [
      entityTag.map { Self.names.tag + $0 }, modificationDate.map { Self.names.date + $0 },
      length.map { "\(Self.names.length)\($0)" },
    ]
    let text = lines.compactMap { $0.map { $0 + "\n" } }.joined()
    _ = FileManager.default.createFile(atPath: Self.path(of: file), contents: Data(text.utf8))
  }

  static func remove(beside file: String) { unlink(path(of: file)) }
}
