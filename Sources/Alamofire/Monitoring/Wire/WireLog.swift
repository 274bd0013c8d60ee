public import Foundation
import HTTPWire

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
/// streams, `URLProtocol` classes, and requests that share the transfer of another one.
///
/// While it observes a request, ``TransactionMetrics/requestHead`` has the head of the request. It can also be added to
/// one request, with `eventMonitor(_:)`, before the request is resumed.
public final class WireLog: EventMonitor, WireMonitor {
  /// The queue on which entries are made and the closure is called.
  public let queue = DispatchQueue(label: "org.alamofire.wireLog", qos: .utility)

  private let redaction: Redaction
  private let write: @Sendable (Entry) -> Void

  /// Makes a log.
  ///
  /// - Parameters:
  ///   - redaction: The rules for secrets.
  ///   - write:     Called with each entry, one after the other. Default: prints to the standard error output.
  public init(
    redaction: Redaction = .standard,
    write: @escaping @Sendable (Entry) -> Void = { entry in
      FileHandle.standardError.write(Data("\(entry)\n".utf8))
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

    /// The lines of the head, or the number of bytes, behind `>` for a request and `<` for a response.
    public var description: String {
      let mark = part == .requestHead || part == .requestBody ? "> " : "< "
      let lines = text.isEmpty ? [byteCount.bytes] : text.components(separatedBy: "\n")
      return lines.map { mark + $0 }.joined(separator: "\n")
    }
  }
}
