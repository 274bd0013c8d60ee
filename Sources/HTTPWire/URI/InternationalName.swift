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
