import HTTPWire

/// An open connection that carries exchanges. Belongs to the loop's thread, and lasts until it is closed.
///
/// A connection and the exchanges on it refer to each other. The exchange lets go when it ends, so that an idle
/// connection keeps nothing of a request.
protocol Connection: AnyObject {
  var facts: ConnectionFacts { get }
  /// Whether the connection carries several exchanges at a time.
  var multiplexes: Bool { get }
  /// The time at which the connection became idle.
  var idleSince: UInt64 { get }
  /// The time until which the idle connection is used again.
  var idleLimit: UInt64 { get }

  /// Continues to move the bytes of an exchange that had to wait.
  func goOn(with exchange: Exchange)
  /// Sends the content of a request whose server did not answer `Expect: 100-continue` in time.
  func continueExpired(_ exchange: Exchange)
  /// Lets go of an exchange that ends before its response is complete.
  func abandon(_ exchange: Exchange)
  /// Does what an earlier turn of the loop has left.
  func continueTurn()
  func close()
}
