import HTTPWire
import Randomness
import Testing

@Suite("Exchanges on a connection of HTTP/1.1") struct HTTP1ExchangeTests {
  typealias Event = HTTP1Exchange.Event
  typealias Action = HTTP1Exchange.Action

  private static func exchange(
    content: Bool = false, expects: Bool = false, upgrade: Bool = false, closes: Bool = false,
    repeatable: Bool = true
  ) -> HTTP1Exchange {
    var head = RequestHeadWriter.Summary()
    head.expectsContinue = expects
    head.asksForUpgrade = upgrade
    head.closesConnection = closes
    return HTTP1Exchange(head, hasContent: content, isRepeatable: repeatable)
  }

  private static func final(_ status: Int, keepsAlive: Bool = true, open: Bool = false) -> Event {
    .final(status: status, keepsAlive: keepsAlive, endsWithConnection: open)
  }

  private static let end = Event.responseEnded(hasMore: false)
  private static let reused = Action.complete(reuse: true)
  private static let closed = Action.complete(reuse: false)

  struct Scenario: CustomTestStringConvertible, Sendable {
    var testDescription: String
    let exchange: HTTP1Exchange
    let steps: [(Event, Action)]

    init(_ name: String, _ exchange: HTTP1Exchange, _ steps: [(Event, Action)]) {
      testDescription = name
      self.exchange = exchange
      self.steps = steps
    }
  }

  static let scenarios: [Scenario] = [
    Scenario("GET", exchange(), [(.headSent, .none), (final(200), .none), (end, reused)]),
    Scenario(
      "a server that closes", exchange(),
      [(.headSent, .none), (final(200, keepsAlive: false), .none), (end, closed)]),
    Scenario(
      "a request that closes", exchange(closes: true),
      [(.headSent, .none), (final(200), .none), (end, closed)]),
    Scenario(
      "bytes after the response", exchange(),
      [(.headSent, .none), (final(200), .none), (.responseEnded(hasMore: true), closed)]),
    Scenario(
      "informational responses", exchange(),
      [
        (.headSent, .none), (.informational(100), .none), (.informational(103), .none), (final(200), .none),
        (end, reused),
      ]),
    Scenario(
      "POST", exchange(content: true),
      [(.headSent, .sendContent), (.contentSent, .none), (final(200), .none), (end, reused)]),
    Scenario(
      "an early 200 and an upload that ends later", exchange(content: true),
      [(.headSent, .sendContent), (final(200), .none), (end, .none), (.contentSent, reused)]),
    Scenario(
      "an early 399", exchange(content: true),
      [(.headSent, .sendContent), (final(399), .none), (.contentSent, .none), (end, reused)]),
    Scenario(
      "bytes after an early response", exchange(content: true),
      [
        (.headSent, .sendContent), (final(200), .none), (end, .none), (.excessBytes, .none),
        (.contentSent, closed),
      ]),
    Scenario(
      "an early 400", exchange(content: true),
      [(.headSent, .sendContent), (final(400), .stopSending), (.contentSent, .none), (end, closed)]),
    Scenario(
      "400 after the upload", exchange(content: true),
      [(.headSent, .sendContent), (.contentSent, .none), (final(400), .none), (end, reused)]),
    Scenario(
      "an early error within a head", exchange(),
      [(final(431), .stopSending), (.headSent, .none), (end, closed)]),
    Scenario(
      "an early response within a head", exchange(),
      [(final(200), .none), (end, .none), (.headSent, reused)]),
    Scenario(
      "100", exchange(content: true, expects: true),
      [
        (.headSent, .awaitContinue), (.informational(103), .none), (.informational(100), .sendContent),
        (.informational(100), .none), (.continueExpired, .none), (.contentSent, .none), (final(200), .none),
        (end, reused),
      ]),
    Scenario(
      "100 before the whole head was sent", exchange(content: true, expects: true),
      [(.informational(100), .none), (.headSent, .sendContent)]),
    Scenario(
      "103 before the whole head was sent", exchange(content: true, expects: true),
      [(.informational(103), .none), (.headSent, .awaitContinue)]),
    Scenario(
      "no 100", exchange(content: true, expects: true),
      [
        (.continueExpired, .none), (.headSent, .awaitContinue), (.continueExpired, .sendContent),
        (.contentSent, .none),
      ]),
    Scenario(
      "an expectation without content", exchange(expects: true),
      [(.headSent, .none), (final(200), .none), (end, reused)]),
    Scenario(
      "200 instead of 100", exchange(content: true, expects: true),
      [(.headSent, .awaitContinue), (final(200), .stopSending), (.continueExpired, .none), (end, closed)]),
    Scenario(
      "401 instead of 100", exchange(content: true, expects: true),
      [(.headSent, .awaitContinue), (final(401), .stopSending), (end, closed)]),
    Scenario(
      "200 before the head with an expectation was sent", exchange(content: true, expects: true),
      [(final(200), .stopSending), (.headSent, .none), (end, closed)]),
    Scenario(
      "417 instead of 100", exchange(content: true, expects: true, repeatable: false),
      [(.headSent, .awaitContinue), (final(417), .sendAgainWithoutExpect), (end, .none)]),
    Scenario(
      "417 while the content is sent", exchange(content: true, expects: true),
      [(.headSent, .awaitContinue), (.continueExpired, .sendContent), (final(417), .sendAgainWithoutExpect)]),
    Scenario(
      "417 while content is sent that cannot be sent again",
      exchange(content: true, expects: true, repeatable: false),
      [
        (.headSent, .awaitContinue), (.continueExpired, .sendContent), (final(417), .stopSending),
        (end, closed),
      ]),
    Scenario(
      "417 after the content", exchange(content: true, expects: true),
      [
        (.headSent, .awaitContinue), (.continueExpired, .sendContent), (.contentSent, .none),
        (final(417), .none), (end, reused),
      ]),
    Scenario(
      "417 without an expectation", exchange(content: true),
      [(.headSent, .sendContent), (final(417), .stopSending), (end, closed)]),
    Scenario(
      "an answer before the connection broke", exchange(content: true),
      [(.headSent, .sendContent), (.sendFailed, .none), (final(413), .none), (end, closed)]),
    Scenario(
      "an answer below 400 before the connection broke", exchange(content: true),
      [(.headSent, .sendContent), (.sendFailed, .none), (final(200), .none), (end, closed)]),
    Scenario(
      "a connection that breaks after the response", exchange(content: true),
      [(.headSent, .sendContent), (final(200), .none), (end, .none), (.sendFailed, closed)]),
    Scenario(
      "a connection that breaks while its peer is awaited", exchange(content: true, expects: true),
      [
        (.headSent, .awaitContinue), (.sendFailed, .none), (.continueExpired, .none), (final(417), .none),
        (end, closed),
      ]),
    Scenario(
      "a broken connection without an answer", exchange(content: true),
      [(.headSent, .sendContent), (.sendFailed, .none), (.peerClosed(isAnnounced: true), .fail(.unanswered))]),
    Scenario(
      "a failure to send after everything was sent", exchange(),
      [(.headSent, .none), (.sendFailed, .none), (final(200), .none), (end, reused)]),
    Scenario(
      "FIN during a silent upload", exchange(content: true),
      [(.headSent, .sendContent), (.peerClosed(isAnnounced: true), .fail(.unanswered))]),
    Scenario(
      "FIN without an answer", exchange(),
      [(.headSent, .none), (.peerClosed(isAnnounced: true), .fail(.unanswered))]),
    Scenario(
      "FIN after an informational response", exchange(),
      [(.headSent, .none), (.informational(103), .none), (.peerClosed(isAnnounced: true), .fail(.cutOff))]),
    Scenario(
      "FIN within a body", exchange(),
      [(.headSent, .none), (final(200), .none), (.peerClosed(isAnnounced: true), .fail(.cutOff))]),
    Scenario(
      "FIN after the response, during the upload", exchange(content: true),
      [
        (.headSent, .sendContent), (final(200), .none), (end, .none),
        (.peerClosed(isAnnounced: false), closed),
      ]),
    Scenario(
      "a body that ends with its connection", exchange(),
      [(.headSent, .none), (final(200, open: true), .none), (.peerClosed(isAnnounced: true), closed)]),
    Scenario(
      "a body that ends with its connection, during the upload", exchange(content: true),
      [(.headSent, .sendContent), (final(200, open: true), .none), (.peerClosed(isAnnounced: true), closed)]),
    Scenario(
      "no close_notify", exchange(),
      [
        (.headSent, .none), (final(200, open: true), .none),
        (.peerClosed(isAnnounced: false), .fail(.cutOff)),
      ]),
    Scenario("101 unasked", exchange(), [(.headSent, .none), (final(101), .fail(.unrequestedUpgrade))]),
    Scenario(
      "101", exchange(upgrade: true),
      [(.headSent, .none), (final(101), .upgrade), (.peerClosed(isAnnounced: true), .none)]),
    Scenario(
      "101 after the content", exchange(content: true, upgrade: true),
      [(.headSent, .sendContent), (.contentSent, .none), (final(101), .upgrade)]),
    Scenario(
      "101 within the content", exchange(content: true, upgrade: true),
      [(.headSent, .sendContent), (final(101), .fail(.unrequestedUpgrade))]),
    Scenario(
      "no upgrade", exchange(upgrade: true), [(.headSent, .none), (final(200), .none), (end, reused)]),
    Scenario(
      "two heads", exchange(),
      [(.headSent, .none), (final(200), .none), (final(500, keepsAlive: false), .none), (end, reused)]),
    Scenario(
      "an end without a head", exchange(),
      [(.headSent, .none), (end, .none), (final(200), .none), (end, reused)]),
    Scenario(
      "events in a second time", exchange(content: true),
      [
        (.headSent, .sendContent), (.headSent, .none), (.contentSent, .none), (.contentSent, .none),
        (final(200), .none), (end, reused), (end, .none),
      ]),
  ]

  @Test("Each event has its action", arguments: scenarios)
  func scenario(_ scenario: Scenario) {
    var exchange = scenario.exchange
    for (event, action) in scenario.steps {
      let result = exchange.handle(event)
      #expect(result == action, "\(event)")
      switch result {
      case .complete, .fail, .upgrade, .sendAgainWithoutExpect: #expect(exchange.isOver, "\(event)")
      default: break
      }
    }
  }

  @Test("A connection that ends after a part of a head has cut it off") func partialHead() {
    var exchange = Self.exchange()
    #expect(exchange.handle(.headSent) == .none)
    #expect(!exchange.hasResponse)
    exchange.bytesReceived()
    #expect(exchange.hasResponse)
    #expect(exchange.handle(.peerClosed(isAnnounced: true)) == .fail(.cutOff))
  }

  @Test("Every head is a response") func responses() {
    for event in [Event.informational(103), .informational(100), Self.final(200)] {
      var exchange = Self.exchange()
      _ = exchange.handle(event)
      #expect(exchange.hasResponse, "\(event)")
    }
  }

  /// The facts that an observer of a walk knows without looking into the exchange.
  private struct Observation {
    var isHeadSent = false, isSendingContent = false, isContentSent = false, hasStopped = false
    var hasFinal = false, isResponseComplete = false, isDoubtful = false
    var status = 0, ends = 0

    mutating func note(_ action: Action) {
      switch action {
      case .sendContent: isSendingContent = true
      case .stopSending:
        hasStopped = true
        isSendingContent = false
      case .complete, .fail, .upgrade, .sendAgainWithoutExpect: ends += 1
      case .none, .awaitContinue: break
      }
    }

    mutating func note(_ event: Event, _ hasContent: Bool) {
      switch event {
      case .headSent: isHeadSent = true
      case .contentSent where isSendingContent: isContentSent = true
      case .final(let status, let keepsAlive, let open) where !hasFinal:
        (hasFinal, self.status) = (true, status)
        isDoubtful = isDoubtful || !keepsAlive || open
      case .responseEnded(let hasMore) where hasFinal && !isResponseComplete:
        isResponseComplete = true
        isDoubtful = isDoubtful || hasMore
      case .excessBytes, .peerClosed: isDoubtful = true
      case .sendFailed where !(isHeadSent && (!hasContent || isContentSent)):
        hasStopped = true
      default: break
      }
    }
  }

  private static func randomEvent(_ random: inout SeededGenerator) -> Event {
    let isFair = Bool.random(using: &random)
    switch Int.random(in: 0..<20, using: &random) {
    case 0...3: return .headSent
    case 4...6: return .contentSent
    case 7: return .continueExpired
    case 8: return .sendFailed
    case 9: return .informational([100, 103].randomElement(using: &random) ?? 100)
    case 10...13:
      let status = [101, 200, 204, 302, 401, 413, 417, 500].randomElement(using: &random) ?? 200
      return final(
        status, keepsAlive: Int.random(in: 0..<3, using: &random) > 0,
        open: Int.random(in: 0..<5, using: &random) == 0)
    case 14...17: return .responseEnded(hasMore: Int.random(in: 0..<4, using: &random) == 0)
    case 18: return .excessBytes
    default: return .peerClosed(isAnnounced: isFair)
    }
  }

  @Test("Random walks end once, and a connection is used again only after two whole messages")
  func walks() {
    for seed in UInt64(0)..<20_000 {
      var random = SeededGenerator(seed: seed)
      let hasContent = Bool.random(using: &random)
      let expects = Bool.random(using: &random)
      let upgrade = Int.random(in: 0..<4, using: &random) == 0
      var exchange = Self.exchange(content: hasContent, expects: expects, upgrade: upgrade)
      var seen = Observation()
      for _ in 0..<200 where !exchange.isOver {
        let event = Self.randomEvent(&random)
        let before = seen
        seen.note(event, hasContent)
        let action = exchange.handle(event)
        check(action, after: event, seen, before, hasContent, "seed \(seed)")
        seen.note(action)
      }
      #expect(exchange.isOver == (seen.ends == 1), "seed \(seed)")
      #expect(!exchange.isOver || exchange.handle(.headSent) == .none && exchange.handle(Self.end) == .none)
    }
  }

  private func check(
    _ action: Action, after event: Event, _ seen: Observation, _ before: Observation, _ hasContent: Bool,
    _ name: Comment
  ) {
    switch action {
    case .none: break
    case .sendContent:
      #expect(hasContent && seen.isHeadSent && !seen.hasStopped && !seen.isSendingContent, name)
    case .awaitContinue: #expect(event == .headSent && hasContent && !seen.hasFinal, name)
    case .stopSending: #expect(seen.hasFinal && !before.hasFinal && !seen.hasStopped, name)
    case .sendAgainWithoutExpect: #expect(seen.status == 417 && !seen.isContentSent && hasContent, name)
    case .upgrade: #expect(seen.status == 101 && seen.isHeadSent && (!hasContent || seen.isContentSent), name)
    case .complete(let reuse):
      #expect(seen.isResponseComplete || event == .peerClosed(isAnnounced: true), name)
      guard reuse else { return }
      #expect(
        seen.isHeadSent && (!hasContent || seen.isContentSent) && seen.isResponseComplete && !seen.isDoubtful
          && !seen.hasStopped, name)
    case .fail(.unrequestedUpgrade): #expect(seen.status == 101, name)
    case .fail: if case .peerClosed = event {} else { Issue.record(name) }
    }
  }
}
