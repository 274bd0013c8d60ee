/// One server-sent event.
package struct ServerSentEvent: Sendable, Equatable {
  /// The field `event`; `message` if there was none.
  package var type: String
  /// The lines of the fields `data`, joined by line feeds.
  package var data: String
  /// The last event ID at the time of the event. Earlier events may have set it.
  package var id: String

  package init(type: String = "message", data: String, id: String = "") {
    self.type = type
    self.data = data
    self.id = id
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
