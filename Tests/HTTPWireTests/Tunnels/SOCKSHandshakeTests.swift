import HTTPWire
import Randomness
import Testing

@Suite("Handshakes with SOCKS proxies") struct SOCKSHandshakeTests {
  typealias Handshake = SOCKSHandshake
  typealias Step = SOCKSHandshake.SOCKSStep

  private static func address(_ bytes: [UInt8]) -> Handshake.Target {
    guard let address = IPAddress(bytes.count == 4 ? .v4 : .v6, bytes: bytes) else {
      preconditionFailure("\(bytes) is not an address")
    }
    return .address(address)
  }

  private static func make(
    _ kind: ProxyServer.Kind, user: String? = nil, password: String? = nil, _ target: Handshake.Target,
    port: UInt16 = 443
  ) -> Handshake {
    guard let handshake = Handshake(kind, user: user, password: password, target: target, port: port) else {
      preconditionFailure("\(kind) is not SOCKS")
    }
    return handshake
  }

  private static let v4 = address([1, 2, 3, 4])
  private static let v6 = address(Array(1...16))
  private static let name = Handshake.Target.name("a.example")
  private static let nameBytes = Array("a.example".utf8)

  /// Returns the steps other than `needsMore`, and the number of bytes that were not consumed.
  private static func run(_ handshake: Handshake, _ reply: [UInt8], pieceSize: Int) -> ([Step], Int) {
    var handshake = handshake
    var steps = [handshake.begin()]
    var rest = reply[...]
    while !rest.isEmpty {
      let piece = Array(rest.prefix(pieceSize))
      rest = rest.dropFirst(piece.count)
      var position = 0
      while true {
        switch steps.last {
        case .done, .fail: return (steps, rest.count + piece.count - position)
        default: break
        }
        let needed = handshake.bytesNeeded
        let before = position
        let step = piece.withUnsafeBytes { handshake.read($0, from: &position) }
        #expect(needed > 0 && position - before <= 300)
        if step == .needsMore {
          #expect(position == piece.count)
          break
        }
        steps.append(step)
      }
    }
    return (steps, 0)
  }

  struct Scenario: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let handshake: Handshake
    let reply: [UInt8]
    let steps: [Step]
    let excess: Int

    init(_ name: String, _ handshake: Handshake, _ reply: [UInt8], _ steps: [Step], excess: Int = 0) {
      testDescription = name
      (self.handshake, self.reply, self.steps, self.excess) = (handshake, reply, steps, excess)
    }
  }

  private static let connected4: [UInt8] = [0, 90, 0, 0, 0, 0, 0, 0]
  private static let connected5: [UInt8] = [5, 0, 0, 1, 9, 9, 9, 9, 0, 80]
  private static let request5: [UInt8] = [5, 1, 0, 3, 9] + nameBytes + [1, 187]

  static let scenarios: [Scenario] = [
    Scenario("SOCKS4", make(.socks4, v4), connected4, [.send([4, 1, 1, 187, 1, 2, 3, 4, 0]), .done]),
    Scenario(
      "SOCKS4 with a user", make(.socks4, user: "ann", v4, port: 80), connected4,
      [.send([4, 1, 0, 80, 1, 2, 3, 4, 97, 110, 110, 0]), .done]),
    Scenario(
      "SOCKS4a", make(.socks4a, user: "ann", name), connected4 + [7, 8],
      [.send([4, 1, 1, 187, 0, 0, 0, 1, 97, 110, 110, 0] + nameBytes + [0]), .done], excess: 2),
    Scenario(
      "SOCKS4a with an address", make(.socks4a, v4), connected4,
      [.send([4, 1, 1, 187, 1, 2, 3, 4, 0]), .done]),
    Scenario("a name for SOCKS4", make(.socks4, name), [], [.fail(.invalidName)]),
    Scenario("an address of IPv6 for SOCKS4", make(.socks4, v6), [], [.fail(.addressFamily)]),
    Scenario("an address of IPv6 for SOCKS4a", make(.socks4a, v6), [], [.fail(.addressFamily)]),
    Scenario(
      "SOCKS4 that cannot connect", make(.socks4, v4), [0, 91],
      [.send([4, 1, 1, 187, 1, 2, 3, 4, 0]), .fail(.refused(code: 91))]),
    Scenario(
      "SOCKS4 that finds no user", make(.socks4, v4), [0, 92, 0, 0, 0, 0, 0, 0],
      [.send([4, 1, 1, 187, 1, 2, 3, 4, 0]), .fail(.loginRejected)], excess: 6),
    Scenario(
      "SOCKS4 that finds another user", make(.socks4, v4), [0, 93],
      [.send([4, 1, 1, 187, 1, 2, 3, 4, 0]), .fail(.loginRejected)]),
    Scenario(
      "a reply of no SOCKS4", make(.socks4, v4), [0, 94],
      [.send([4, 1, 1, 187, 1, 2, 3, 4, 0]), .fail(.notSOCKS)]),
    Scenario(
      "a reply of SOCKS5 to SOCKS4", make(.socks4, v4), [5, 0],
      [.send([4, 1, 1, 187, 1, 2, 3, 4, 0]), .fail(.notSOCKS)], excess: 1),
    Scenario(
      "SOCKS5", make(.socks5, v4), [5, 0] + connected5,
      [.send([5, 1, 0]), .send([5, 1, 0, 1, 1, 2, 3, 4, 1, 187]), .done]),
    Scenario(
      "SOCKS5 with IPv6", make(.socks5, v6, port: 256), [5, 0] + connected5,
      [.send([5, 1, 0]), .send([5, 1, 0, 4] + Array(1...16) + [1, 0]), .done]),
    Scenario(
      "SOCKS5 with a name", make(.socks5h, name), [5, 0] + connected5 + [1, 2, 3],
      [.send([5, 1, 0]), .send(request5), .done], excess: 3),
    Scenario(
      "a reply with IPv6", make(.socks5h, name), [5, 0, 5, 0, 0, 4] + [UInt8](repeating: 7, count: 18) + [1],
      [.send([5, 1, 0]), .send(request5), .done], excess: 1),
    Scenario(
      "a reply with a name", make(.socks5h, name), [5, 0, 5, 0, 0, 3, 2, 97, 98, 0, 80, 1],
      [.send([5, 1, 0]), .send(request5), .done], excess: 1),
    Scenario(
      "a reply with an empty name", make(.socks5h, name), [5, 0, 5, 0, 0, 3, 0, 0, 80, 1],
      [.send([5, 1, 0]), .send(request5), .done], excess: 1),
    Scenario(
      "a reply with a long name", make(.socks5h, name),
      [5, 0, 5, 0, 0, 3, 255] + [UInt8](repeating: 97, count: 257),
      [.send([5, 1, 0]), .send(request5), .done]),
    Scenario(
      "a reply with another address", make(.socks5h, name), [5, 0, 5, 0, 0, 2],
      [.send([5, 1, 0]), .send(request5), .fail(.notSOCKS)]),
    Scenario(
      "a login", make(.socks5h, user: "ann", password: "pw", name), [5, 2, 1, 0] + connected5,
      [.send([5, 2, 0, 2]), .send([1, 3, 97, 110, 110, 2, 112, 119]), .send(request5), .done]),
    Scenario(
      "a login reply with the version of SOCKS", make(.socks5h, user: "ann", name),
      [5, 2, 5, 0] + connected5,
      [.send([5, 2, 0, 2]), .send([1, 3, 97, 110, 110, 0]), .send(request5), .done]),
    Scenario(
      "a password without a user", make(.socks5h, password: "pw", name), [5, 2, 1, 1],
      [.send([5, 2, 0, 2]), .send([1, 0, 2, 112, 119]), .fail(.loginRejected)]),
    Scenario(
      "a login of another version", make(.socks5h, user: "a", name), [5, 2, 2],
      [.send([5, 2, 0, 2]), .send([1, 1, 97, 0]), .fail(.notSOCKS)]),
    Scenario(
      "a login that is not requested", make(.socks5h, user: "ann", name), [5, 0] + connected5,
      [.send([5, 2, 0, 2]), .send(request5), .done]),
    Scenario(
      "a login that is requested and missing", make(.socks5h, name), [5, 2],
      [.send([5, 1, 0]), .fail(.loginRejected)]),
    Scenario(
      "no acceptable method", make(.socks5h, user: "ann", name), [5, 255],
      [.send([5, 2, 0, 2]), .fail(.loginRejected)]),
    Scenario(
      "GSSAPI unasked", make(.socks5h, user: "ann", name), [5, 1],
      [.send([5, 2, 0, 2]), .fail(.loginRejected)]),
    Scenario(
      "a server of HTTP", make(.socks5h, name), Array("HTTP/1.1 400".utf8),
      [.send([5, 1, 0]), .fail(.notSOCKS)], excess: 11),
    Scenario(
      "another version in the reply", make(.socks5h, name), [5, 0, 4],
      [.send([5, 1, 0]), .send(request5), .fail(.notSOCKS)]),
    Scenario(
      "a refusal", make(.socks5h, name), [5, 0, 5, 5],
      [.send([5, 1, 0]), .send(request5), .fail(.refused(code: 5))]),
    Scenario(
      "an unknown refusal", make(.socks5h, name), [5, 0, 5, 200, 0, 1],
      [.send([5, 1, 0]), .send(request5), .fail(.refused(code: 200))], excess: 2),
    Scenario(
      "a NUL in a user of SOCKS4", make(.socks4, user: "a\u{0}b", v4), [], [.fail(.invalidCredential)]),
    Scenario("a NUL in a name", make(.socks4a, .name("a\u{0}b")), [], [.fail(.invalidName)]),
    Scenario("a NUL in a name for SOCKS5", make(.socks5h, .name("a\u{0}b")), [], [.fail(.invalidName)]),
    Scenario("an empty name", make(.socks5h, .name("")), [], [.fail(.invalidName)]),
  ]

  @Test("Each reply has its step, in pieces of any size", arguments: scenarios)
  func scenario(_ scenario: Scenario) {
    for pieceSize in 1...max(1, scenario.reply.count) {
      let (steps, excess) = Self.run(scenario.handshake, scenario.reply, pieceSize: pieceSize)
      #expect(steps == scenario.steps, "in pieces of \(pieceSize)")
      #expect(excess == scenario.excess, "in pieces of \(pieceSize)")
    }
  }

  @Test("A handshake never asks for more bytes than the reply has", arguments: scenarios)
  func bytesNeeded(_ scenario: Scenario) {
    var handshake = scenario.handshake
    var step = handshake.begin()
    var rest = scenario.reply[...]
    while true {
      switch step {
      case .done:
        #expect(rest.count == scenario.excess && handshake.bytesNeeded == 0)
        return
      case .fail:
        #expect(handshake.bytesNeeded == 0)
        return
      case .send, .needsMore: break
      }
      let needed = handshake.bytesNeeded
      #expect(needed > 0)
      guard !rest.isEmpty, needed > 0 else { return }
      let piece = Array(rest.prefix(needed))
      rest = rest.dropFirst(piece.count)
      var position = 0
      step = piece.withUnsafeBytes { handshake.read($0, from: &position) }
      #expect(position == piece.count || step != .needsMore)
    }
  }

  @Test("Names and credentials have at most 255 bytes") func lengths() {
    for (count, isValid) in [(255, true), (256, false)] {
      let long = String(repeating: "a", count: count)
      func begins(_ handshake: Handshake) -> Bool {
        var handshake = handshake
        if case .send = handshake.begin() { return true }
        return false
      }
      #expect(begins(Self.make(.socks5h, .name(long))) == isValid)
      #expect(begins(Self.make(.socks4a, .name(long))) == isValid)
      #expect(begins(Self.make(.socks5, user: long, Self.v4)) == isValid)
      #expect(begins(Self.make(.socks5, password: long, Self.v4)) == isValid)
      #expect(begins(Self.make(.socks4, user: long, Self.v4)) == isValid)
    }
    #expect(Handshake(.http, user: nil, password: nil, target: Self.v4, port: 1) == nil)
    #expect(Handshake(.https, user: nil, password: nil, target: Self.v4, port: 1) == nil)
  }

  @Test("A failure is permanent, and so is the end") func permanence() {
    let refused: [UInt8] = [0, 91]
    let cases: [([UInt8], Step)] = [(refused, .fail(.refused(code: 91))), (Self.connected4, .done)]
    for (reply, last) in cases {
      var handshake = Self.make(.socks4, Self.v4)
      _ = handshake.begin()
      for bytes in [reply, Self.connected4] {
        var position = 0
        #expect(bytes.withUnsafeBytes { handshake.read($0, from: &position) } == last)
      }
    }
  }

  @Test("Only some refusals may depend on the address") func addresses() {
    let codes = (UInt8(0)...100).filter { Handshake.Failure.refused(code: $0).mayDependOnAddress }
    #expect(codes == [3, 4, 5, 6, 8, 91])
    #expect(!Handshake.Failure.loginRejected.mayDependOnAddress)
  }

  @Test("Codes of SOCKS5 have reasons") func reasons() {
    let reasons = (UInt8(0)...9).map { Handshake.Failure.refused(code: $0).reason }
    #expect(reasons[0] == nil && reasons[9] == nil && Set(reasons.compactMap { $0 }).count == 8)
    #expect(Handshake.Failure.notSOCKS.reason == nil)
    #expect(Handshake.Failure.refused(code: 5).reason == "connection refused")
  }

  @Test("Random replies end or go on, in pieces as in one") func randomReplies() {
    for seed in UInt64(0)..<5_000 {
      var random = SeededGenerator(seed: seed)
      let kind =
        [ProxyServer.Kind.socks4, .socks4a, .socks5, .socks5h].randomElement(using: &random) ?? .socks5
      let user = Bool.random(using: &random) ? "ann" : nil
      let handshake = Self.make(kind, user: user, Self.v4)
      let values: [UInt8] = [0, 1, 2, 3, 4, 5, 90, 91, 255]
      let reply = (0..<40).map { _ in values[Int.random(in: 0..<values.count, using: &random)] }
      let whole = Self.run(handshake, reply, pieceSize: reply.count)
      for size in [1, 2, 7] { #expect(Self.run(handshake, reply, pieceSize: size) == whole, "seed \(seed)") }
    }
  }
}
