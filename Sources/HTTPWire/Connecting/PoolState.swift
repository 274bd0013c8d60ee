/// The connections to one host as far as a waiting request is concerned, and how it gets one of them. Pure: the pool
/// owns the connections, keeps the counts, and asks again after each change while requests are waiting.
package struct PoolState: Sendable, Equatable {
  package enum Step: Sendable, Equatable {
    /// Use the idle connection that was used last.
    case useIdle
    /// Open a stream on a connection of HTTP/2.
    case useStream
    case connect
    /// Close the idle connection that has waited longest among those that cannot carry the request, and connect.
    case closeOtherAndConnect
    case wait
  }

  // Connections with the key of the request.
  /// The number of connections that can carry the request at once.
  package var idle = 0
  /// Whether a connection of HTTP/2 can open a stream.
  package var hasStream = false
  /// The number of connections that are being made, and of those whose response has ended in this turn of the loop.
  package var connecting = 0
  /// The number of other requests that wait for one of the ``connecting``, and need one each.
  package var waiting = 0
  /// Whether the connections carry many requests at a time; `nil` until one was made.
  package var multiplexes: Bool?

  // Connections to the whole host, with any key.
  /// The number of the connections that count for the limit, with those that are being made.
  package var open = 0
  /// The number of idle connections that cannot carry the request: those with other keys, or with HTTP/2 for a request
  /// that needs HTTP/1.1.
  package var idleElsewhere = 0
  /// The largest number of connections.
  package var limit: Int

  package init(limit: Int) { self.limit = limit }

  /// Returns how the request gets a connection.
  ///
  /// - Parameter mayMultiplex: Whether the request may be sent over HTTP/2.
  package func step(mayMultiplex: Bool) -> Step {
    if mayMultiplex, hasStream { return .useStream }
    if idle > 0 { return .useIdle }
    // A burst of requests waits for the first connection, because one may carry them all.
    if mayMultiplex, multiplexes != false, connecting > 0 { return .wait }
    if waiting < connecting { return .wait }
    if open < limit { return .connect }
    return idleElsewhere > 0 ? .closeOtherAndConnect : .wait
  }
}
