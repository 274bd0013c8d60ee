/// An `Alt-Svc` field, as far as it is about HTTP/2 over TLS (RFC 7838 §3).
package enum AlternativeField: Equatable, Sendable {
  /// Whatever was said before is taken back.
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
      let port = Int(authority[authority.index(after: colon)...]), (1...65_535).contains(port)
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
