/// Decides how many requests to one host may be in libcurl's hands at a time, and which come next.
/// libcurl's own limit costs ten microseconds a request as soon as one waits, and a burst over HTTP/2
/// would open a connection for each.
package struct HostAdmission: Sendable {
  package typealias Ticket = UInt64

  /// The streams that one HTTP/2 connection is trusted with: libcurl's own limit.
  package static var streamsPerConnection: Int { 100 }

  private struct Waiting: Sendable {
    let ticket: Ticket
    let priority: Float
  }

  private let connections: Int
  /// The streams that a connection takes, and how many connections are known to be there, where that is less than usual.
  private var limit: (streams: Int, connections: Int)?
  private var multiplexes: Bool?
  private var capacity: Int
  private var running = 0
  /// By falling priority, first come first within one; entries before `head` have left.
  private var waiting: [Waiting] = []
  private var head = 0

  /// Until a response has told which version of HTTP the host speaks, each connection takes one
  /// request.
  package init(connections: Int) {
    self.connections = connections
    capacity = connections
  }

  package var isIdle: Bool { running == 0 && head == waiting.count }
  package var runningCount: Int { running }
  package var waitingCount: Int { waiting.count - head }

  /// Submits a request. Returns whether it may run now; otherwise it waits.
  package mutating func submitted(_ ticket: Ticket, priority: Float) -> Bool {
    if running < capacity, head == waiting.count {
      running += 1
      return true
    }
    var position = waiting.count
    while position > head, waiting[position - 1].priority < priority { position -= 1 }
    waiting.insert(Waiting(ticket: ticket, priority: priority), at: position)
    return false
  }

  /// Ends a running request. Returns the one that may run in its place.
  package mutating func ended() -> Ticket? {
    running -= 1
    return next()
  }

  /// A waiting request is not wanted any more. Returns false if it was not waiting.
  package mutating func withdrawn(_ ticket: Ticket) -> Bool {
    guard let position = waiting[head...].firstIndex(where: { $0.ticket == ticket }) else { return false }
    waiting.remove(at: position)
    return true
  }

  /// A response has told whether the host's connections carry many requests at a time. Returns the
  /// requests that may run now.
  package mutating func learned(multiplexes: Bool) -> [Ticket] {
    self.multiplexes = multiplexes
    return admitted()
  }

  /// Limits a host that allows fewer streams on a connection than usual. libcurl does not know the limit of a new
  /// connection, and would open streams that the server refuses. Therefore no more requests run than the known
  /// connections and one new one allow.
  ///
  /// - Parameters:
  ///   - streams: The number of concurrent streams of a connection.
  ///   - count: The number of connections.
  /// - Returns: The requests that may run now.
  package mutating func learned(streams: Int, connections count: Int) -> [Ticket] {
    limit = (streams, count)
    return admitted()
  }

  private mutating func admitted() -> [Ticket] {
    capacity = connections
    if multiplexes == true {
      capacity =
        limit.map { min($0.connections + 1, connections) * $0.streams } ?? connections
        * Self.streamsPerConnection
    }
    var admitted: [Ticket] = []
    while let ticket = next() { admitted.append(ticket) }
    return admitted
  }

  /// All that wait, in their order; they wait no more.
  package mutating func drain() -> [Ticket] {
    defer {
      waiting.removeAll()
      head = 0
    }
    return waiting[head...].map(\.ticket)
  }

  private mutating func next() -> Ticket? {
    guard running < capacity, head < waiting.count else { return nil }
    let ticket = waiting[head].ticket
    head += 1
    running += 1
    if head == waiting.count || head > 1024 {
      waiting.removeFirst(head)
      head = 0
    }
    return ticket
  }
}
