/// The alternative services of origins, and those that have failed. Times are seconds since 1970.
package struct AlternativeTable: Sendable {
  private struct Entry: Equatable {
    let service: AlternativeService
    let expiry: Int64
    let persists: Bool
  }

  private struct Failure: Hashable {
    let origin: Origin
    let service: AlternativeService
  }

  /// The number of seconds for which a service that failed is not tried.
  package static let failureInterval: Int64 = 600
  /// The most services of one origin.
  package static let mostServices = 8

  /// The most origins that are noted.
  private let limit: Int
  private var entries: [Origin: [Entry]] = [:]
  private var failedUntil: [Failure: Int64] = [:]

  package init(limit: Int) { self.limit = max(0, limit) }

  /// Returns the service to connect to; `nil` is the origin itself.
  package func choice(for origin: Origin, now: Int64) -> AlternativeService? {
    guard let found = entries[origin] else { return nil }
    return found.first { entry in
      entry.expiry > now
        && failedUntil[Failure(origin: origin, service: entry.service)].map { $0 <= now } ?? true
    }?.service
  }

  /// Notes a field of an origin, which came over verified TLS.
  ///
  /// - Parameter age: The age of the response in seconds.
  /// - Returns: Whether the change has to be written to the file.
  package mutating func note(_ field: AlternativeField, of origin: Origin, age: Int64 = 0, now: Int64) -> Bool
  {
    let old = entries[origin]
    guard case .services(let offers) = field else {
      entries[origin] = nil
      return old?.contains { $0.persists } == true
    }
    let fit = offers.compactMap { offer -> Entry? in
      let service = AlternativeService(host: offer.host ?? origin.host, port: offer.port)
      guard service != AlternativeService(host: origin.host, port: origin.port), service.isFit(for: origin),
        offer.maxAge > age
      else { return nil }
      return Entry(service: service, expiry: now.later(by: offer.maxAge - age), persists: offer.persists)
    }
    entries[origin] = fit.isEmpty ? nil : Array(fit.prefix(Self.mostServices))
    if entries.count > limit { makeRoom(now) }
    func services(_ entries: [Entry]?) -> [AlternativeService] {
      (entries ?? []).filter(\.persists).map(\.service)
    }
    return services(old) != services(fit)
  }

  private mutating func makeRoom(_ now: Int64) {
    entries = entries.filter { $0.value.contains { $0.expiry > now } }
    while entries.count > limit,
      let first = entries.min(by: { $0.value.map(\.expiry).max() ?? 0 < $1.value.map(\.expiry).max() ?? 0 })
    {
      entries[first.key] = nil
    }
  }

  /// Notes that a service could not be connected to, or does not belong to the origin.
  package mutating func failed(_ service: AlternativeService, of origin: Origin, now: Int64) {
    if failedUntil.count >= max(limit, Self.mostServices) {
      failedUntil = failedUntil.filter { $0.value > now }
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
    guard words.count == 5, let port = Self.port(words[1]), let servicePort = Self.port(words[3]),
      let expiry = Int64(words[4]), expiry >= 0, Self.isHost(words[0]), Self.isHost(words[2])
    else { return false }
    let origin = Origin(scheme: "https", host: words[0], port: port)
    let service = AlternativeService(host: words[2], port: servicePort)
    guard service.isFit(for: origin) else { return false }
    var found = entries[origin] ?? []
    guard found.count < Self.mostServices, !found.isEmpty || entries.count < limit else { return true }
    found.append(Entry(service: service, expiry: expiry, persists: true))
    entries[origin] = found
    return true
  }

  private static func port(_ text: String) -> Int? {
    Int(text).flatMap { (1...65_535).contains($0) ? $0 : nil }
  }

  private static func isHost(_ text: String) -> Bool {
    let authority = Authority(text.contains(":") ? "[\(text)]" : text)
    return authority?.host == text && authority?.port == nil
  }
}
