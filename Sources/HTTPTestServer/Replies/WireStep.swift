/// One thing that a connection does to answer a request.
enum WireStep: Sendable {
  case send([UInt8])
  /// A range of the deterministic content, made while it is sent.
  case sendPattern(Range<Int>)
  case pause(Duration)
  case gate(Gate)
  /// The end of all sending, until the client closes its side or the server is stopped.
  case stall
}

/// The fate of a connection after the last step.
enum ConnectionEnding: Sendable, Equatable {
  case keepAlive
  /// In good order: the closing alert of TLS, then FIN.
  case close
  /// FIN without the closing alert of TLS.
  case cut
  /// RST.
  case reset
}
