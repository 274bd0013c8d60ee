public import Foundation
import HTTPWire
import Synchronization

/// A monitor that writes requests and responses as they are sent and received: their heads, and the sizes of the pieces
/// of their bodies.
///
/// ```swift
/// let session = Session(eventMonitors: [WireLog()])
/// ```
///
/// It prints to the standard error output, or calls a closure:
///
/// ```text
/// > GET /users?access_token=redacted HTTP/1.1
/// > Host: example.com
/// > Accept: */*
/// < HTTP/1.1 200 OK
/// < Content-Length: 512
/// < 512 bytes
/// ```
///
/// Each hop and each attempt is written, informational responses and trailers too. HTTP/2 encodes a head, which is
/// shown in the form of HTTP/1.1. Header fields and URLs lose their secrets as ``Redaction`` says, and bytes of bodies
/// are never shown; ``RequestLog`` shows bodies. Not observed are tunnels of proxies, WebSocket connections, byte
/// streams, `URLProtocol` classes, responses from the cache, and requests that share the transfer of another one.
///
/// While it observes a request, ``TransactionMetrics/requestHead`` has the head of the request. It can also be added to
/// one request, with `eventMonitor(_:)`, before the request is resumed.
public final class WireLog: EventMonitor, WireMonitor, ChunklessMonitor {
  /// The queue on which entries are created and the closure is called. Serial, so that entries keep their order.
  public let queue = DispatchQueue(label: "org.alamofire.wireLog", qos: .utility)

  private let redaction: Redaction
  private let write: @Sendable (Entry) -> Void

  /// Makes a log.
  ///
  /// - Parameters:
  ///   - redaction: The rules for secrets.
  ///   - write:     Called with each entry, one after the other. Default: prints to the standard error output,
  ///     and drops what cannot be written.
  public init(
    redaction: Redaction = .standard,
    write: @escaping @Sendable (Entry) -> Void = { entry in
      // `write(_:)` would end the process if a disk is full or a pipe has lost its reader.
      try? FileHandle.standardError.write(contentsOf: Data("\(entry)\n".utf8))
    }
  ) {
    self.redaction = redaction
    self.write = write
  }

  func wireObserver(of request: UUID, secretFields: Set<String>) -> any WireObserver {
    WireLogObserver(
      log: self, request: request,
      redaction: secretFields.isEmpty ? redaction : redaction.adding(secretFields))
  }

  /// Makes an entry on the queue of the log. The head is empty for a piece of a body.
  func add(_ part: Entry.Part, head: [UInt8], byteCount: Int, _ request: UUID, _ redaction: Redaction) {
    let date = Date()
    queue.async { [write] in
      let text = head.isEmpty ? "" : WireHead(head, redaction).text
      write(Entry(part: part, text: text, byteCount: byteCount, date: date, requestID: request))
    }
  }
}

extension WireLog {
  /// A head, or a piece of a body.
  public struct Entry: Sendable, CustomStringConvertible {
    /// A part of a request or of its response.
    public enum Part: String, Sendable, CaseIterable {
      /// The head of a request.
      case requestHead
      /// A piece of the body of a request.
      case requestBody
      /// The head of a response, final or informational, or its trailers.
      case responseHead
      /// A piece of the body of a response as it arrived: encoded, and with the framing of chunks.
      case responseBody
    }

    /// The part of the request or of its response.
    public let part: Part
    /// The lines of a head without secrets, without an empty line at the end; empty for a piece of a body.
    public let text: String
    /// The number of bytes that were sent or received.
    public let byteCount: Int
    /// The time at which the last byte was sent or received.
    public let date: Date
    /// The identifier of the request, ``Request/id``.
    public let requestID: UUID

    /// The lines of the head, or the number of bytes, after `>` for a request and `<` for a response.
    public var description: String {
      let mark = part == .requestHead || part == .requestBody ? "> " : "< "
      let lines = text.isEmpty ? [byteCount.bytes] : text.components(separatedBy: "\n")
      return lines.map { mark + $0 }.joined(separator: "\n")
    }
  }
}

/// Makes the transport report the head of a request in its metrics.
final class HeadObserver: WireObserver {
  static let shared = HeadObserver()

  func bytesMoved(_ part: WirePart, _ bytes: UnsafeRawBufferPointer) {}
  func wireEnded() {}
}

/// Collects the heads of one attempt, which arrive in pieces, for a ``WireLog``.
final class WireLogObserver: WireObserver {
  private let log: WireLog
  private let request: UUID
  private let redaction: Redaction
  /// The heads that have arrived in part. The loop uses it.
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
    // Taken, so that the bytes are not copied for each piece.
    var current = head.take() ?? Head(isOfRequest: part == .requestHead)
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
      Self.field(line).map { HTTPHeader(name: $0.name, value: $0.value) }
    }
  }

  /// Returns lines. A line that begins with white space belongs to the field before it (RFC 9112 §5.2), and so to its
  /// secret.
  private static func unfolded(_ bytes: [UInt8]) -> [String] {
    var lines: [[UInt8]] = []
    for part in bytes.split(separator: 10) {
      let line = part.last == 13 ? part.dropLast() : part
      guard let first = line.first else { continue }
      if lines.isEmpty || !isBlank(first) {
        lines.append(Array(line))
      } else {
        let text = line.drop(while: isBlank)
        lines[lines.count - 1] +=
          [0x20] + text.prefix(text.lastIndex { !isBlank($0) }.map { $0 + 1 - text.startIndex } ?? 0)
      }
    }
    return lines.map { String(decoding: $0, as: UTF8.self) }
  }

  private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

  /// Whether a line is a request line or a status line. Trailers have none, and their values may name a version.
  private static func isStartLine(_ line: String) -> Bool {
    line.hasPrefix("HTTP/") || line.contains(" HTTP/") && !line.prefix { $0 != " " }.contains(":")
  }

  private static func masked(_ line: String, _ redaction: Redaction) -> String {
    guard let (name, value) = field(line) else { return redaction.urls(in: line) }
    return "\(name): \(redaction.value(value, ofHeaderField: name))"
  }

  /// Returns the parts of a field. Its colon is one also before a combining mark, with which a value may begin.
  private static func field(_ line: String) -> (name: String, value: String)? {
    guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
    let value = line[line.utf8.index(after: colon)...].trimmingCharacters(in: .whitespaces)
    return (String(line[..<colon]), value)
  }
}
