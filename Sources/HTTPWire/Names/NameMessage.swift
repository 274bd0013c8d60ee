/// Questions to a name server and its answers, as they go over the wire (RFC 1035 §4, RFC 8484 §4).
package enum NameMessage {
  /// The answer of a server about the addresses of a name.
  package enum Answer: Equatable, Sendable {
    /// The addresses, and for how many seconds they hold; there may be none.
    case addresses([IPAddress], seconds: UInt32)
    /// The name does not exist.
    case noSuchName
    /// The server cannot say; the number is its own.
    case refused(code: UInt8)
  }

  /// Makes the question for the addresses of one family; `nil` when the name is invalid. The number of the question
  /// is 0, so that caches on the way know it again.
  package static func question(_ name: String, _ family: IPAddress.Family) -> [UInt8]? {
    var bytes: [UInt8] = [0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    var text = Substring(name)
    if text.hasSuffix(".") { text.removeLast() }
    guard text.utf8.count <= 253 else { return nil }
    for label in text.split(separator: ".", omittingEmptySubsequences: false) {
      guard (1...63).contains(label.utf8.count) else { return nil }
      bytes.append(UInt8(label.utf8.count))
      bytes += label.utf8.map(FieldName.lowercased)
    }
    return bytes + [0, 0, kind(family), 0, 1]
  }

  /// Returns the answer of `message` to `question`; `nil` if it answers another question.
  package static func answer(_ message: [UInt8], to question: [UInt8], _ family: IPAddress.Family) -> Answer?
  {
    guard message.count >= question.count, message[0] == 0, message[1] == 0, message[2] & 0xF8 == 0x80,
      message[4] == 0, message[5] == 1, isSame(message[12..<question.count], question[12...])
    else { return nil }
    switch message[3] & 0x0F {
    case 0: break
    case 3: return .noSuchName
    case let code: return .refused(code: code)
    }
    var reader = Reader(bytes: message, position: question.count)
    var found = FoundAddresses()
    var seconds = UInt32.max
    for _ in 0..<(Int(message[6]) << 8 | Int(message[7])) {
      guard let record = reader.record() else { return nil }
      // Other records lead from the requested name to the one with the addresses.
      seconds = min(seconds, record.seconds)
      guard record.kind == UInt16(kind(family)), record.isOfInternet,
        let address = IPAddress(family, bytes: Array(record.data))
      else { continue }
      found.add(address)
    }
    return .addresses(found.addresses, seconds: found.addresses.isEmpty ? 0 : seconds)
  }

  private static func kind(_ family: IPAddress.Family) -> UInt8 { family == .v4 ? 1 : 28 }

  private static func isSame(_ left: ArraySlice<UInt8>, _ right: ArraySlice<UInt8>) -> Bool {
    left.elementsEqual(right) { FieldName.lowercased($0) == FieldName.lowercased($1) }
  }

  private struct Record {
    let kind: UInt16
    let isOfInternet: Bool
    let seconds: UInt32
    let data: ArraySlice<UInt8>
  }

  private struct Reader {
    let bytes: [UInt8]
    var position: Int

    /// Skips the name of a record, which the question contains.
    private mutating func skipName() -> Bool {
      while position < bytes.count {
        let length = Int(bytes[position])
        if length >= 0xC0 {
          position += 2
          return position <= bytes.count
        }
        position += 1 + length
        if length == 0 { return true }
      }
      return false
    }

    mutating func record() -> Record? {
      guard skipName(), position + 10 <= bytes.count else { return nil }
      func number(_ offset: Int, _ count: Int) -> UInt32 {
        bytes[(position + offset)..<(position + offset + count)].reduce(0) { $0 << 8 | UInt32($1) }
      }
      let start = position + 10
      let end = start + Int(number(8, 2))
      guard end <= bytes.count else { return nil }
      // The topmost bit of a time means none (RFC 2181 §8).
      let seconds = number(4, 4) > UInt32(Int32.max) ? 0 : number(4, 4)
      let record = Record(
        kind: UInt16(number(0, 2)), isOfInternet: number(2, 2) == 1, seconds: seconds,
        data: bytes[start..<end])
      position = end
      return record
    }
  }
}

/// The addresses of a host, found out before its request is sent.
package struct KnownAddresses: Equatable, Sendable {
  package let host: String
  package let port: Int
  package let addresses: [IPAddress]
  /// The time that it took to find them, which counts as a part of connecting.
  package var searchTime: Duration

  package init(host: String, port: Int, addresses: [IPAddress], searchTime: Duration = .zero) {
    self.searchTime = searchTime
    self.host = host
    self.port = port
    self.addresses = addresses
  }
}

/// The addresses of a name, in the order in which they were found.
package struct FoundAddresses: Sendable {
  /// The largest number of addresses of one kind. Connecting tries fewer.
  package static var most: Int { 32 }

  /// The addresses that are counted together. If private ones are refused, enough others are left.
  private struct Kind: Hashable {
    let family: IPAddress.Family
    let isPublic: Bool
  }

  package private(set) var addresses: [IPAddress] = []
  private var seen: Set<IPAddress> = []
  private var counts: [Kind: Int] = [:]

  package init() {}

  /// Adds an address, unless it is there already, or there are enough of its kind.
  package mutating func add(_ address: IPAddress) {
    let kind = Kind(family: address.family, isPublic: address.isPublic)
    guard counts[kind, default: 0] < Self.most, seen.insert(address).inserted else { return }
    counts[kind, default: 0] += 1
    addresses.append(address)
  }
}
