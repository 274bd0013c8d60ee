import HTTPSystem
import HTTPWire

/// The result of an attempt to move bytes without waiting.
enum PipeStep {
  case moved(Int)
  /// The wait until the socket can be read; until then nothing can be done.
  case waitsToRead
  /// The wait until the socket can be written; until then nothing can be done.
  case waitsToWrite
  /// The peer sends no more bytes.
  case ended
  case failed(TransportFailure)
  /// The watcher has to evaluate the server first.
  case undecided(PresentedChain)
  /// The server asks for a client certificate, and the watcher chooses it.
  case asksForIdentity
}

/// A connection as its user sees it: a socket, or a tunnel that is secure itself. Belongs to the loop's thread, and
/// lasts until ``close()``.
protocol Pipe: AnyObject {
  var descriptor: Int32 { get }
  /// The user of the connection, called when bytes may move.
  var owner: (any PipeOwner)? { get set }
  /// Whether a write that has to wait must be repeated with the same bytes.
  var keepsWrites: Bool { get }

  func read(into room: UnsafeMutableRawBufferPointer) -> PipeStep
  func write(_ bytes: UnsafeRawBufferPointer) -> PipeStep
  func shutReading()
  /// Ends writing. Returns `.moved` if the peer will learn of it.
  func shutWriting() -> PipeStep
  func close()
}

/// The user of a connection, called when bytes may move.
protocol PipeOwner: AnyObject {
  func pipeIsReady()
}
