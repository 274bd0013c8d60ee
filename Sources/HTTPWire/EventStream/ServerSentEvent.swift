package import FoundationEssentials

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

  /// The event as a part of an event stream, with the blank line behind it.
  package var encoded: Data {
    var text = type == "message" ? "" : "event: \(type)\n"
    if !id.isEmpty { text += "id: \(id)\n" }
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
