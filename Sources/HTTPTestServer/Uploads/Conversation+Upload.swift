import HTTPWire

extension Conversation {
  /// Answers a request for an ``UploadEndpoint``. Returns whether another request can follow.
  func serve(_ route: UploadRoute, _ head: RequestHead, _ decoder: RequestBodyDecoder) throws -> Bool {
    var decoder = decoder
    let exchange = route.endpoint.begin(head, route)
    if let fields = exchange.informational {
      try channel.write(ReplyHead.head(status: 104, reason: nil, headers: fields))
    }
    if head.expectsContinue, !decoder.isComplete {
      try channel.write(ReplyHead.head(status: 100, reason: nil, headers: []))
    }
    guard try takeContent(of: exchange, &decoder, for: route.endpoint, head) else {
      channel.end(.reset, hasUnread: true)
      return false
    }
    let taken = exchange.target.map { route.endpoint.end(exchange, $0, path: route.path) }
    if exchange.losesResponse {
      channel.end(.close, hasUnread: false)
      return false
    }
    let reply = taken ?? exchange.refusal ?? .status(500)
    let plan = ReplyPlan(reply, to: ReplyPlan.Question(head))
    try perform(plan, of: reply)
    if plan.ending == .keepAlive { return true }
    channel.end(plan.ending, hasUnread: false)
    return false
  }

  /// Takes the content up to its end, or up to the byte behind which the connection breaks; then it returns false.
  private func takeContent(
    of exchange: UploadExchange, _ decoder: inout RequestBodyDecoder, for endpoint: UploadEndpoint,
    _ head: RequestHead
  ) throws -> Bool {
    var body = ReceivedBody()
    body.isComplete = false
    defer { record(head, body) }
    let cut = exchange.target?.cut ?? .max
    while true {
      var bytes: [UInt8] = []
      let count = try decoder.feed(buffer[...], into: &bytes)
      buffer.removeFirst(count)
      let kept = bytes.prefix(cut - body.length)
      if let target = exchange.target, !endpoint.take(kept, for: target) { return false }
      body.length += kept.count
      if body.length >= cut { return false }
      body.isComplete = decoder.isComplete
      if body.isComplete { return true }
      buffer = try receive(atMost: 65_536)
      if buffer.isEmpty { throw Channel.Failure.clientGone }
    }
  }
}
