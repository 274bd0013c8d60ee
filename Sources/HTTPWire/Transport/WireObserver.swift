/// Observes the bytes of one request on its connection, decrypted: of each hop, and of each attempt to send it.
///
/// The transport calls the methods of an observer on its own thread. The methods must return at once, because other
/// transfers wait until it returns.
package protocol WireObserver: AnyObject, Sendable {
  /// Called when bytes were sent or received. The buffer is valid during the call only.
  func bytesMoved(_ part: WirePart, _ bytes: UnsafeRawBufferPointer)
  /// Called when the transfer has ended.
  func wireEnded()
}

/// A part of an exchange on a connection.
package enum WirePart: Sendable, CaseIterable {
  /// The head of the request, in one or several pieces. One of HTTP/2 is shown as lines of HTTP/1.1.
  case requestHead
  case requestBody
  /// A line of the head of a response, informational ones included, or a trailer.
  case responseHead
  /// Bytes of the response's body as they arrived: encoded, and with the framing of chunks.
  case responseBody
}

/// Passes the bytes of one request to several observers.
package final class WireObservers: WireObserver {
  private let observers: [any WireObserver]

  package init(_ observers: [any WireObserver]) {
    self.observers = observers
  }

  package func bytesMoved(_ part: WirePart, _ bytes: UnsafeRawBufferPointer) {
    for observer in observers { observer.bytesMoved(part, bytes) }
  }

  package func wireEnded() {
    for observer in observers { observer.wireEnded() }
  }
}
