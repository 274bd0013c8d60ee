/// The exchanges that wait for a connection of one pool. Adding one, removing one and finding the next one take as
/// long with ten thousand of them as with one.
struct WaitingExchanges {
  /// The kind of connection that an exchange can use. It does not change while the exchange waits.
  struct Need: Hashable, CaseIterable {
    /// Whether HTTP/2 may carry the exchange.
    var mayMultiplex: Bool
    /// Whether the connection must not have carried another exchange.
    var isNew: Bool

    static let allCases = [
      Need(mayMultiplex: true, isNew: false), Need(mayMultiplex: false, isNew: false),
      Need(mayMultiplex: true, isNew: true), Need(mayMultiplex: false, isNew: true),
    ]

    fileprivate var index: Int { (mayMultiplex ? 0 : 1) + (isNew ? 2 : 0) }
  }

  /// An exchange in its lane, which is a linked list.
  private struct Link {
    let exchange: Exchange
    let need: Need
    /// The position among all exchanges of the pool.
    let order: UInt64
    var previous: UInt64?
    var next: UInt64?
  }

  /// The exchanges with one need, by their tickets.
  private struct Lane {
    var first: UInt64?
    var last: UInt64?
    /// The first exchange without a connection attempt; `nil` if each has one.
    var nextToConnect: UInt64?
    var count = 0
  }

  private var links: [UInt64: Link] = [:]
  private var lanes = Array(repeating: Lane(), count: Need.allCases.count)
  /// The exchanges that are suspended, and would not send anything.
  private var suspended: [UInt64: Exchange] = [:]
  private var lastOrder: UInt64 = 1 << 32
  private var firstOrder: UInt64 = 1 << 32

  /// The number of exchanges, with those that are suspended.
  var count: Int { links.count + suspended.count }
  var isEmpty: Bool { links.isEmpty && suspended.isEmpty }
  /// Whether an exchange would use a connection at once.
  var hasActive: Bool { !links.isEmpty }

  /// Whether an exchange waits, and is not suspended.
  func isActive(_ ticket: UInt64) -> Bool { links[ticket] != nil }

  /// Counts the exchanges with one need that are not suspended.
  func count(of need: Need) -> Int { lanes[need.index].count }

  /// The needs of the exchanges, in the order of the first exchange with each.
  var needs: [Need] {
    var found: [(need: Need, order: UInt64)] = []
    for need in Need.allCases {
      guard let first = lanes[need.index].first, let link = links[first] else { continue }
      found.append((need, link.order))
    }
    return found.count < 2 ? found.map(\.need) : found.sorted { $0.order < $1.order }.map(\.need)
  }

  /// Adds an exchange after the others.
  mutating func append(_ exchange: Exchange, _ need: Need) {
    lastOrder += 1
    let ticket = exchange.ticket
    let last = lanes[need.index].last
    links[ticket] = Link(exchange: exchange, need: need, order: lastOrder, previous: last)
    if let last { links[last]?.next = ticket } else { lanes[need.index].first = ticket }
    lanes[need.index].last = ticket
    lanes[need.index].count += 1
    if lanes[need.index].nextToConnect == nil { lanes[need.index].nextToConnect = ticket }
  }

  /// Puts an exchange back before the others.
  mutating func prepend(_ exchange: Exchange, _ need: Need) {
    firstOrder -= 1
    let ticket = exchange.ticket
    let first = lanes[need.index].first
    links[ticket] = Link(exchange: exchange, need: need, order: firstOrder, next: first)
    if let first { links[first]?.previous = ticket } else { lanes[need.index].last = ticket }
    lanes[need.index].first = ticket
    lanes[need.index].count += 1
    lanes[need.index].nextToConnect = ticket
  }

  /// Removes an exchange. Returns `nil` if it does not wait.
  @discardableResult
  mutating func remove(_ ticket: UInt64) -> Exchange? {
    guard let link = links.removeValue(forKey: ticket) else { return suspended.removeValue(forKey: ticket) }
    let lane = link.need.index
    if let previous = link.previous {
      links[previous]?.next = link.next
    } else {
      lanes[lane].first = link.next
    }
    if let next = link.next {
      links[next]?.previous = link.previous
    } else {
      lanes[lane].last = link.previous
    }
    if lanes[lane].nextToConnect == ticket { lanes[lane].nextToConnect = link.next }
    lanes[lane].count -= 1
    return link.exchange
  }

  /// Removes and returns the first exchange with a need.
  mutating func takeFirst(_ need: Need) -> Exchange? { lanes[need.index].first.flatMap { remove($0) } }

  /// Returns the exchange for which the next connection is begun: the first one without its own connection attempt. The
  /// exchange keeps waiting.
  mutating func nextToConnect(_ need: Need) -> Exchange? {
    // The connections that were begun for them went to others.
    let ticket = lanes[need.index].nextToConnect ?? lanes[need.index].first
    guard let link = ticket.flatMap({ links[$0] }) else { return nil }
    lanes[need.index].nextToConnect = link.next
    return link.exchange
  }

  /// Adds an exchange that does not get a connection until it is resumed; it then comes after the others.
  mutating func suspend(_ exchange: Exchange) { suspended[exchange.ticket] = exchange }

  /// Returns whether the exchange was set aside. It is not any more.
  mutating func resume(_ exchange: Exchange) -> Bool { suspended.removeValue(forKey: exchange.ticket) != nil }
}
