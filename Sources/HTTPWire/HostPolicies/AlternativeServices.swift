/// The alternative services of servers (RFC 7838), from their `Alt-Svc` fields.
///
/// A session whose options have this object connects to an alternative service instead of the host and port of the URL.
/// Nothing else changes: the URL still determines the `Host` field, the name in TLS and in the certificate, evaluators,
/// pins, connection limits, cookies and cache. The field `Alt-Used` names the service to the server.
///
/// ```swift
/// var options = TransportOptions()
/// options.alternativeServices = AlternativeServices()
/// let session = Session(transportOptions: options)
/// ```
///
/// - Only services that use HTTP/2 over TLS are used. Only fields that came over https count, unless a
///   delegate or a `DisabledTrustEvaluator` accepted the server, or its name was not verified (`validateHost: false`).
/// - A service fails if it cannot be connected to, does not speak HTTP/2, has no valid certificate for the host,
///   refuses requests without processing them (RFC 9113 §8.7), or answers 421. A service that failed is not used for
///   ten minutes, and the request goes to the host itself.
/// - Requests go to the host itself with a proxy, a Unix-domain socket, a host override, or slow evaluators or
///   delegates. Requests with a body that can be read only once, or whose length is unknown, go to the host itself,
///   too.
/// - A port below 1024 is used only if it is 443 or equals the port of the URL. Other ports are used only for URLs with
///   a port of at least 1024 (RFC 7838 §9.1).
public final class AlternativeServices: Sendable, Hashable {
  private let storage: any HostPolicyStorage<AlternativeTable>

  package init(storage: some HostPolicyStorage<AlternativeTable>) { self.storage = storage }

  /// The error of reading the file, or of its last write; `nil` without an error, and without a file.
  public var storageError: HostStorageError? { storage.error }

  /// Removes the services of a host on all of its ports.
  public func forget(_ host: String) {
    guard let host = Authority(host.contains(":") ? "[\(host)]" : host)?.host else { return }
    storage.change { table, _ in table.forget(host: host) }
  }

  /// Removes all services, for example after a change of the network.
  public func forgetAll() { storage.change { table, _ in table.forgetAll() } }

  /// Writes the file and waits for it, as `StrictTransportSecurity.save()` does.
  public func save() throws(HostStorageError) { try storage.save() }

  /// The status of a response whose server is not responsible for the origin (RFC 9110 §15.5.20).
  package static let misdirected = 421

  /// Notes the fields of a response from an https origin, which came over verified TLS. A response with
  /// ``misdirected`` is ignored (RFC 7838 §6).
  package func note(_ head: ResponseHead, of origin: Origin) {
    let values = head.block.values(of: "Alt-Svc")
    guard origin.scheme == "https", !values.isEmpty, head.status != Self.misdirected,
      let field = AlternativeField(values.joined(separator: ","))
    else { return }
    let age = head.block.age
    storage.change { $0.note(field, of: origin, age: age, now: $1) }
  }

  /// Returns the service to connect to; `nil` is the origin itself.
  package func choice(for origin: Origin) -> AlternativeService? {
    guard origin.scheme == "https" else { return nil }
    return storage.read { $0.choice(for: origin, now: $1) }
  }

  package func failed(_ service: AlternativeService, of origin: Origin) {
    storage.change { table, now in
      table.failed(service, of: origin, now: now)
      return false
    }
  }

  /// Whether two objects are identical.
  public static func == (left: AlternativeServices, right: AlternativeServices) -> Bool { left === right }

  /// Hashes the identity.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// Another host and port at which an origin can be reached by HTTP/2 over TLS (RFC 7838).
package struct AlternativeService: Hashable, Sendable {
  /// ASCII, lower case, without brackets.
  package let host: String
  package let port: Int

  package init(host: String, port: Int) {
    self.host = host
    self.port = port
  }

  /// The value of `Alt-Used` (RFC 7838 §5).
  package var text: String {
    let name = host.contains(":") ? "[\(host)]" : host
    return port == 443 ? name : "\(name):\(port)"
  }

  /// Whether an origin may name this service. A port below 1024 must be 443 or the origin's own. Every user of the
  /// machine can open other ports. So other ports are allowed only for an origin with a port of at least 1024 (RFC
  /// 7838 §9.1).
  package func isFit(for origin: Origin) -> Bool {
    port == origin.port || port == 443 || (port >= 1024 && origin.port >= 1024)
  }
}

extension TransportOptions.HostOverride {
  /// Whether connections to an origin go elsewhere by this override.
  package func leads(_ origin: Origin) -> Bool {
    FieldName.equal(host, origin.host) && (port ?? origin.port) == origin.port
  }
}

/// An `Alt-Svc` field, as far as it is about HTTP/2 over TLS (RFC 7838 §3).
package enum AlternativeField: Equatable, Sendable {
  /// All earlier announcements are withdrawn.
  case clear
  /// These services replace all earlier ones; there may be none.
  case services([Offer])

  package struct Offer: Equatable, Sendable {
    /// `nil` is the host of the origin.
    package var host: String?
    package var port: Int
    /// In seconds.
    package var maxAge: Int64 = 86_400
    /// Whether it outlasts a change of the network.
    package var persists = false
  }

  /// Parses a value; `nil` for one that is not by the grammar. Unknown parameters are ignored.
  package init?(_ value: String) {
    var scanner = StrictScanner(value)
    var offers: [Offer] = []
    var count = 0
    while true {
      scanner.skipSpace()
      if let name = scanner.token() {
        scanner.skipSpace()
        if name == "clear", count == 0, scanner.isAtEnd {
          self = .clear
          return
        }
        count += 1
        guard scanner.take(UInt8(ascii: "=")), let authority = scanner.quotedString(),
          let offer = Self.offer(authority, &scanner)
        else { return nil }
        if name == "h2" { offers.append(offer) }
      }
      scanner.skipSpace()
      if scanner.isAtEnd { break }
      guard scanner.take(UInt8(ascii: ",")) else { return nil }
    }
    guard count > 0 else { return nil }
    self = .services(offers)
  }

  private static func offer(_ authority: String, _ scanner: inout StrictScanner) -> Offer? {
    guard let colon = authority.lastIndex(of: ":"),
      let port = DecimalNumber.port(authority[authority.index(after: colon)...])
    else { return nil }
    var offer = Offer(host: nil, port: port)
    if colon != authority.startIndex {
      guard let parsed = Authority(authority), parsed.userInfo == nil, parsed.port == port else { return nil }
      offer.host = parsed.host
    }
    scanner.skipSpace()
    while scanner.take(UInt8(ascii: ";")) {
      scanner.skipSpace()
      guard let name = scanner.token(), scanner.take(UInt8(ascii: "=")), let value = scanner.value() else {
        return nil
      }
      switch name {
      case "ma":
        guard let age = StrictScanner.seconds(value) else { return nil }
        offer.maxAge = age
      case "persist": offer.persists = value == "1"
      default: break
      }
      scanner.skipSpace()
    }
    return offer
  }
}

/// The alternative services of origins, and those that have failed. Times are seconds since 1970.
package struct AlternativeTable: Sendable {
  private struct Entry: Equatable {
    let service: AlternativeService
    let expiry: Int64
    let persists: Bool
    /// The expiry when it was last worth being written down.
    var written: Int64
  }

  private struct Failure: Hashable {
    let origin: Origin
    let service: AlternativeService
  }

  /// The number of seconds for which a service that failed is not tried.
  package static let failureInterval: Int64 = 600
  /// The number of seconds by which one thread may have read the clock earlier than another.
  private static let clockTolerance: Int64 = 60
  /// The most services of one origin.
  package static let mostServices = 8

  /// The most origins that are noted.
  private let limit: Int
  private var entries: [Origin: [Entry]] = [:]
  private var failedUntil: [Failure: Int64] = [:]
  /// The number of origins that were looked at to make room. Tests count them.
  package private(set) var steps = 0

  package init(limit: Int) { self.limit = max(0, limit) }

  /// Returns the service to connect to; `nil` is the origin itself.
  package func choice(for origin: Origin, now: Int64) -> AlternativeService? {
    guard let found = entries[origin] else { return nil }
    return found.first { entry in
      let end = failedUntil[Failure(origin: origin, service: entry.service)]
      return entry.expiry > now && end.map { !Self.isAhead($0, now) } ?? true
    }?.service
  }

  /// Whether the time of a service that failed is not over. An end that is too far away was noted before the clock was
  /// set back, and not by the little that threads overtake each other.
  private static func isAhead(_ end: Int64, _ now: Int64) -> Bool {
    end > now && end <= now.later(by: failureInterval + clockTolerance)
  }

  /// Notes a field of an origin, which came over verified TLS.
  ///
  /// - Parameter age: The age of the response in seconds.
  /// - Returns: Whether the change has to be written to the file. A change of the expiry by less than a hundredth of
  ///   its distance is not, because most servers repeat the field in every response.
  package mutating func note(_ field: AlternativeField, of origin: Origin, age: Int64 = 0, now: Int64) -> Bool
  {
    let old = entries[origin]
    guard case .services(let offers) = field else {
      entries[origin] = nil
      return old?.contains { $0.persists } == true
    }
    let fit = offers.lazy.compactMap { offer -> Entry? in
      let service = AlternativeService(host: offer.host ?? origin.host, port: offer.port)
      guard service != AlternativeService(host: origin.host, port: origin.port), service.isFit(for: origin),
        offer.maxAge > age
      else { return nil }
      let expiry = now.later(by: offer.maxAge - age)
      return Entry(service: service, expiry: expiry, persists: offer.persists, written: expiry)
    }
    var new = Array(fit.prefix(Self.mostServices))
    let isNews = Self.isNews(&new, after: old ?? [], now)
    entries[origin] = new.isEmpty ? nil : new
    if entries.count > limit { makeRoom(now) }
    return isNews
  }

  /// Whether the lines of an origin in the file change noticeably. Otherwise the entries keep the expiries that are
  /// written there.
  private static func isNews(_ new: inout [Entry], after old: [Entry], _ now: Int64) -> Bool {
    let old = old.filter(\.persists)
    let places = new.indices.filter { new[$0].persists }
    guard places.map({ new[$0].service }) == old.map(\.service) else { return true }
    let isClose = zip(places, old).allSatisfy { place, old in
      abs(new[place].expiry - old.written) <= (new[place].expiry - now) / 100
    }
    guard isClose else { return true }
    for (place, old) in zip(places, old) { new[place].written = old.written }
    return false
  }

  /// Removes the origins that have expired. If that is not enough, an eighth of all goes, those that expire first, so
  /// that not each new origin looks at all others.
  private mutating func makeRoom(_ now: Int64) {
    steps += entries.count
    entries = entries.filter { $0.value.contains { $0.expiry > now } }
    guard entries.count > limit else { return }
    let expiries = entries.map { (origin: $0.key, last: $0.value.lazy.map(\.expiry).max() ?? 0) }
    let surplus = entries.count - (limit - limit / 8)
    for first in expiries.sorted(by: { $0.last < $1.last }).prefix(surplus) { entries[first.origin] = nil }
  }

  /// Notes that a service could not be connected to, refuses requests, or does not belong to the origin.
  package mutating func failed(_ service: AlternativeService, of origin: Origin, now: Int64) {
    if failedUntil.count >= max(limit, Self.mostServices) {
      failedUntil = failedUntil.filter { Self.isAhead($0.value, now) }
      if failedUntil.count >= max(limit, Self.mostServices) { failedUntil.removeAll() }
    }
    failedUntil[Failure(origin: origin, service: service)] = now.later(by: Self.failureInterval)
  }

  /// Removes the services of a host on all ports. Returns whether there were any.
  package mutating func forget(host: String) -> Bool {
    let before = entries.count
    entries = entries.filter { $0.key.host != host }
    failedUntil = failedUntil.filter { $0.key.origin.host != host }
    return entries.count != before
  }

  package mutating func forgetAll() -> Bool {
    defer {
      entries.removeAll()
      failedUntil.removeAll()
    }
    return !entries.isEmpty
  }

  package var isEmpty: Bool { entries.isEmpty }
}

extension AlternativeTable: HostPolicyTable {
  package static var title: String { "# alternative-services 1" }

  /// Returns the entries that outlast a change of the network, because the next process may run in another one.
  package func lines(now: Int64) -> [String] {
    entries.flatMap { origin, entries in
      entries.filter { $0.persists && $0.expiry > now }.map { entry in
        "\(origin.host) \(origin.port) \(entry.service.host) \(entry.service.port) \(entry.expiry)"
      }
    }.sorted()
  }

  package mutating func read(_ line: Substring) -> Bool {
    let words = line.split(separator: " ").map(String.init)
    guard words.count == 5, let port = DecimalNumber.port(words[1]),
      let servicePort = DecimalNumber.port(words[3]),
      let expiry = DecimalNumber.whole(words[4]), Self.isHost(words[0]), Self.isHost(words[2])
    else { return false }
    let origin = Origin(scheme: "https", host: words[0], port: port)
    let service = AlternativeService(host: words[2], port: servicePort)
    guard service.isFit(for: origin) else { return false }
    var found = entries[origin] ?? []
    guard found.count < Self.mostServices, !found.isEmpty || entries.count < limit else { return true }
    found.append(Entry(service: service, expiry: expiry, persists: true, written: expiry))
    entries[origin] = found
    return true
  }

  private static func isHost(_ text: String) -> Bool {
    let authority = Authority(text.contains(":") ? "[\(text)]" : text)
    return authority?.host == text && authority?.port == nil
  }
}
