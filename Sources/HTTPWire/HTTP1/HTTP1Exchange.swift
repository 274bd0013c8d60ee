/// The order of one request and its response on a connection of HTTP/1.1. Pure: its owner reports events, and performs
/// the returned action.
///
/// Request and response are independent of each other (RFC 9112 §9.5): a response below 400 is delivered while the
/// content of the request is still being sent, and the exchange is over when both have ended.
package struct HTTP1Exchange: Sendable, Equatable {
  /// The progress of the request.
  package enum Sending: Sendable, Equatable {
    case head
    /// The head was sent, and its content waits for the response 100.
    case awaitingContinue
    case content
    case done
    /// The rest of the request is not sent: the server has refused it, or the connection accepts no more bytes.
    case stopped
  }

  /// The progress of the response.
  package enum Receiving: Sendable, Equatable { case head, body, done }

  package enum Event: Sendable, Equatable {
    /// The connection has accepted the head of the request.
    case headSent
    /// The server did not answer the expectation in time.
    case continueExpired
    /// The connection has accepted the content of the request.
    case contentSent
    /// The connection accepts no more bytes. The server may have answered before it closed the connection, so the owner
    /// continues reading to the end.
    case sendFailed
    /// The head of an informational response has arrived.
    case informational(Int)
    /// The head of the final response has arrived.
    ///
    /// - Parameters:
    ///   - keepsAlive: Whether the server keeps the connection; see ``ConnectionPersistence``.
    ///   - endsWithConnection: Whether the end of the connection ends the body.
    case final(status: Int, keepsAlive: Bool, endsWithConnection: Bool)
    /// The response is complete; `hasMore` if bytes follow it.
    case responseEnded(hasMore: Bool)
    /// Bytes arrived after the response.
    case excessBytes
    /// No more bytes will arrive.
    ///
    /// - Parameter isAnnounced: Whether the peer has ended the connection in an orderly manner: by FIN, and by
    ///   `close_notify` if the connection is secured by TLS. False for a reset.
    case peerClosed(isAnnounced: Bool)
  }

  package enum Action: Sendable, Equatable {
    case none
    case sendContent
    /// Send the content when the server answers 100, or when it does not answer for ``HTTP1Exchange/continueTimeout``.
    case awaitContinue
    /// Stop sending the request. The response continues.
    case stopSending
    /// Close the connection, and send the request on another one without `Expect`.
    case sendAgainWithoutExpect
    case complete(reuse: Bool)
    /// The bytes after the head belong to the other protocol.
    case upgrade
    case fail(Failure)
  }

  package enum Failure: Sendable, Equatable {
    /// The connection ended before a byte of a response had arrived.
    case unanswered
    /// The connection ended within the response.
    case cutOff
    /// The server switched to a protocol that the request did not ask for, or before it had the whole request (RFC 9110
    /// §15.2.2).
    case unrequestedUpgrade
  }

  /// The time that a request with `Expect: 100-continue` waits for an answer (RFC 9110 §10.1.1).
  package static var continueTimeout: Duration { .seconds(1) }

  private let hasContent: Bool
  private let expectsContinue: Bool
  private let asksForUpgrade: Bool
  /// Whether the content can be sent again from its beginning.
  package var isRepeatable: Bool
  package private(set) var sending = Sending.head
  package private(set) var receiving = Receiving.head
  /// Whether a byte of a response has arrived. Then the request is not sent again.
  package private(set) var hasResponse = false
  package private(set) var isOver = false
  private var endsWithConnection = false
  /// Whether the server keeps the connection, as far as is known.
  private var keepsAlive: Bool
  /// Whether 100 came before the whole head was sent.
  private var mayContinue = false

  /// Makes the exchange of a request that has not been sent.
  ///
  /// - Parameters:
  ///   - head: The summary of the request's head.
  ///   - hasContent: Whether content follows the head.
  ///   - isRepeatable: Whether the content can be sent again from its beginning.
  package init(_ head: RequestHeadWriter.Summary, hasContent: Bool, isRepeatable: Bool = true) {
    self.hasContent = hasContent
    self.isRepeatable = isRepeatable
    expectsContinue = hasContent && head.expectsContinue
    asksForUpgrade = head.asksForUpgrade
    keepsAlive = !head.closesConnection
  }

  /// Records that bytes of a response have arrived.
  package mutating func bytesReceived() { hasResponse = true }

  /// Takes an event and returns what the owner does next. The owner reads the connection while it sends, so that an
  /// early response and the end of the connection are seen during an upload. After the end, events have no effect.
  package mutating func handle(_ event: Event) -> Action {
    guard !isOver else { return .none }
    switch event {
    case .headSent: return headSent()
    case .continueExpired: return continueSending()
    case .contentSent: return sending == .content ? requestEnded() : .none
    case .sendFailed: return sendFailed()
    case .informational(let status):
      hasResponse = true
      guard status == 100 else { return .none }
      mayContinue = true
      return continueSending()
    case .final(let status, let keepsAlive, let endsWithConnection):
      guard receiving == .head else { return .none }
      hasResponse = true
      self.keepsAlive = self.keepsAlive && keepsAlive && !endsWithConnection
      self.endsWithConnection = endsWithConnection
      return headReceived(status)
    case .responseEnded(let hasMore):
      guard receiving == .body else { return .none }
      if hasMore { keepsAlive = false }
      return responseEnded()
    case .excessBytes:
      keepsAlive = false
      return .none
    case .peerClosed(let isAnnounced): return peerClosed(isAnnounced)
    }
  }
}

extension HTTP1Exchange {
  private mutating func headSent() -> Action {
    guard sending == .head else { return .none }
    guard hasContent else { return requestEnded() }
    if expectsContinue, !mayContinue {
      sending = .awaitingContinue
      return .awaitContinue
    }
    sending = .content
    return .sendContent
  }

  private mutating func continueSending() -> Action {
    guard sending == .awaitingContinue else { return .none }
    sending = .content
    return .sendContent
  }

  private mutating func sendFailed() -> Action {
    guard sending != .done, sending != .stopped else { return .none }
    sending = .stopped
    return receiving == .done ? complete() : .none
  }

  private mutating func headReceived(_ status: Int) -> Action {
    if status == 101 {
      guard asksForUpgrade, sending == .done else { return fail(.unrequestedUpgrade) }
      return finish(.upgrade)
    }
    let isComplete = sending == .done || sending == .stopped
    if status == 417, expectsContinue, !isComplete, isRepeatable || sending != .content {
      return finish(.sendAgainWithoutExpect)
    }
    receiving = .body
    // A server that refuses a request does not read its content, and content that has not begun is not sent after a
    // final response.
    let hasBegun = sending == .content || sending == .head && !expectsContinue
    guard !isComplete, status >= 400 || !hasBegun else { return .none }
    sending = .stopped
    return .stopSending
  }

  private mutating func requestEnded() -> Action {
    sending = .done
    return receiving == .done ? complete() : .none
  }

  private mutating func responseEnded() -> Action {
    receiving = .done
    return sending == .done || sending == .stopped ? complete() : .none
  }

  private mutating func peerClosed(_ isAnnounced: Bool) -> Action {
    keepsAlive = false
    switch receiving {
    case .head: return fail(hasResponse ? .cutOff : .unanswered)
    case .body:
      guard endsWithConnection, isAnnounced else { return fail(.cutOff) }
      receiving = .done
      return complete()
    case .done: return complete()
    }
  }

  /// Ends the exchange. A connection with an incomplete request cannot carry another one.
  private mutating func complete() -> Action {
    finish(.complete(reuse: keepsAlive && sending == .done))
  }

  private mutating func fail(_ failure: Failure) -> Action { finish(.fail(failure)) }

  private mutating func finish(_ action: Action) -> Action {
    isOver = true
    return action
  }
}

/// Whether a connection can carry another request after a response, and for how long it may be idle before (RFC 9112
/// §9.3).
package struct ConnectionPersistence: Sendable, Equatable {
  /// The longest time for which a connection is idle and still used again.
  package static var longestIdleTime: Duration { .seconds(118) }

  /// Whether the server keeps the connection after the response.
  package let isPersistent: Bool
  /// The time for which the server keeps an idle connection, in seconds; `nil` if it does not say so. It is a hint of
  /// `Keep-Alive` (RFC 2068 §19.7.1.1).
  package let announcedIdleTime: Int?

  /// Reads the head of a response.
  ///
  /// - Parameters:
  ///   - framing: The framing of the response. A connection is not used again if another reader could have found
  ///     another end of the body.
  ///   - isFromProxy: Whether a proxy answers that forwards the request. Proxies of HTTP/1.0 say `Proxy-Connection`.
  package init(_ head: ResponseHead, framing: MessageFraming, isFromProxy: Bool) {
    var closes = false
    var keepsAlive = false
    var idleTime: Int?
    let marks = head.block.marks
    // HTTP/1.1 keeps connections by default, so that `keep-alive` has no mark.
    if marks.contains(.connection) || head.version == .http1_0 {
      // A function, because a closure that is stored allocates memory.
      func note(_ token: UnsafeRawBufferPointer) {
        if FieldName.equal(token, lowercase: "close") { closes = true }
        if FieldName.equal(token, lowercase: "keep-alive") { keepsAlive = true }
      }
      head.block.forEachElement(of: "Connection", note)
      if isFromProxy { head.block.forEachElement(of: "Proxy-Connection", note) }
    }
    if marks.contains(.keepAlive) {
      head.block.forEachElement(of: "Keep-Alive") { idleTime = Self.timeout($0) ?? idleTime }
    }
    isPersistent = !closes && !framing.isAmbiguous(head.version) && (head.version != .http1_0 || keepsAlive)
    announcedIdleTime = idleTime
  }

  /// The time for which the connection may be idle before another request uses it. It is shorter than what the server
  /// has announced, so that the request does not meet the end of the connection.
  package var idleTime: Duration {
    guard let announcedIdleTime else { return Self.longestIdleTime }
    return min(Self.longestIdleTime, .seconds(max(0, announcedIdleTime - 1)))
  }

  /// Reads a parameter `timeout=seconds`; `nil` for any other one.
  private static func timeout(_ parameter: UnsafeRawBufferPointer) -> Int? {
    guard let equals = parameter.firstIndex(of: UInt8(ascii: "=")) else { return nil }
    let name = FieldName.trimmed(UnsafeRawBufferPointer(rebasing: parameter[..<equals]))
    let digits = FieldName.trimmed(UnsafeRawBufferPointer(rebasing: parameter[(equals + 1)...]))
    guard FieldName.equal(name, lowercase: "timeout"), !digits.isEmpty else { return nil }
    var seconds = 0
    for byte in digits {
      guard byte >= 0x30, byte <= 0x39 else { return nil }
      seconds = min(seconds * 10 + Int(byte - 0x30), 1_000_000)
    }
    return seconds
  }
}
