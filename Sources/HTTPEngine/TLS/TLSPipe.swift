import HTTPWire

/// A connection that is secure below what uses it: the one to a proxy over TLS. Belongs to the loop's thread.
final class TLSPipe: Pipe {
  private let socket: Socket
  private let tls: TLSConnection

  /// Takes over a connection whose handshake is over.
  init(_ tls: TLSConnection, over socket: Socket) {
    self.tls = tls
    self.socket = socket
  }

  var descriptor: Int32 { socket.descriptor }
  var owner: (any PipeOwner)? {
    get { socket.owner }
    set { socket.owner = newValue }
  }
  // A record that was begun is completed by the next write.
  var keepsWrites: Bool { true }

  func read(into room: UnsafeMutableRawBufferPointer) -> PipeStep { tls.read(into: room) }
  func write(_ bytes: UnsafeRawBufferPointer) -> PipeStep { tls.write(bytes) }

  /// Does nothing, because TLS has to read on.
  func shutReading() {}

  /// Sends `close_notify`. Without it, a proxy takes the end for a broken connection.
  func shutWriting() -> PipeStep { tls.shut() }

  func close() {
    // Without the alert, OpenSSL gives up the session, too.
    if descriptor >= 0 { _ = tls.shut() }
    socket.close()
  }
}
