/// A failure of a connection before its first request, for ``HTTPTestServer/enqueue(connections:)``. Each also works
/// on a server without TLS.
public enum ConnectionEffect: Sendable, Equatable {
  /// No failure.
  case none
  /// A handshake that is never answered: nothing is read and nothing is sent.
  case stall
  /// Closed in good order (FIN) as soon as it is accepted.
  case closeOnAccept
  /// Reset (RST) as soon as it is accepted.
  case resetOnAccept
  /// Closed in good order after the first bytes of the client, its ClientHello.
  case closeInHandshake
  /// Answers the first bytes of the client with a plain HTTP response, then closes.
  case plainText
  /// Answers the first bytes of the client with a fatal alert of TLS (RFC 8446 §6), such as 40 for
  /// `handshake_failure`, then closes.
  case alert(UInt8)
}
