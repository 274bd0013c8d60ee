/// The authority of a URL: `user:password@host:port` (RFC 3986 §3.2), parsed and validated.
package struct Authority: Equatable, Sendable {
  /// The text before the `@`, as received; `nil` without one.
  package let userInfo: String?
  /// ASCII, lower case, without the brackets of an IPv6 address. Names in other alphabets are encoded
  /// (RFC 3492), percent-encoding is undone. The zone of an address stays as it is, because it names an interface.
  package let host: String
  package let isIPv6: Bool
  /// `nil` when none is named, or an empty one.
  package let port: Int?

  /// The most bytes of a host (RFC 3986 §3.2.2). Some decisions look at each of its parent domains.
  package static let longestHost = 255

  /// Parses an authority; `nil` if the host is missing, invalid or too long, or if the port is not a number from 0 to
  /// 65535.
  package init?(_ text: String) {
    self.init(bytes: Array(text.utf8)[...])
  }

  init?(bytes: ArraySlice<UInt8>) {
    var rest = bytes
    if let at = rest.lastIndex(of: UInt8(ascii: "@")) {
      userInfo = String(decoding: rest[..<at], as: UTF8.self)
      rest = rest[(at + 1)...]
    } else {
      userInfo = nil
    }
    if rest.first == UInt8(ascii: "[") {
      guard let end = rest.firstIndex(of: UInt8(ascii: "]")),
        let address = Self.address(rest[(rest.startIndex + 1)..<end])
      else { return nil }
      host = address
      isIPv6 = true
      rest = rest[(end + 1)...]
    } else {
      let end = rest.firstIndex(of: UInt8(ascii: ":")) ?? rest.endIndex
      guard let name = Self.name(rest[..<end]) else { return nil }
      host = name
      isIPv6 = false
      rest = rest[end...]
    }
    guard host.utf8.count <= Self.longestHost, rest.isEmpty || rest.first == UInt8(ascii: ":"),
      let port = Self.port(rest.dropFirst())
    else { return nil }
    self.port = port
  }

  /// The authority, with its host in the form that is sent.
  package var text: String {
    (userInfo.map { $0 + "@" } ?? "") + (isIPv6 ? "[\(host)]" : host) + (port.map { ":\($0)" } ?? "")
  }

  /// Parses a port. An outer `nil` is an invalid port, an inner one a port that is not named.
  private static func port(_ bytes: ArraySlice<UInt8>) -> Int?? {
    guard !bytes.isEmpty else { return .some(nil) }
    var value = 0
    for byte in bytes {
      guard (0x30...0x39).contains(byte) else { return nil }
      value = value * 10 + Int(byte - 0x30)
      guard value <= 65535 else { return nil }
    }
    return value
  }

  /// Returns the text of an IPv6 address, with a zone perhaps (`%25eth0`, RFC 6874). Only the form of the address is
  /// checked.
  private static func address(_ bytes: ArraySlice<UInt8>) -> String? {
    let zone = bytes.firstIndex(of: UInt8(ascii: "%")) ?? bytes.endIndex
    var colons = 0
    for byte in bytes[..<zone] {
      switch FieldName.lowercased(byte) {
      case UInt8(ascii: ":"): colons += 1
      case 0x30...0x39, UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "."): break
      default: return nil
      }
    }
    // Two of eight are next to each other, at the beginning or the end.
    let ends = bytes[..<zone].starts(with: "::".utf8) || bytes[..<zone].suffix(2).elementsEqual("::".utf8)
    guard (2...7).contains(colons) || colons == 8 && ends else { return nil }
    if zone < bytes.endIndex {
      let name = bytes[zone...].dropFirst(3)
      guard bytes[zone...].starts(with: "%25".utf8), !name.isEmpty, name.allSatisfy(isUnreserved) else {
        return nil
      }
    }
    return String(decoding: bytes[..<zone].map(FieldName.lowercased) + bytes[zone...], as: UTF8.self)
  }

  private static func name(_ bytes: ArraySlice<UInt8>) -> String? {
    guard !bytes.isEmpty else { return nil }
    if bytes.allSatisfy(isUnreserved) {
      return String(decoding: bytes.map(FieldName.lowercased), as: UTF8.self)
    }
    guard let plain = percentDecoded(bytes), let name = InternationalName.ascii(plain), !name.isEmpty,
      name.utf8.allSatisfy({ isUnreserved($0) || subDelimiters.contains($0) })
    else { return nil }
    return name
  }

  private static let subDelimiters = Array("!$&'()*+,;=".utf8)

  private static func isUnreserved(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x61...0x7A, 0x41...0x5A, 0x30...0x39: true
    case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"): true
    default: false
    }
  }

  /// Decodes percent-encoded UTF-8; `nil` for any other bytes.
  private static func percentDecoded(_ bytes: ArraySlice<UInt8>) -> String? {
    var result: [UInt8] = []
    var rest = bytes
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        result.append(byte)
        continue
      }
      guard let high = rest.popFirst().flatMap(hexValue), let low = rest.popFirst().flatMap(hexValue) else {
        return nil
      }
      result.append(high << 4 | low)
    }
    return String(validating: result, as: UTF8.self)
  }

  /// Returns the value of a hexadecimal digit; `nil` for any other byte.
  static func hexValue(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 0x30...0x39: byte - 0x30
    case 0x41...0x46: byte - 0x41 + 10
    case 0x61...0x66: byte - 0x61 + 10
    default: nil
    }
  }
}

/// Host names beyond ASCII, as they are looked up: each label in lower case and Punycode (RFC 3492) after `xn--` (RFC
/// 5890 §2.3.2.1).
///
/// Letters are lowercased, and ideographic full stops become dots. The rest of the mapping of UTS 46, such as
/// compatibility forms, is not done, so that such a name is not found.
package enum InternationalName {
  /// Returns the name in ASCII, or `nil` when a label cannot be encoded.
  package static func ascii(_ name: String) -> String? {
    guard !name.utf8.allSatisfy({ $0 < 0x80 }) else { return name.lowercased() }
    let labels = name.lowercased().unicodeScalars.split(omittingEmptySubsequences: false) { scalar in
      scalar == "." || scalar == "\u{3002}" || scalar == "\u{FF0E}" || scalar == "\u{FF61}"
    }
    var encoded: [String] = []
    for label in labels {
      if label.allSatisfy(\.isASCII) {
        encoded.append(String(label))
      } else if let punycode = punycode(label) {
        encoded.append("xn--" + punycode)
      } else {
        return nil
      }
    }
    return encoded.joined(separator: ".")
  }

  /// A label of DNS has 63 bytes at most, `xn--` among them (RFC 1035 §2.3.4).
  private static let longestLabel = 59

  /// Encodes a label by RFC 3492 §6.3, with the parameters of §5.
  static func punycode(_ label: some Sequence<Unicode.Scalar>) -> String? {
    let input = label.prefix(longestLabel + 1).map(\.value)
    // Each letter takes a byte at least. The time is the square of the length, so that a longer label is an attack.
    guard input.count <= longestLabel else { return nil }
    var output = input.filter { $0 < 0x80 }.map { UInt8($0) }
    let basicCount = output.count
    if basicCount > 0 { output.append(UInt8(ascii: "-")) }
    var next: UInt32 = 128
    var delta = 0
    var bias = 72
    var handled = basicCount
    while handled < input.count {
      guard let least = input.lazy.filter({ $0 >= next }).min() else { return nil }
      let (step, overflow) = Int(least - next).multipliedReportingOverflow(by: handled + 1)
      guard !overflow, delta <= Int.max / 2, step <= Int.max / 2 else { return nil }
      delta += step
      next = least
      for scalar in input {
        if scalar < next { delta += 1 }
        guard scalar == next else { continue }
        append(delta, bias: bias, to: &output)
        bias = adapted(delta, count: handled + 1, isFirst: handled == basicCount)
        delta = 0
        handled += 1
      }
      delta += 1
      next += 1
    }
    return output.count <= longestLabel ? String(decoding: output, as: UTF8.self) : nil
  }

  /// Appends a variable-length integer (RFC 3492 §3.3).
  private static func append(_ delta: Int, bias: Int, to output: inout [UInt8]) {
    let digits = Array("abcdefghijklmnopqrstuvwxyz0123456789".utf8)
    var rest = delta
    var position = 36
    while true {
      let threshold = min(max(position - bias, 1), 26)
      if rest < threshold { break }
      output.append(digits[threshold + (rest - threshold) % (36 - threshold)])
      rest = (rest - threshold) / (36 - threshold)
      position += 36
    }
    output.append(digits[rest])
  }

  /// Adapts the bias (RFC 3492 §6.1).
  private static func adapted(_ delta: Int, count: Int, isFirst: Bool) -> Int {
    var delta = isFirst ? delta / 700 : delta / 2
    delta += delta / count
    var steps = 0
    while delta > 455 {
      delta /= 35
      steps += 36
    }
    return steps + 36 * delta / (delta + 38)
  }
}
