import CCurl
import HTTPWire

// libcurl 7.88 can leave a stream of HTTP/2 open forever although the server reset it. libcurl can also do so after
// it gave up the connection because of a protocol error. The frames show such streams; see Documentation/Libcurl.md.
extension LoopCore {
  /// The number of turns without bytes after which libcurl has forgotten a stream that is over. Before, it delivers the
  /// buffered bytes of the stream part by part.
  private static let mostIdleTurns = 3

  /// Ends transfers whose streams are over although libcurl does not end them.
  func endBroken() {
    hasBrokenStreams = false
    for transfer in Array(transfers.values) where transfers[transfer.ticket] === transfer {
      // While libcurl connects for the next attempt, the stream still belongs to the previous attempt.
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

  /// Starts the transfers for which new connections with a limit of streams have room.
  func startWithinLimits() {
    let connections = limitedConnections
    limitedConnections.removeAll()
    for (key, connection) in connections {
      startAdmitted(hostQueues.noteStreamLimit(of: key, connection, now))
    }
  }

  private func endBroken(_ transfer: Transfer, _ connection: ConnectionRecord, _ stream: StreamRecord) {
    guard !transfer.lacksDroppedBodyOnly else { return end(transfer, transfer.outcome(CURLE_HTTP2)) }
    guard !transfer.mayRepeat(after: CURLE_HTTP2) else { return sendAgain(transfer) }
    let failure =
      transfer.abortReason?.failure
      ?? transfer.brokenStream(connection.hasFailed, resetCode: stream.resetCode)
    end(
      transfer,
      .failure(
        failure.with(metrics: transfer.metricsSoFar()).with(addition: transfer.warning(for: failure.kind))))
  }
}

extension Transfer {
  /// Counts turns without bytes. A transfer whose flow is stopped is not counted, because it waits for its reader.
  fileprivate func hasForgottenStream(after limit: Int) -> Bool {
    guard flow == .moving else { return false }
    attempts.idleTurns = timing.lastActivity == loop.now ? 0 : attempts.idleTurns + 1
    loop.hasStarted = true
    return attempts.idleTurns > limit
  }
}
