import COpenSSL
import HTTPWire

/// A connection that is secure below what uses it: the one to a proxy over TLS. Belongs to the loop's thread.
final class TLSPipe: Pipe {
  private let socket: Socket
  private let tls: TLSConnection

  /// Takes ownership of a connection after its handshake.
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

  var isDrained: Bool { tls.isDrained }

  func read(into room: UnsafeMutableRawBufferPointer) -> PipeStep { tls.read(into: room) }
  func write(_ bytes: UnsafeRawBufferPointer) -> PipeStep { tls.write(bytes) }

  /// Sends `close_notify`. Without it, a proxy takes the end for a broken connection.
  func shutWriting() -> PipeStep { tls.shut() }

  func close() {
    // Without the alert, OpenSSL gives up the session, too.
    if descriptor >= 0 { _ = tls.shut() }
    socket.close()
  }
}

/// The reads and writes of OpenSSL on a connection. A read that has emptied the socket shows it, so that OpenSSL need
/// not ask the system once more.
enum PipeBIO {
  /// Attaches a session to the connection of `tls`. Returns false if memory is short.
  static func attach(_ session: OpaquePointer, to tls: TLSConnection) -> Bool {
    guard let kind, let pipe = BIO_new(kind) else { return false }
    BIO_set_data(pipe, Unmanaged.passUnretained(tls).toOpaque())
    BIO_set_init(pipe, 1)
    // The session owns it.
    SSL_set_bio(session, pipe, pipe)
    return true
  }

  /// The functions that OpenSSL calls. `nonisolated(unsafe)` because it is a pointer. The table that it points to never
  /// changes.
  private nonisolated(unsafe) static let kind: OpaquePointer? = {
    let kind = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "connection of a stream")
    guard let kind, BIO_meth_set_read(kind, read) == 1, BIO_meth_set_write(kind, write) == 1,
      BIO_meth_set_ctrl(kind, control) == 1
    else { return nil }
    return kind
  }()

  private static let read: @convention(c) (OpaquePointer?, UnsafeMutablePointer<CChar>?, Int32) -> Int32 = {
    pipe, room, count in
    step(of: pipe) {
      $0.connection.read(into: UnsafeMutableRawBufferPointer(start: room, count: Int(max(0, count))))
    }
  }

  private static let write: @convention(c) (OpaquePointer?, UnsafePointer<CChar>?, Int32) -> Int32 = {
    pipe, bytes, count in
    step(of: pipe) { tls in
      tls.keepViolation()
      return tls.connection.write(UnsafeRawBufferPointer(start: bytes, count: Int(max(0, count))))
    }
  }

  /// Accepts a flush, which has nothing to do, and the question for the end of the connection. No other command.
  private static let control: @convention(c) (OpaquePointer?, Int32, Int, UnsafeMutableRawPointer?) -> Int = {
    pipe, command, _, _ in
    switch command {
    case BIO_CTRL_FLUSH: return 1
    case BIO_CTRL_EOF:
      guard let reference = pipe.flatMap({ BIO_get_data($0) }) else { return 0 }
      return Unmanaged<TLSConnection>.fromOpaque(reference)._withUnsafeGuaranteedRef { tls in
        if case .ended = tls.pipeEnd { 1 } else { 0 }
      }
    default: return 0
    }
  }

  private static func step(of pipe: OpaquePointer?, _ move: (TLSConnection) -> PipeStep) -> Int32 {
    guard let pipe, let reference = BIO_get_data(pipe) else { return -1 }
    openssl_waits_for_nothing(pipe)
    return Unmanaged<TLSConnection>.fromOpaque(reference)._withUnsafeGuaranteedRef { tls in
      guard !tls.renegotiation.isCut else { return -1 }
      switch move(tls) {
      case .moved(let count): return Int32(clamping: count)
      case .waitsToRead: openssl_waits_to_read(pipe)
      case .waitsToWrite: openssl_waits_to_write(pipe)
      case .failed(let failure): tls.pipeEnd = .failed(failure)
      case .ended:
        tls.pipeEnd = .ended
        return 0
      case .undecided, .asksForIdentity: break
      }
      return -1
    }
  }
}
