import CCurl
import HTTPWire

// libcurl 7.88 can leave a stream of HTTP/2 open for ever that the server has reset, or whose connection it has given up
// because of what the server sent. The frames tell; see Documentation/Libcurl.md.
extension LoopCore {
  /// libcurl delivers what it holds of a stream that is over, part by part. After so many turns without any, it has forgotten
  /// the stream.
  private static let mostIdleTurns = 3

  /// Ends transfers whose streams are over, if libcurl does not.
  func endBroken() {
    hasBrokenStreams = false
    for transfer in Array(transfers.values) where transfers[transfer.ticket] === transfer {
      // While libcurl connects for the next attempt, the stream is that of the attempt before.
      guard transfer.phase.isAdded, !transfer.attempts.isConnecting,
        let connection = transfer.attempts.connection, let stream = transfer.attempts.stream,
        connection.hasFailed || connection.isBroken(stream)
      else { continue }
      guard connection.hasFailed || transfer.hasForgottenStream(after: Self.mostIdleTurns) else {
        hasBrokenStreams = true
        continue
      }
      endBroken(transfer, connection, stream)
    }
  }

  /// Starts what new connections with few streams have room for.
  func startWithinLimits() {
    let connections = limitedConnections
    limitedConnections.removeAll()
    for (key, connection) in connections { startAdmitted(hostQueues.limited(key, by: connection)) }
  }

  private func endBroken(_ transfer: Transfer, _ connection: ConnectionRecord, _ stream: StreamRecord) {
    guard !transfer.mayRepeat(after: CURLE_HTTP2) else { return sendAgain(transfer) }
    let failure =
      transfer.abortReason?.failure
      ?? transfer.brokenStream(connection.hasFailed, resetCode: stream.resetCode)
    end(
      transfer,
      .failure(
        failure.with(metrics: transfer.metricsSoFar()).with(addition: transfer.doubt(about: failure.kind))))
  }
}

extension Transfer {
  /// Counts turns in which nothing came. A transfer that is held back by its reader waits as long as it takes.
  fileprivate func hasForgottenStream(after limit: Int) -> Bool {
    guard flow == .moving else { return false }
    attempts.idleTurns = timing.lastActivity == loop.now ? 0 : attempts.idleTurns + 1
    loop.hasStarted = true
    return attempts.idleTurns > limit
  }
}
