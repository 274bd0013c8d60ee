import Glibc
import HTTPWire

/// Reads the requests of one connection and answers them, one after the other, on the connection's thread.
final class Conversation {
  private let id: Int
  private let connection: AcceptedConnection
  let channel: Channel
  private let core: ServerCore
  /// The received bytes that belong to no request yet.
  var buffer: [UInt8] = []
  private var requestIndex = 0
  private var tls: RecordedRequest.TLSDetails?

  init(id: Int, _ connection: AcceptedConnection, channel: Channel, core: ServerCore) {
    self.id = id
    self.connection = connection
    self.channel = channel
    self.core = core
  }

  /// Runs until the connection can accept no further request. Does not close the descriptor.
  func run(_ effect: ConnectionEffect) {
    do throws(Channel.Failure) {
      guard try perform(effect) else { return }
      if let context = core.tls { try shakeHands(context) }
      while try serveOne() { requestIndex += 1 }
    } catch {
      channel.tls = nil
      switch error {
      case .stopped, .clientGone, .timedOut: break
      case .tls:
        // OpenSSL has sent an alert, which must reach a client that still sends.
        channel.end(.close, hasUnread: true)
      }
    }
  }

  private func shakeHands(_ context: TLSContext) throws(Channel.Failure) {
    guard let session = context.makeSession(descriptor: channel.descriptor) else { throw .tls }
    try session.accept(over: channel)
    channel.tls = session
    tls = session.details
  }

  /// Returns whether the connection continues normally.
  private func perform(_ effect: ConnectionEffect) throws(Channel.Failure) -> Bool {
    switch effect {
    case .none: return true
    case .stall: try channel.stall()
    case .closeOnAccept: channel.end(.close, hasUnread: true)
    case .resetOnAccept: channel.end(.reset, hasUnread: false)
    case .closeInHandshake: try answerFirstBytes(with: [])
    case .plainText:
      let text = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
      try answerFirstBytes(with: Array(text.utf8))
    case .alert(let code): try answerFirstBytes(with: [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, code])
    }
    return false
  }

  private func answerFirstBytes(with answer: [UInt8]) throws(Channel.Failure) {
    _ = try channel.read(atMost: 16_384)
    try channel.write(answer)
    channel.end(.close, hasUnread: true)
  }

  // MARK: One request

  /// Returns whether another request can follow.
  private func serveOne() throws(Channel.Failure) -> Bool {
    do {
      guard let head = try readHead() else {
        channel.end(.close, hasUnread: false)
        return false
      }
      try head.checkHost()
      return try answer(head, RequestBodyDecoder(head))
    } catch let refusal as RequestRefusal {
      var reply = Reply.text(refusal.text).closing()
      reply.status = refusal.status
      try perform(ReplyPlan(reply, to: .init()), of: reply, isComplete: true)
      channel.end(.close, hasUnread: true)
      return false
    } catch let failure as Channel.Failure {
      throw failure
    } catch {
      preconditionFailure("an error of an unknown kind: \(error)")
    }
  }

  /// Returns `nil` when the client has ended the connection instead.
  private func readHead() throws -> RequestHead? {
    var isIdle = buffer.isEmpty
    if isIdle { connection.setIdle(true) }
    while true {
      if case .head(let head, let length) = try RequestHeadParser.parse(buffer) {
        buffer.removeFirst(length)
        return head
      }
      let bytes = try receive(atMost: 32_768)
      if bytes.isEmpty { return nil }
      if isIdle {
        connection.setIdle(false)
        isIdle = false
      }
      buffer += bytes
    }
  }

  private func answer(_ head: RequestHead, _ decoder: RequestBodyDecoder) throws -> Bool {
    var decoder = decoder
    let scripted = core.nextScriptedReply()
    let path = RequestTarget(head.target).path
    if scripted == nil, let route = core.routes.upload(at: path) { return try serve(route, head, decoder) }
    let match = core.routes.match(method: head.method, path: path)
    var treatment = scripted?.requestBody ?? match.requestBody
    if decoder.isComplete, treatment != .counted { treatment = .recorded }
    if case .held(let gate) = treatment { try channel.pass(gate) }

    var body = ReceivedBody()
    body.isChunked = decoder.isChunked
    body.isComplete = decoder.isComplete
    if treatment != .ignored, treatment != .afterReply {
      if head.expectsContinue, !decoder.isComplete, buffer.isEmpty {
        try channel.write(ReplyHead.head(status: 100, reason: nil, headers: []))
      }
      try readBody(&decoder, into: &body, keepsBytes: treatment != .counted)
      if !body.isComplete {
        record(head, body)
        throw Channel.Failure.clientGone
      }
    }
    let request = makeRequest(head, body)
    if treatment != .afterReply { core.record(request) }

    var reply = scripted ?? match.reply(to: request)
    if let endpoint = reply.webSocket { return try upgrade(to: endpoint, as: reply, head) }
    if treatment == .ignored { reply.closesConnection = true }
    let ending = try send(reply, to: head, isComplete: decoder.isComplete)
    if treatment == .afterReply {
      // A refusal of the body would be a second response.
      do { try readBody(&decoder, into: &body, keepsBytes: true) } catch is RequestRefusal {}
      record(head, body)
    }
    if ending == .keepAlive, decoder.isComplete { return true }
    channel.end(ending, hasUnread: !decoder.isComplete)
    return false
  }

  /// Sends a reply, and returns how the connection goes on.
  ///
  /// - Parameter isComplete: Whether the request has been read to its end.
  func send(_ reply: Reply, to head: RequestHead, isComplete: Bool) throws(Channel.Failure)
    -> ConnectionEnding
  {
    let plan = ReplyPlan(reply, to: ReplyPlan.Question(head))
    try perform(plan, of: reply, isComplete: isComplete)
    return plan.ending
  }

  private func upgrade(
    to endpoint: WebSocketEndpoint, as reply: Reply, _ head: RequestHead
  ) throws(Channel.Failure) -> Bool {
    if let gate = reply.gate { try channel.pass(gate) }
    try channel.pause(for: reply.delay)
    let ending = try serve(endpoint, head, over: channel, input: buffer)
    channel.end(ending, hasUnread: false)
    return false
  }

  private func perform(_ plan: ReplyPlan, of reply: Reply, isComplete: Bool) throws(Channel.Failure) {
    if let gate = reply.gate { try channel.pass(gate) }
    try channel.pause(for: reply.delay)
    let leavesIdle = plan.ending == .keepAlive && isComplete && buffer.isEmpty
    for (index, step) in plan.steps.enumerated() {
      let finished = leavesIdle && index == plan.steps.count - 1 ? connection : nil
      switch step {
      case .send(let bytes): try channel.write(bytes, finishing: finished)
      case .sendPattern(let range): try send(range, finishing: finished)
      case .pause(let duration): try channel.pause(for: duration)
      case .gate(let gate): try channel.pass(gate)
      case .stall: try channel.stall()
      }
    }
  }

  private func send(_ range: Range<Int>, finishing connection: AcceptedConnection?) throws(Channel.Failure) {
    var start = range.lowerBound
    while start < range.upperBound {
      let end = min(start + 65_536, range.upperBound)
      let bytes = Reply.patternBytes(start..<end)
      try channel.write(bytes, finishing: end == range.upperBound ? connection : nil)
      start = end
    }
  }

  func receive(atMost count: Int) throws(Channel.Failure) -> [UInt8] {
    let bytes = try channel.read(atMost: count)
    core.received(byteCount: bytes.count)
    return bytes
  }

  // MARK: Bodies and records

  /// Reads until the body is complete or the client ends the connection.
  private func readBody(
    _ decoder: inout RequestBodyDecoder, into body: inout ReceivedBody, keepsBytes: Bool
  ) throws {
    do {
      while true {
        var bytes: [UInt8] = []
        // Also of a malformed body, the part before the fault counts.
        defer {
          body.length += bytes.count
          if keepsBytes { body.bytes += bytes }
        }
        let taken = try decoder.feed(buffer[...], into: &bytes)
        buffer.removeFirst(taken)
        if decoder.isComplete { break }
        buffer = try receive(atMost: 65_536)
        if buffer.isEmpty { break }
      }
    } catch Channel.Failure.clientGone {
      // The part received so far is recorded.
    }
    body.isComplete = decoder.isComplete
    body.trailers = decoder.trailers
  }

  private func makeRequest(_ head: RequestHead, _ body: ReceivedBody) -> RecordedRequest {
    let origin = RequestOrigin(connection: id, indexOnConnection: requestIndex, tls: tls)
    return RecordedRequest(head: head, body: body, origin: origin)
  }

  func record(_ head: RequestHead, _ body: ReceivedBody) {
    core.record(makeRequest(head, body))
  }
}
