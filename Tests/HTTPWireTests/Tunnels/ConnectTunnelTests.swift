import HTTPWire
import Testing

@Suite("Tunnels through proxies of HTTP") struct ConnectTunnelTests {
  typealias Failure = ConnectTunnel.Failure

  private static let origin = Origin(scheme: "https", host: "a.example", port: nil)
  private static let request = "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n"

  private static func request(_ login: String) -> String {
    request.dropLast() + "Proxy-Authorization: \(login)\r\n\r\n"
  }

  /// The steps of a tunnel, as an owner sees them.
  enum Event: Equatable, Sendable {
    case sent(String), asked([String], round: Int, keepsConnection: Bool), restarted, again
    case open(unread: String)
    case failed(Failure)
  }

  /// The proxy of a tunnel: it sends one text of `replies` for each request, and `nil` to end the connection.
  private struct Proxy {
    var replies: ArraySlice<String?>
    /// The bytes that the tunnel has not consumed.
    var rest: [UInt8] = []

    /// Returns the next step of a tunnel that has sent a request or needs more bytes; `nil` if there are none.
    mutating func next(_ tunnel: inout ConnectTunnel, afterRequest: Bool, pieceSize: Int)
      -> ConnectTunnel.TunnelStep?
    {
      if afterRequest {
        guard let reply = replies.popFirst() else { return nil }
        guard let reply else { return tunnel.connectionEnded() }
        rest += reply.utf8
      } else if rest.isEmpty, replies.first == .some(nil) {
        replies = replies.dropFirst()
        return tunnel.connectionEnded()
      }
      return read(&tunnel, pieceSize)
    }

    /// Gives a piece of the bytes to a tunnel, also if there are none.
    mutating func read(_ tunnel: inout ConnectTunnel, _ pieceSize: Int) -> ConnectTunnel.TunnelStep? {
      let piece = Array(rest.prefix(pieceSize))
      var position = 0
      let step = piece.withUnsafeBytes { tunnel.read($0, from: &position) }
      rest = Array(rest.dropFirst(position))
      if case .needsMore = step, piece.isEmpty, replies.first != .some(nil) { return nil }
      return step
    }
  }

  /// Runs a tunnel to its end.
  ///
  /// - Parameter logins: The answers to the questions; `nil` after the last one. Those that begin with C belong to
  ///   their connection.
  private static func run(
    _ tunnel: ConnectTunnel, _ replies: [String?], logins: [String?] = [], pieceSize: Int = .max
  ) -> [Event] {
    var tunnel = tunnel
    var events: [Event] = []
    var proxy = Proxy(replies: replies[...])
    var logins = logins[...]
    var step: ConnectTunnel.TunnelStep? = tunnel.begin()
    while let current = step, events.count < 60 {
      switch current {
      case .send(let bytes):
        events.append(.sent(String(decoding: bytes, as: UTF8.self)))
        step = proxy.next(&tunnel, afterRequest: true, pieceSize: pieceSize)
      case .needsMore: step = proxy.next(&tunnel, afterRequest: false, pieceSize: pieceSize)
      case .ask(let question):
        events.append(
          .asked(question.challenges, round: question.round, keepsConnection: question.keepsConnection))
        let login: String? = logins.popFirst() ?? nil
        step = tunnel.answered(login, belongsToConnection: login?.hasPrefix("C ") == true)
        if case .needsMore? = step { step = proxy.read(&tunnel, pieceSize) }
      case .restartLogin:
        events.append(.restarted)
        step = tunnel.answered(logins.popFirst() ?? nil)
      case .connectAgain:
        events.append(.again)
        proxy.rest = []
        step = tunnel.begin()
      case .open: return events + [.open(unread: String(decoding: proxy.rest, as: UTF8.self))]
      case .fail(let failure): return events + [.failed(failure)]
      }
    }
    return events
  }

  private static let ok = "HTTP/1.1 200 OK\r\n\r\n"

  private static func challenge(_ body: String = "", _ fields: String..., status: Int = 407) -> String {
    let fields = (["Proxy-Authenticate: Basic realm=\"p\"", "Content-Length: \(body.utf8.count)"] + fields)
    return "HTTP/1.1 \(status) Login\r\n" + fields.map { "\($0)\r\n" }.joined() + "\r\n" + body
  }

  private static func asked(_ round: Int, keeps: Bool = true, _ more: String...) -> Event {
    .asked(["Basic realm=\"p\""] + more, round: round, keepsConnection: keeps)
  }

  struct Scenario: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let login: String?
    let replies: [String?]
    let logins: [String?]
    let events: [Event]

    init(
      _ name: String, login: String? = nil, _ replies: [String?], logins: [String?] = [], _ events: [Event]
    ) {
      testDescription = name
      (self.login, self.replies, self.logins, self.events) = (login, replies, logins, events)
    }
  }

  static let open: [Scenario] = [
    Scenario("200", [ok], [.sent(request), .open(unread: "")]),
    Scenario("299 in HTTP/1.0", ["HTTP/1.0 299\r\n\r\n"], [.sent(request), .open(unread: "")]),
    Scenario(
      "bytes of the target", [ok + "220 ready\r\n"], [.sent(request), .open(unread: "220 ready\r\n")]),
    Scenario(
      "a length is ignored", ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"],
      [.sent(request), .open(unread: "hello")]),
    Scenario(
      "a coding is ignored", ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0"],
      [.sent(request), .open(unread: "0")]),
    Scenario(
      "informational responses are skipped",
      ["HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 103 Early\r\nA: b\r\n\r\n" + ok], [.sent(request), .open(unread: "")]),
    Scenario("a login at first", login: "Basic x", [ok], [.sent(request("Basic x")), .open(unread: "")]),
    Scenario(
      "a login after a question", [challenge(), ok], logins: ["Basic x"],
      [.sent(request), asked(1), .sent(request("Basic x")), .open(unread: "")]),
    Scenario(
      "a body before the next request", [challenge("body"), ok], logins: ["Basic x"],
      [.sent(request), asked(1), .sent(request("Basic x")), .open(unread: "")]),
    Scenario(
      "chunks before the next request",
      [
        "HTTP/1.1 407 Login\r\nProxy-Authenticate: A\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        ok,
      ], logins: ["A x"],
      [
        .sent(request), .asked(["A"], round: 1, keepsConnection: true), .sent(request("A x")),
        .open(unread: ""),
      ]),
    Scenario(
      "401 like 407", [challenge("", "WWW-Authenticate: B", status: 401), ok], logins: ["Basic x"],
      [.sent(request), asked(1, "B"), .sent(request("Basic x")), .open(unread: "")]),
    Scenario(
      "407 has no challenge of servers", [challenge("", "WWW-Authenticate: B"), ok], logins: ["Basic x"],
      [.sent(request), asked(1), .sent(request("Basic x")), .open(unread: "")]),
    Scenario(
      "several rounds", [challenge(), challenge("b"), challenge(), ok], logins: ["N 1", "N 2", "N 3"],
      [
        .sent(request), asked(1), .sent(request("N 1")), asked(2), .sent(request("N 2")), asked(3),
        .sent(request("N 3")), .open(unread: ""),
      ]),
    Scenario(
      "a proxy that closes", [challenge("", "Connection: close"), ok], logins: ["Basic x"],
      [.sent(request), asked(1, keeps: false), .again, .sent(request("Basic x")), .open(unread: "")]),
    Scenario(
      "a proxy that says so in its own way", [challenge("", "Proxy-Connection: close"), ok],
      logins: ["Basic x"],
      [.sent(request), asked(1, keeps: false), .again, .sent(request("Basic x")), .open(unread: "")]),
    Scenario(
      "a body that ends with its connection", ["HTTP/1.1 407 Login\r\n\r\nbody", ok], logins: ["Basic x"],
      [
        .sent(request), .asked([], round: 1, keepsConnection: false), .again, .sent(request("Basic x")),
        .open(unread: ""),
      ]),
    Scenario(
      "bytes behind a body", [challenge("body") + "HTTP/1.1 200 OK\r\n\r\n", ok], logins: ["Basic x"],
      [.sent(request), asked(1), .again, .sent(request("Basic x")), .open(unread: "")]),
    Scenario(
      "malformed chunks",
      ["HTTP/1.1 407 Login\r\nProxy-Authenticate: A\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", ok],
      logins: ["A x"],
      [
        .sent(request), .asked(["A"], round: 1, keepsConnection: true), .again, .sent(request("A x")),
        .open(unread: ""),
      ]),
    Scenario(
      "an end within a body", [challenge("body").dropLast() + "", nil, ok], logins: ["Basic x"],
      [.sent(request), asked(1), .again, .sent(request("Basic x")), .open(unread: "")]),
    Scenario(
      "an end instead of a further response", [challenge(), nil, ok], logins: ["Basic x"],
      [
        .sent(request), asked(1), .sent(request("Basic x")), .again, .sent(request("Basic x")),
        .open(unread: ""),
      ]),
    Scenario(
      "an answer of a connection that ends within a body",
      [challenge(), challenge("body").dropLast() + "", nil, challenge(), ok],
      logins: ["N 1", "C 2", "N 1", "C 2"],
      [
        .sent(request), asked(1), .sent(request("N 1")), asked(2), .restarted, .again, .sent(request("N 1")),
        asked(3), .sent(request("C 2")), .open(unread: ""),
      ]),
    Scenario(
      "an answer of a connection that ends instead of a further response",
      [challenge(), challenge(), nil, ok], logins: ["N 1", "C 2", "N 1"],
      [
        .sent(request), asked(1), .sent(request("N 1")), asked(2), .sent(request("C 2")), .restarted, .again,
        .sent(request("N 1")), .open(unread: ""),
      ]),
    Scenario(
      "an answer of a connection with malformed chunks",
      ["HTTP/1.1 407 Login\r\nProxy-Authenticate: A\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", ok],
      logins: ["C 1", "N 1"],
      [
        .sent(request), .asked(["A"], round: 1, keepsConnection: true), .restarted, .again,
        .sent(request("N 1")), .open(unread: ""),
      ]),
  ]

  static let failing: [Scenario] = [
    Scenario("403", ["HTTP/1.1 403 No\r\n\r\n"], [.sent(request), .failed(.refused(status: 403))]),
    Scenario(
      "302", ["HTTP/1.1 302 No\r\nLocation: /\r\n\r\n"], [.sent(request), .failed(.refused(status: 302))]),
    Scenario(
      "101", ["HTTP/1.1 101 Up\r\n\r\n"], [.sent(request), .failed(.invalidResponse(.unrequestedUpgrade))]),
    Scenario(
      "no login", [challenge("body")], [.sent(request), asked(1), .failed(.loginRequired(status: 407))]),
    Scenario(
      "no login for 401", [challenge(status: 401)],
      [.sent(request), asked(1), .failed(.loginRequired(status: 401))]),
    Scenario(
      "a login that is not accepted", [challenge(), challenge()], logins: ["Basic x"],
      [
        .sent(request), asked(1), .sent(request("Basic x")), asked(2), .failed(.loginRejected(status: 407)),
      ]),
    Scenario(
      "a first login that is not accepted", login: "Basic x", [challenge()],
      [.sent(request("Basic x")), asked(1), .failed(.loginRejected(status: 407))]),
    Scenario("no HTTP", ["SOCKS"], [.sent(request), .failed(.invalidResponse(.statusLine))]),
    Scenario(
      "a bad field", ["HTTP/1.1 200 OK\r\nA b\r\n\r\n"],
      [.sent(request), .failed(.invalidResponse(.missingColon))]),
    Scenario("no response", [nil], [.sent(request), .failed(.closed)]),
    Scenario("a part of a response", ["HTTP/1.1 2", nil], [.sent(request), .failed(.closed)]),
    Scenario(
      "a part of a further response", [challenge(), "HTTP/1.1 2", nil], logins: ["Basic x"],
      [.sent(request), asked(1), .sent(request("Basic x")), .failed(.closed)]),
    Scenario(
      "two ends in a row", [challenge(), nil, nil], logins: ["Basic x"],
      [
        .sent(request), asked(1), .sent(request("Basic x")), .again, .sent(request("Basic x")),
        .failed(.closed),
      ]),
    Scenario(
      "an answer of a connection that ends, and no other login", [challenge(), nil, ok], logins: ["C 1"],
      [.sent(request), asked(1), .sent(request("C 1")), .restarted, .failed(.closed)]),
    Scenario(
      "a login that is not valid", login: "Basic x\r\nA: b", [ok],
      [.failed(.invalidRequest(.field(.value(field: "Proxy-Authorization", character: 0x0D))))]),
  ]

  @Test("A tunnel opens or fails, in pieces of any size", arguments: open + failing)
  func scenario(_ scenario: Scenario) {
    let tunnel = ConnectTunnel(to: Self.origin, login: scenario.login)
    let longest = scenario.replies.map { $0?.utf8.count ?? 1 }.max() ?? 1
    for size in Array(1...min(40, longest)) + [.max] {
      // Bytes after a response are seen if they arrive with its end.
      if scenario.testDescription == "bytes behind a body", size < 24 { continue }
      let events = Self.run(tunnel, scenario.replies, logins: scenario.logins, pieceSize: size)
      #expect(events == scenario.events, "in pieces of \(size)")
    }
  }

  @Test("A proxy that asks for ever is given up") func endlessQuestions() {
    let rounds = ConnectTunnel.mostRounds
    let events = Self.run(
      ConnectTunnel(to: Self.origin), (0..<20).map { _ in Self.challenge() },
      logins: (0..<20).map { "N \($0)" })
    #expect(events.last == .failed(.loginRejected(status: 407)))
    #expect(events.count { if case .sent = $0 { true } else { false } } == rounds + 1)
    let reconnected = Self.run(
      ConnectTunnel(to: Self.origin), (0..<20).map { _ in Self.challenge("", "Connection: close") },
      logins: (0..<20).map { "N \($0)" })
    #expect(reconnected.last == .failed(.loginRejected(status: 407)))
    #expect(reconnected.count { $0 == .again } == rounds)
  }

  @Test("A body of 64 KiB is read, and a longer one is not", arguments: [7, 4_096, Int.max]) func bodyLimit(
    size: Int
  ) {
    for (excess, isRead) in [(0, true), (1, false)] {
      let body = String(repeating: "b", count: ConnectTunnel.bodySizeLimit + excess)
      let events = Self.run(
        ConnectTunnel(to: Self.origin), [Self.challenge(body), Self.ok], logins: ["Basic x"], pieceSize: size)
      #expect(events.contains(.again) != isRead, "\(excess)")
      #expect(events.contains(Self.asked(1, keeps: isRead)), "\(excess)")
      #expect(events.last == .open(unread: ""))
    }
    let chunk = "1\r\nb\r\n"
    let head = "HTTP/1.1 407 Login\r\nTransfer-Encoding: chunked\r\n\r\n"
    for (count, isRead) in [(10_000, true), (11_000, false)] {
      let reply = head + String(repeating: chunk, count: count) + "0\r\n\r\n"
      let events = Self.run(
        ConnectTunnel(to: Self.origin), [reply, Self.ok], logins: ["Basic x"], pieceSize: size)
      #expect(events.contains(.again) != isRead, "\(count) chunks")
      #expect(events.last == .open(unread: ""))
    }
  }

  @Test("Heads of 64 KiB are read, and longer ones are not") func headLimit() {
    for (excess, isRead) in [(0, true), (1, false)] {
      let field = "A: " + String(repeating: "v", count: ConnectTunnel.headSizeLimit - 5 + excess) + "\r\n"
      let events = Self.run(ConnectTunnel(to: Self.origin), ["HTTP/1.1 200 OK\r\n\(field)\r\n"])
      #expect(events.last == (isRead ? .open(unread: "") : .failed(.headTooLarge)))
    }
    let endless = String(repeating: "HTTP/1.1 103 Early\r\n\r\n", count: 10_000)
    #expect(Self.run(ConnectTunnel(to: Self.origin), [endless]).last == .failed(.headTooLarge))
  }

  @Test("If a connection ends while a login is looked up, the tunnel connects again") func endWhileAsking() {
    var tunnel = ConnectTunnel(to: Self.origin)
    _ = tunnel.begin()
    var position = 0
    let reply = Array(Self.challenge().utf8)
    guard case .ask = reply.withUnsafeBytes({ tunnel.read($0, from: &position) }) else {
      Issue.record("no question")
      return
    }
    #expect(position == reply.count)
    guard case .needsMore = tunnel.connectionEnded(), case .connectAgain = tunnel.answered("Basic x"),
      case .send(let bytes) = tunnel.begin()
    else {
      Issue.record("the proxy is not connected to again")
      return
    }
    #expect(String(decoding: bytes, as: UTF8.self) == Self.request("Basic x"))
    guard case .needsMore = tunnel.answered("Basic y") else {
      Issue.record("an answer without a question")
      return
    }
  }

  @Test("The end of a tunnel is permanent") func permanence() {
    for (reply, isOpen) in [(Self.ok, true), ("HTTP/1.1 500 No\r\n\r\n", false)] {
      var tunnel = ConnectTunnel(to: Self.origin, fields: [HTTPHeader(name: "User-Agent", value: "u")])
      guard case .send(let request) = tunnel.begin() else {
        Issue.record("no request")
        return
      }
      #expect(String(decoding: request, as: UTF8.self).hasSuffix("\r\nUser-Agent: u\r\n\r\n"))
      func isOver(_ step: ConnectTunnel.TunnelStep) -> Bool {
        switch step {
        case .open: isOpen
        case .fail(let failure): !isOpen && failure == .refused(status: 500)
        default: false
        }
      }
      for bytes in [Array(reply.utf8), [], Array("more".utf8)] {
        var position = 0
        #expect(isOver(bytes.withUnsafeBytes { tunnel.read($0, from: &position) }))
        #expect(position == (bytes.count > 4 ? bytes.count : 0))
      }
      #expect(isOver(tunnel.connectionEnded()) && isOver(tunnel.begin()))
    }
  }
}
