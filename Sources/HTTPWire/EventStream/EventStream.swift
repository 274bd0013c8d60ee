package import FoundationEssentials

/// Reads a stream of server-sent events (WHATWG HTML §9.2.6) from bytes that come in chunks of any size. Invalid UTF-8
/// is replaced. An event without its blank line is never returned.
package struct EventStreamReader: Sendable {
  /// The largest size of lines and events.
  package struct Limits: Sendable, Equatable {
    /// The largest number of bytes of a line. Comments are skipped and have no limit.
    package var line = 1 << 20
    /// The largest number of bytes of the data of an event.
    package var event = 1 << 22

    package init() {}
  }

  private enum State: Sendable, Equatable {
    /// At the start of the stream, after this many bytes of a byte order mark.
    case mark(count: Int)
    case lineStart
    case line
    case comment
    case failed(EventStreamError)
  }

  private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

  private let limits: Limits
  private var state = State.mark(count: 0)
  /// Whether the last byte was a carriage return; a line feed after it does not end another line.
  private var isBehindReturn = false
  /// The beginning of a line that is still incomplete.
  private var line: [UInt8] = []
  private var event: EventBuffer

  /// Makes a reader for the stream of one connection.
  ///
  /// - Parameter lastEventID: The ID of the last event of the connection before this one.
  package init(limits: Limits = Limits(), lastEventID: String = "") {
    self.limits = limits
    event = EventBuffer(lastEventID: lastEventID)
  }

  /// The ID for `Last-Event-ID`, as of the last blank line: the last one that a field can carry.
  package var lastEventID: String { event.lastEventID }

  /// Whether the server has set or reset the last event ID.
  package var hasReceivedID: Bool { event.hasReceivedID }

  /// The time of the last field `retry`, in milliseconds.
  package var retry: Int64? { event.retry }

  /// Continues at `position` up to the end of the next event. Returns `nil` after the last byte.
  package mutating func read(
    _ bytes: UnsafeRawBufferPointer, from position: inout Int
  ) throws(EventStreamError) -> ServerSentEvent? {
    while position < bytes.count {
      switch state {
      case .mark(let count): try readMark(bytes[position], count, &position)
      case .lineStart: startLine(bytes[position], &position)
      case .comment:
        position = Self.endOfLine(bytes, from: position)
        if position < bytes.count { try endLine(bytes[position], &position) }
      case .line:
        let end = Self.endOfLine(bytes, from: position)
        guard line.count + end - position <= limits.line else { throw fail(.longLine(limit: limits.line)) }
        let rest = UnsafeRawBufferPointer(rebasing: bytes[position..<end])
        position = end
        guard end < bytes.count else {
          line.append(contentsOf: rest)
          return nil
        }
        try readLine(rest)
        try endLine(bytes[position], &position)
      case .failed(let error): throw error
      }
      if let complete = event.takeComplete() { return complete }
    }
    return nil
  }

  // MARK: Lines

  private mutating func readMark(
    _ byte: UInt8, _ count: Int, _ position: inout Int
  ) throws(EventStreamError) {
    guard byte == Self.byteOrderMark[count] else {
      // The bytes were not a mark but the beginning of a line.
      line.append(contentsOf: Self.byteOrderMark.prefix(count))
      state = count == 0 ? .lineStart : .line
      return
    }
    position += 1
    state = count == 2 ? .lineStart : .mark(count: count + 1)
  }

  private mutating func startLine(_ byte: UInt8, _ position: inout Int) {
    let followsReturn = isBehindReturn
    isBehindReturn = false
    switch byte {
    case 0x0A where followsReturn: position += 1
    case 0x0A, 0x0D:
      event.dispatch()
      isBehindReturn = byte == 0x0D
      position += 1
    case UInt8(ascii: ":"): state = .comment
    default: state = .line
    }
  }

  /// Passes over the byte that ends a line.
  private mutating func endLine(_ byte: UInt8, _ position: inout Int) throws(EventStreamError) {
    isBehindReturn = byte == 0x0D
    state = .lineStart
    position += 1
    guard event.dataSize <= limits.event else { throw fail(.largeEvent(limit: limits.event)) }
  }

  /// Reads a line that ends with `rest`.
  private mutating func readLine(_ rest: UnsafeRawBufferPointer) throws(EventStreamError) {
    guard !line.isEmpty else { return event.readField(rest) }
    line.append(contentsOf: rest)
    line.withUnsafeBytes { event.readField($0) }
    line.removeAll(keepingCapacity: line.capacity <= 4096)
  }

  private mutating func fail(_ error: EventStreamError) -> EventStreamError {
    state = .failed(error)
    line = []
    event.discard()
    return error
  }

  private static func endOfLine(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
    var index = start
    while index < bytes.count, bytes[index] != 0x0A, bytes[index] != 0x0D { index += 1 }
    return index
  }
}

/// The fields of the event that is being read.
struct EventBuffer: Sendable {
  /// The largest number of bytes of an ID that is sent back to the server. Servers refuse fields of more than about 8
  /// KiB, so a longer ID would break every later connection.
  private static let longestRepeatedID = 8000

  private(set) var lastEventID: String
  private(set) var hasReceivedID = false
  private(set) var retry: Int64?
  private var id: String
  /// Whether ``id`` was set since the last blank line.
  private var hasNewID = false
  private var type = ""
  /// The lines of `data`, each with a line feed.
  private var data: [UInt8] = []
  private var complete: ServerSentEvent?

  init(lastEventID: String) {
    self.lastEventID = lastEventID
    id = lastEventID
  }

  var dataSize: Int { max(0, data.count - 1) }

  mutating func takeComplete() -> ServerSentEvent? {
    guard complete != nil else { return nil }
    defer { complete = nil }
    return complete
  }

  /// Ends the event at a blank line. Without data there is none, but its ID counts.
  mutating func dispatch() {
    if hasNewID {
      hasNewID = false
      // An ID cannot contain a line break, but other control characters.
      if id.utf8.count <= Self.longestRepeatedID, HeaderFieldRules.isFieldValue(id) {
        lastEventID = id
        hasReceivedID = true
      }
    }
    if !data.isEmpty {
      complete = ServerSentEvent(
        type: type.isEmpty ? "message" : type, data: String(decoding: data.dropLast(), as: UTF8.self), id: id)
    }
    data.removeAll(keepingCapacity: data.capacity <= 4096)
    type = ""
  }

  /// Drops the event that has begun. What the server has said about later connections stays.
  mutating func discard() {
    id = lastEventID
    hasNewID = false
    type = ""
    data = []
    complete = nil
  }

  /// Reads a line that is neither a comment nor blank.
  mutating func readField(_ line: UnsafeRawBufferPointer) {
    let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.count
    var start = min(colon + 1, line.count)
    if start < line.count, line[start] == 0x20 { start += 1 }
    let name = UnsafeRawBufferPointer(rebasing: line[..<colon])
    let value = UnsafeRawBufferPointer(rebasing: line[start...])
    if Self.isEqual(name, "data") {
      data.append(contentsOf: value)
      data.append(0x0A)
    } else if Self.isEqual(name, "event") {
      type = String(decoding: value, as: UTF8.self)
    } else if Self.isEqual(name, "id") {
      guard !value.contains(0) else { return }
      id = String(decoding: value, as: UTF8.self)
      hasNewID = true
    } else if Self.isEqual(name, "retry"), !value.isEmpty, value.allSatisfy({ (0x30...0x39).contains($0) }) {
      // A number that does not fit is ignored.
      retry = Int64(String(decoding: value, as: UTF8.self)) ?? retry
    }
  }

  private static func isEqual(_ bytes: UnsafeRawBufferPointer, _ name: StaticString) -> Bool {
    guard bytes.count == name.utf8CodeUnitCount else { return false }
    for index in 0..<bytes.count where bytes[index] != name.utf8Start[index] { return false }
    return true
  }
}

/// An event of an event stream (WHATWG HTML §9.2).
///
/// ```swift
/// let event = ServerSentEvent(type: "price", data: #"{"EUR": 0.92}"#, id: "42")
/// ```
public struct ServerSentEvent: Sendable, Hashable {
  /// The value of the field `event`; `message` without one.
  public var type: String
  /// The values of the fields `data`, joined by line feeds.
  public var data: String
  /// The last event ID at the time of the event, which an earlier event may have set; empty without one. The server
  /// receives it in `Last-Event-ID` when the client connects again.
  public var id: String

  /// Makes an event, for example in a test of the code that handles it.
  public init(type: String = "message", data: String, id: String = "") {
    self.type = type
    self.data = data
    self.id = id
  }

  /// Returns the event as a part of an event stream, with the blank line after it.
  ///
  /// - Parameter id: The ID of the event before this one, which a reader keeps. Only another ID is written, even an
  ///   empty one: otherwise, a few bytes of the server could become an event with a long ID of an earlier event.
  package func encoded(after id: String) -> Data {
    var text = type == "message" ? "" : "event: \(type)\n"
    if !self.id.hasBytes(of: id) { text += "id: \(self.id)\n" }
    for line in data.split(separator: "\n", omittingEmptySubsequences: false) { text += "data: \(line)\n" }
    return Data((text + "\n").utf8)
  }
}

/// The reason why a stream of events failed.
package enum EventStreamError: Error, Sendable, Equatable {
  /// The limit in bytes is attached.
  case longLine(limit: Int)
  /// The limit in bytes of the data of an event is attached.
  case largeEvent(limit: Int)
  case status(Int)
  case contentType(String?)

  /// One or two sentences: the failure and a remedy.
  package var message: String {
    switch self {
    case .longLine(let limit):
      "A line of the event stream is longer than \(limit) bytes. Raise the limit to receive it."
    case .largeEvent(let limit):
      "The data of an event is larger than \(limit) bytes. Raise the limit to receive it."
    case .status(let status):
      "The server answered the request for an event stream with status \(status) instead of 200. "
        + "Check that the URL is that of an event stream."
    case .contentType(let type):
      "The Content-Type of the event stream is \(type.map(HeaderFieldRules.quoted) ?? "missing"). "
        + "It has to be text/event-stream."
    }
  }
}

/// Decides when, where and with which fields a stream of events is requested again (WHATWG HTML §9.2.3). Pure: the
/// owner has the clock and waits.
package struct EventStreamReconnection: Sendable, Equatable {
  /// The times between two connections.
  package struct Policy: Sendable, Equatable {
    /// The delay until the server sends a field `retry`.
    package var initialDelay = Duration.seconds(3)
    /// The longest delay. A longer `retry` of the server is shortened to it.
    package var maximumDelay = Duration.seconds(300)
    /// The factor by which each failure in a row widens the range of random delays.
    package var factor = 2.0

    package init() {}
  }

  /// The decision about a response.
  package enum Decision: Sendable, Equatable {
    case read
    /// The server ended the stream for good with status 204.
    case stop
    case fail(EventStreamError)
  }

  private static let shortestRange = Duration.milliseconds(100)

  private let policy: Policy
  private var serverDelay: Duration?
  private var failureCount = 0
  /// The URL that the caller asks for; `nil` before the first connection.
  private var requestedURL: String?
  /// The URL to which permanent redirects lead from there.
  private var permanentURL = ""
  private var hasTemporaryRedirect = false
  /// The ID of the last event, which `Last-Event-ID` repeats.
  package private(set) var lastEventID: String
  /// Whether the server has set or reset the last event ID, so that the caller's does not count any more.
  private var hasReceivedID = false

  package init(lastEventID: String = "", policy: Policy = Policy()) {
    self.policy = policy
    self.lastEventID = lastEventID
  }

  /// The fields of the next request.
  package var fields: [HTTPHeader] {
    var fields = [
      HTTPHeader.accept("text/event-stream"), HTTPHeader(name: "Cache-Control", value: "no-cache"),
    ]
    // The first one may be the caller's.
    if !lastEventID.isEmpty, HeaderFieldRules.isFieldValue(lastEventID) {
      fields.append(HTTPHeader(name: "Last-Event-ID", value: lastEventID))
    }
    return fields
  }

  /// Whether a `Last-Event-ID` of the caller must not be sent, because the server has reset the ID.
  package var hasResetID: Bool { hasReceivedID && lastEventID.isEmpty }

  /// Begins a connection. Returns the URL to which permanent redirects of earlier connections led, or `requested`.
  ///
  /// - Parameter requested: The URL that the caller asks for. With another one than before, redirects are forgotten.
  package mutating func target(of requested: String) -> String {
    hasTemporaryRedirect = false
    if requestedURL != requested { (requestedURL, permanentURL) = (requested, requested) }
    return permanentURL
  }

  /// Takes note that the current request was redirected. Permanent redirects (301, 308) also hold for the next
  /// connection, unless a temporary one comes before them. One that changes the method or leaves TLS counts as
  /// temporary, because a request that went there at once would be another one.
  package mutating func redirected(by plan: RedirectPlan, from method: String, status: Int) {
    let isPermanent = status == 301 || status == 308
    if !isPermanent || plan.method != method || plan.leavesSecureScheme { hasTemporaryRedirect = true }
    if !hasTemporaryRedirect { permanentURL = plan.url }
  }

  /// Decides about the response after all redirects.
  package func decision(about head: ResponseHead) -> Decision {
    if head.status == 204 { return .stop }
    guard head.status == 200 else { return .fail(.status(head.status)) }
    let contentType = head.block.values(of: "Content-Type").last
    guard let contentType, let type = MediaType(contentType), FieldName.equal(type.type, "text"),
      FieldName.equal(type.subtype, "event-stream")
    else { return .fail(.contentType(contentType)) }
    return .read
  }

  /// Takes note of an event, which ends the series of failures.
  package mutating func eventReceived() { failureCount = 0 }

  /// Begins another run of the request, for which earlier failures do not count.
  package mutating func beginAgain() { failureCount = 0 }

  /// Adopts the last event ID and the field `retry` of a connection, and returns the delay to the next one.
  ///
  /// - Parameters:
  ///   - reader: The reader of the connection; `nil` if it had no response.
  ///   - isClean: Whether the server has ended the response.
  ///   - random: A random number from 0 to 1.
  /// - Returns: After a clean end, the delay of the server, give or take a tenth. After a failure, and after the second
  ///   connection in a row without an event, there is a random addition. Its range doubles with each one in a row.
  ///   Because of both, the clients of a restarted server do not return at the same time.
  package mutating func connectionEnded(
    _ reader: EventStreamReader?, isClean: Bool = false, random: Double
  ) -> Duration {
    if let reader {
      lastEventID = reader.lastEventID
      hasReceivedID = hasReceivedID || reader.hasReceivedID
      if let retry = reader.retry { serverDelay = .milliseconds(retry) }
    }
    let random = min(1, max(0, random))
    let shortest = min(max(.zero, serverDelay ?? policy.initialDelay), policy.maximumDelay)
    if isClean, failureCount == 0, shortest > .zero {
      failureCount = 1
      return min(shortest * (0.9 + 0.2 * random), policy.maximumDelay)
    }
    // A server that asks for no delay is not asked in a loop.
    var range = max(shortest, Self.shortestRange)
    for _ in 0..<failureCount where range < policy.maximumDelay { range = range * max(1, policy.factor) }
    failureCount += 1
    return shortest + min(range, policy.maximumDelay - shortest) * random
  }
}
