import HTTPWire
import Randomness
import Testing

@Suite("Rounds of a login") struct LoginFlowTests {
  typealias Step = LoginFlow.LoginStep

  /// Returns a response with challenges of the server.
  static func refusal(_ challenges: String..., of role: LoginFlow.Role = .origin) -> ResponseHead {
    ResponseHead(
      status: role == .origin ? 401 : 407,
      fields: challenges.map {
        HTTPHeader(name: role == .origin ? "WWW-Authenticate" : "Proxy-Authenticate", value: $0)
      })
  }

  /// One event of a login, and the step that follows.
  enum Event {
    case begin
    case token([UInt8]?)
    case head(ResponseHead, keeps: Bool = true)
    case connectionEnd
  }

  @discardableResult
  static func run(
    _ scheme: AuthenticationScheme, of role: LoginFlow.Role = .origin, hasBody: Bool = true,
    _ events: [(Event, Step)],
    _ location: SourceLocation = #_sourceLocation
  ) -> LoginFlow {
    var flow = LoginFlow(scheme, of: role, hasBody: hasBody)
    for (number, (event, expected)) in events.enumerated() {
      let step =
        switch event {
        case .begin: flow.begin()
        case .token(let token): flow.answered(token)
        case .head(let head, let keeps): flow.received(head, keepsConnection: keeps)
        case .connectionEnd: flow.connectionEnded()
        }
      #expect(step == expected, "step \(number)", sourceLocation: location)
      #expect(flow.isOver == (step == .deliver), "step \(number)", sourceLocation: location)
    }
    return flow
  }

  static let ok = ResponseHead(status: 200)

  @Test("NTLM sends its first message without the body", arguments: [LoginFlow.Role.origin, .proxy])
  func ntlm(role: LoginFlow.Role) {
    Self.run(
      .ntlm, of: role,
      [
        (.begin, .ask(challenge: [])), (.token([1]), .send(field: "NTLM AQ==", withBody: false)),
        (.head(Self.refusal("Basic realm=\"r\"", "NTLM AgI=", of: role)), .ask(challenge: [2, 2])),
        (.token([3]), .send(field: "NTLM Aw==", withBody: true)), (.head(Self.ok), .deliver),
      ])
  }

  @Test("Negotiate sends the body with each token") func negotiate() {
    Self.run(
      .negotiate,
      [
        (.begin, .ask(challenge: [])), (.token([1]), .send(field: "Negotiate AQ==", withBody: true)),
        (.head(Self.refusal("negotiate AgI=")), .ask(challenge: [2, 2])),
        (.token([3]), .send(field: "Negotiate Aw==", withBody: true)),
        (.head(Self.refusal("Negotiate BA==, NTLM BQ==")), .ask(challenge: [4])),
        (.token([5]), .send(field: "Negotiate BQ==", withBody: true)),
        (.head(ResponseHead(status: 403)), .deliver),
      ])
  }

  @Test("A server that wants no login gets the body") func noLogin() {
    let start: [(Event, Step)] = [
      (.begin, .ask(challenge: [])), (.token([1]), .send(field: "NTLM AQ==", withBody: false)),
    ]
    for status in [200, 204, 299, 300, 303, 308, 400, 403, 411, 413, 500] {
      Self.run(
        .ntlm,
        start + [
          (.head(ResponseHead(status: status)), .send(field: nil, withBody: true)),
          (.head(Self.ok), .deliver),
        ])
      Self.run(.ntlm, hasBody: false, start + [(.head(ResponseHead(status: status)), .deliver)])
    }
    for status in [103, 407] {
      Self.run(.ntlm, start + [(.head(ResponseHead(status: status)), .deliver)])
    }
    // A second refusal is final: the flow has given up its credential.
    Self.run(
      .ntlm,
      start + [(.head(Self.ok), .send(field: nil, withBody: true)), (.head(Self.refusal("NTLM")), .deliver)])
  }

  @Test("A server may ask for the first message once more", arguments: [true, false])
  func secondStart(keeps: Bool) {
    for (scheme, name) in [(AuthenticationScheme.ntlm, "NTLM"), (.negotiate, "Negotiate")] {
      let first = Step.send(field: "\(name) AQ==", withBody: scheme == .negotiate)
      let start: [(Event, Step)] = [
        (.begin, .ask(challenge: [])), (.token([1]), first),
        (.head(Self.refusal(name), keeps: keeps), .ask(challenge: [])), (.token([1]), first),
      ]
      Self.run(scheme, start + [(.head(Self.refusal(name)), .deliver)])
      Self.run(
        scheme,
        start + [
          (.head(Self.refusal("\(name) Ag==")), .ask(challenge: [2])),
          (.token([3]), .send(field: "\(name) Aw==", withBody: true)), (.head(Self.ok), .deliver),
        ])
    }
  }

  @Test("A challenge without a message refuses the credential after one with a message") func refused() {
    for (scheme, name) in [(AuthenticationScheme.ntlm, "NTLM"), (.negotiate, "Negotiate")] {
      Self.run(
        scheme,
        [
          (.begin, .ask(challenge: [])),
          (.token([1]), .send(field: "\(name) AQ==", withBody: scheme == .negotiate)),
          (.head(Self.refusal("\(name) Ag==")), .ask(challenge: [2])),
          (.token([3]), .send(field: "\(name) Aw==", withBody: true)), (.head(Self.refusal(name)), .deliver),
        ])
    }
  }

  @Test("The last message of NTLM is not sent twice") func secondChallenge() {
    Self.run(
      .ntlm,
      [
        (.begin, .ask(challenge: [])), (.token([1]), .send(field: "NTLM AQ==", withBody: false)),
        (.head(Self.refusal("NTLM Ag==")), .ask(challenge: [2])),
        (.token([3]), .send(field: "NTLM Aw==", withBody: true)),
        (.head(Self.refusal("NTLM Ag==")), .deliver),
      ])
  }

  @Test("A message on a connection that ends begins the login again, once") func closedConnection() {
    Self.run(
      .ntlm,
      [
        (.begin, .ask(challenge: [])), (.token([1]), .send(field: "NTLM AQ==", withBody: false)),
        (.head(Self.refusal("NTLM Ag=="), keeps: false), .ask(challenge: [])),
        (.token([1]), .send(field: "NTLM AQ==", withBody: false)),
        (.head(Self.refusal("NTLM Ag=="), keeps: false), .deliver),
      ])
  }

  @Test("An answer on a connection that ends begins the login again, once")
  func lostAnswer() {
    for (scheme, name) in [(AuthenticationScheme.ntlm, "NTLM"), (.negotiate, "Negotiate")] {
      let rounds: [(Event, Step)] = [
        (.token([1]), .send(field: "\(name) AQ==", withBody: scheme == .negotiate)),
        (.head(Self.refusal("\(name) Ag==")), .ask(challenge: [2])),
        (.token([3]), .send(field: "\(name) Aw==", withBody: true)),
      ]
      let start: [(Event, Step)] = [(.begin, .ask(challenge: []))] + rounds
      let again: [(Event, Step)] = start + [(.connectionEnd, .ask(challenge: []))] + rounds
      Self.run(scheme, again + [(.head(Self.ok), .deliver)])
      Self.run(scheme, again + [(.connectionEnd, .deliver)])
    }
  }

  @Test("Only an answer to a challenge needs the connection") func neededConnection() {
    var flow = LoginFlow(.ntlm, of: .proxy, hasBody: false)
    let challenge = Self.refusal("NTLM Ag==", of: .proxy)
    _ = flow.begin()
    #expect(!flow.needsConnection, "the first token is generated")
    _ = flow.answered([1])
    #expect(!flow.needsConnection, "the first token was sent")
    _ = flow.received(challenge, keepsConnection: true)
    #expect(flow.needsConnection, "the answer is generated")
    _ = flow.answered([3])
    #expect(flow.needsConnection, "the answer was sent")
    _ = flow.connectionEnded()
    #expect(!flow.needsConnection, "the login has begun again")
    _ = flow.answered([1])
    #expect(!flow.needsConnection, "the first token was sent again")
    #expect(flow.received(Self.ok, keepsConnection: true) == .deliver)
    #expect(!flow.needsConnection, "the login is over")
  }

  @Test("An endless login ends after six rounds") func endless() {
    var flow = LoginFlow(.negotiate, of: .origin, hasBody: true)
    var step = flow.begin()
    var sent = 0
    while step != .deliver, sent < 100 {
      switch step {
      case .ask: step = flow.answered([UInt8(sent)])
      case .send:
        sent += 1
        step = flow.received(Self.refusal("Negotiate AQ=="), keepsConnection: true)
      case .deliver: break
      }
    }
    #expect(sent == 6)
  }

  @Test("Without a first token the request goes without credentials") func noToken() {
    Self.run(
      .negotiate,
      [
        (.begin, .ask(challenge: [])), (.token(nil), .send(field: nil, withBody: true)),
        (.head(Self.refusal("Negotiate")), .deliver),
      ])
    Self.run(
      .negotiate,
      [
        (.begin, .ask(challenge: [])), (.token([1]), .send(field: "Negotiate AQ==", withBody: true)),
        (.head(Self.refusal("Negotiate Ag==")), .ask(challenge: [2])), (.token(nil), .deliver),
        (.token([1]), .deliver),
      ])
  }

  @Test("Another refusal is not the flow's") func otherRefusals() {
    let heads: [(String, LoginFlow.Role, ResponseHead)] = [
      ("401 of a proxy", .proxy, Self.refusal("NTLM Ag==")),
      ("407 of an origin", .origin, Self.refusal("NTLM Ag==", of: .proxy)),
      ("another scheme", .origin, Self.refusal("Negotiate Ag==", "Basic realm=\"r\"")),
      ("no challenge", .origin, Self.refusal()),
      (
        "the field of an origin in a 407", .proxy,
        ResponseHead(status: 407, fields: [.init(name: "WWW-Authenticate", value: "NTLM Ag==")])
      ),
      ("no base64", .origin, Self.refusal("NTLM Ag")),
      ("no base64 at all", .origin, Self.refusal("NTLM ~~~~")),
      ("a long token", .origin, Self.refusal("NTLM " + String(repeating: "A", count: 131_076))),
    ]
    for (name, role, head) in heads {
      var flow = LoginFlow(.ntlm, of: role, hasBody: true)
      _ = flow.begin()
      _ = flow.answered([1])
      #expect(flow.received(head, keepsConnection: true) == .deliver, "\(name)")
    }
    var flow = LoginFlow(.ntlm, of: .origin, hasBody: true)
    _ = flow.begin()
    _ = flow.answered([1])
    let longest = flow.received(
      Self.refusal("NTLM " + String(repeating: "A", count: 131_072)), keepsConnection: true)
    #expect(longest == .ask(challenge: [UInt8](repeating: 0, count: 98_304)))
  }

  @Test("Calls in another order end the flow") func order() {
    Self.run(.ntlm, [(.token([1]), .deliver), (.begin, .deliver)])
    Self.run(.ntlm, [(.head(Self.ok), .deliver)])
    Self.run(.ntlm, [(.begin, .ask(challenge: [])), (.head(Self.refusal("NTLM Ag==")), .deliver)])
  }

  @Test("Random logins end, and answer at most six times", arguments: 0..<4 as Range<UInt64>)
  func walks(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let challenges = [
      "NTLM", "NTLM Ag==", "NTLM !", "Negotiate", "Negotiate Ag==", "Basic realm=r", "NTLM A", ",;=",
    ]
    for walk in 0..<5_000 {
      let scheme: AuthenticationScheme = Bool.random(using: &random) ? .ntlm : .negotiate
      let hasBody = Bool.random(using: &random)
      var flow = LoginFlow(scheme, of: .origin, hasBody: hasBody)
      var step = flow.begin()
      var requests = 0
      var bodies = 0
      while step != .deliver {
        switch step {
        case .ask: step = flow.answered(Int.random(in: 0..<8, using: &random) == 0 ? nil : [1])
        case .send(let field, let withBody):
          requests += 1
          if withBody { bodies += 1 }
          if scheme == .negotiate { #expect(withBody, "seed \(seed), walk \(walk)") }
          if field == nil { #expect(withBody, "seed \(seed), walk \(walk)") }
          let head =
            Int.random(in: 0..<8, using: &random) == 0
            ? Self.ok : Self.refusal(challenges.randomElement(using: &random) ?? "")
          step = flow.received(head, keepsConnection: Int.random(in: 0..<6, using: &random) > 0)
          if head.status == 200, step == .deliver, hasBody {
            #expect(bodies > 0, "seed \(seed), walk \(walk): the server has never seen the body")
          }
        case .deliver: break
        }
        guard requests < 20 else { break }
      }
      #expect(requests <= 7, "seed \(seed), walk \(walk)")
      #expect(flow.isOver)
    }
  }
}
