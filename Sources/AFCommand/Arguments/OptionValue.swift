import Alamofire
import Foundation

/// Readers of the values of options.
enum OptionValue {
  static func setCredentials(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    // Also before a combining mark, with which the colon is one Character.
    let colon = text.utf8.firstIndex(of: UInt8(ascii: ":"))
    invocation.credentials = Invocation.Credentials(
      user: String(text[..<(colon ?? text.endIndex)]),
      password: colon.map { String(text[text.utf8.index(after: $0)...]) })
    // A token can have colons.
    invocation.typedCredentials = text
    if let type = invocation.authenticationBeforeToken.take() { invocation.authentication = type }
  }

  static func setAuthentication(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    guard let type = Invocation.Authentication(rawValue: text.lowercased()) else {
      throw UsageError("--auth-type needs basic, digest or bearer, not '\(text)'.")
    }
    invocation.authentication = type
    invocation.authenticationBeforeToken = nil
  }

  static func setToken(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    try setCredentials(&invocation, text)
    invocation.authenticationBeforeToken = invocation.authentication
    invocation.authentication = .bearer
  }

  static func setParts(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    var parts: Set<Invocation.Part> = []
    for letter in text {
      guard let part = Invocation.Part(rawValue: letter) else {
        throw UsageError("--print needs letters of HBhb, not '\(letter)'.")
      }
      parts.insert(part)
    }
    invocation.shown = .parts(parts)
  }

  static func setPrettiness(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    guard let prettiness = Invocation.Prettiness(rawValue: text) else {
      throw UsageError("--pretty needs all, colors, format or none, not '\(text)'.")
    }
    invocation.prettiness = prettiness
  }

  static func setSession(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    guard let first = text.utf8.first, first != UInt8(ascii: ".") || text.utf8.contains(UInt8(ascii: "/"))
    else {
      throw UsageError("--session needs a name, or a path with a '/', not '\(text)'.")
    }
    invocation.session = text
    invocation.isSessionReadOnly = false
  }

  static func setReadOnlySession(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    try setSession(&invocation, text)
    invocation.isSessionReadOnly = true
  }

  static func addAddress(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    let parts = text.split(separator: ":", maxSplits: 2).map(String.init)
    guard parts.count == 3, let port = UInt16(parts[1]), !parts[2].isEmpty else {
      throw UsageError("--resolve needs HOST:PORT:ADDRESS, such as example.com:443:127.0.0.1, not '\(text)'.")
    }
    let target = parts[2].trimmingCharacters(in: CharacterSet(charactersIn: "[]"))
    invocation.addresses.append(Invocation.Address(host: parts[0], port: Int(port), target: target))
  }

  static func seconds(_ text: String, of name: String) throws(UsageError) -> Double {
    guard let seconds = Double(text), seconds > 0, seconds < 1e9 else {
      throw UsageError("\(name) needs a number of seconds above zero, such as 2.5, not '\(text)'.")
    }
    return seconds
  }

  /// Reads a number of bytes, with curl's suffixes for powers of 1024.
  static func setBandwidth(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    let power = text.last.flatMap { "kmg".firstIndex(of: Character($0.lowercased())) }
      .map { "kmg".distance(from: "kmg".startIndex, to: $0) + 1 }
    guard let number = Double(power == nil ? text : String(text.dropLast())),
      case let rate = number * pow(1024, Double(power ?? 0)), rate >= 1, rate < 1e15
    else {
      throw UsageError("--limit-rate needs bytes in a second, such as 50000, 200k or 1.5M, not '\(text)'.")
    }
    invocation.bandwidth = Int(rate)
  }

  static func setRetryLimit(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    guard let limit = Int(text), (0...1000).contains(limit) else {
      throw UsageError("--retry needs a number from 0 to 1000, not '\(text)'.")
    }
    invocation.retryLimit = limit
  }

  /// Reads a URL, or a scheme and the URL of its proxy as in HTTPie: `http:http://127.0.0.1:3128`. A URL alone, and
  /// `none`, replace earlier proxies of schemes.
  static func setProxy(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    let parts = text.split(separator: ":", maxSplits: 1).map(String.init)
    if parts.count == 2, ["http", "https"].contains(parts[0]), !parts[1].hasPrefix("//") {
      invocation.proxiesByScheme[parts[0]] = parts[1]
    } else if parts.count == 2, parts[0] == "all" {
      invocation.proxy = parts[1]
    } else {
      invocation.proxy = text
      invocation.proxiesByScheme = [:]
    }
  }

  static func setVerification(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    switch text.lowercased() {
    case "yes", "true": invocation.verifiesServer = true
    case "no", "false": invocation.verifiesServer = false
    default: setTrust(&invocation, text)
    }
  }

  /// Trusts the authorities in a file. Certificates are verified even if an earlier option has said the opposite.
  static func setTrust(_ invocation: inout Invocation, _ path: String) {
    invocation.trustFile = path
    invocation.verifiesServer = true
  }

  static func setRedirectLimit(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    guard let limit = Int(text), (0...1000).contains(limit) else {
      throw UsageError("--max-redirects needs a number from 0 to 1000, not '\(text)'.")
    }
    invocation.redirects = .follow(limit: limit)
  }

  static func setRawBody(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    if text == "-" || text == "@-" {
      invocation.rawBody = .standardInput
    } else if text.first == "@" {
      guard text.count > 1 else { throw UsageError("--raw @ needs the path of a file: --raw @FILE.") }
      invocation.rawBody = .file(path: String(text.dropFirst()))
    } else {
      invocation.rawBody = .text(text)
    }
  }

  static func setSegments(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    guard let count = Int(text), (1...64).contains(count) else {
      throw UsageError("--segments needs a number from 1 to 64, not '\(text)'.")
    }
    invocation.segments = count
  }

  static func setImageSize(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    let sides = text.lowercased().split(separator: "x", omittingEmptySubsequences: false).map { Int($0) ?? 0 }
    guard sides.allSatisfy({ (1...100_000).contains($0) }), sides.count <= 2 else {
      throw UsageError("--size needs a number of pixels, or two as in 400x300, not '\(text)'.")
    }
    invocation.imageSize =
      sides.count == 2 ? .filling(width: sides[0], height: sides[1]) : .longestSide(sides[0])
  }

  static func setChecksum(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    let parts = text.split(separator: ":", maxSplits: 1).map { $0.lowercased() }
    let digits = parts.last ?? ""
    guard parts.count == 2, digits.allSatisfy(\.isHexDigit) else {
      throw UsageError("--checksum needs sha256:HEX or sha512:HEX, not '\(text)'.")
    }
    switch (parts[0], digits.count) {
    case ("sha256", 64): invocation.checksum = .sha256(digits)
    case ("sha512", 128): invocation.checksum = .sha512(digits)
    default: throw UsageError("--checksum needs 64 digits after sha256:, or 128 after sha512:.")
    }
  }

  static func setShell(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    guard let shell = Completions.Shell(rawValue: text) else {
      throw UsageError("--completion needs bash, zsh or fish, not '\(text)'.")
    }
    invocation.completionShell = shell
  }
}
