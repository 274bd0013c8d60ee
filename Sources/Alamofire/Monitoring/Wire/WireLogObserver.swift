import Foundation
import HTTPWire
import Synchronization

/// Collects the heads of one attempt, which arrive in pieces, for a ``WireLog``.
final class WireLogObserver: WireObserver {
  private let log: WireLog
  private let request: UUID
  private let redaction: Redaction
  private let collector = Mutex(WireCollector())

  init(log: WireLog, request: UUID, redaction: Redaction) {
    self.log = log
    self.request = request
    self.redaction = redaction
  }

  func bytesMoved(_ part: WirePart, _ bytes: UnsafeRawBufferPointer) {
    for head in collector.withLock({ $0.add(part, bytes) }) { add(head) }
    switch part {
    case .requestHead, .responseHead: break
    case .requestBody: log.add(.requestBody, head: [], byteCount: bytes.count, request, redaction)
    case .responseBody: log.add(.responseBody, head: [], byteCount: bytes.count, request, redaction)
    }
  }

  func wireEnded() {
    if let head = collector.withLock({ $0.finish() }) { add(head) }
  }

  private func add(_ head: WireCollector.Head) {
    log.add(
      head.isOfRequest ? .requestHead : .responseHead, head: head.bytes, byteCount: head.bytes.count, request,
      redaction)
  }
}

/// Puts the pieces of heads together. Pure.
struct WireCollector: Sendable {
  struct Head: Sendable {
    let isOfRequest: Bool
    var bytes: [UInt8] = []
  }

  private var head: Head?

  /// Returns the heads that are complete: the earlier one if another part or head begins, and this one if it ends with
  /// an empty line.
  mutating func add(_ part: WirePart, _ piece: UnsafeRawBufferPointer) -> [Head] {
    let isHead = part == .requestHead || part == .responseHead
    var complete: [Head] = []
    let beginsHead = part == .responseHead && piece.starts(with: "HTTP/".utf8)
    if let earlier = head, !isHead || beginsHead || earlier.isOfRequest != (part == .requestHead) {
      complete.append(earlier)
      head = nil
    }
    guard isHead else { return complete }
    var current = head ?? Head(isOfRequest: part == .requestHead)
    current.bytes += piece
    let isComplete = current.bytes.suffix(4) == [13, 10, 13, 10] || current.bytes.suffix(2) == [10, 10]
    head = isComplete ? nil : current
    return isComplete ? complete + [current] : complete
  }

  /// Returns a head that was not complete, such as trailers.
  mutating func finish() -> Head? {
    defer { head = nil }
    return head
  }
}

/// A head as lines without secrets.
struct WireHead {
  private let lines: [String]

  /// Makes a head from the first line and the fields, as they were sent.
  init(_ bytes: [UInt8]) {
    lines = Self.unfolded(bytes)
  }

  /// Makes a head without secrets.
  init(_ bytes: [UInt8], _ redaction: Redaction) {
    lines = Self.unfolded(bytes).enumerated().map { index, line in
      ReadableText.line(
        index == 0 && Self.isStartLine(line) ? redaction.urls(in: line) : Self.masked(line, redaction))
    }
  }

  var text: String { lines.joined(separator: "\n") }

  /// The header fields in their order and spelling.
  var fields: [HTTPHeader] {
    lines.dropFirst(lines.first.map(Self.isStartLine) == true ? 1 : 0).compactMap { line in
      line.firstIndex(of: ":").map { colon in
        HTTPHeader(
          name: String(line[..<colon]),
          value: line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces))
      }
    }
  }

  /// Returns lines. A line that begins with white space belongs to the field before it (RFC 9112 §5.2), and so to its
  /// secret.
  private static func unfolded(_ bytes: [UInt8]) -> [String] {
    var lines: [String] = []
    for part in bytes.split(separator: 10) {
      let line = String(decoding: part.last == 13 ? part.dropLast() : part, as: UTF8.self)
      guard !line.isEmpty else { continue }
      if let first = line.first, first == " " || first == "\t", let last = lines.popLast() {
        lines.append("\(last) \(line.trimmingCharacters(in: .whitespaces))")
      } else {
        lines.append(line)
      }
    }
    return lines
  }

  /// Whether a line is a request line or a status line. Trailers have none, and their values may name a version.
  private static func isStartLine(_ line: String) -> Bool {
    line.hasPrefix("HTTP/") || line.contains(" HTTP/") && !line.prefix { $0 != " " }.contains(":")
  }

  private static func masked(_ line: String, _ redaction: Redaction) -> String {
    guard let colon = line.firstIndex(of: ":") else { return redaction.urls(in: line) }
    let value = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
    return "\(line[...colon]) \(redaction.value(value, ofHeaderField: String(line[..<colon])))"
  }
}
