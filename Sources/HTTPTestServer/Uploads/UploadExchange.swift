import HTTPWire

/// One request to an ``UploadEndpoint``: decided about before its content is read, and answered after it.
struct UploadExchange {
  /// The upload that takes the content, and the number of bytes that it takes before the connection breaks.
  struct Target {
    var index: Int
    /// The value of ``UploadEndpoint/Upload/turn`` during the exchange.
    var turn = 0
    /// The number of bytes before the content.
    var start = 0
    var cut: Int?
    /// Whether the client says that the content is the last one; `nil` in tus, where only the length says so.
    var isEnd: Bool?
    var created: Bool
  }

  var informational: [HTTPHeader]?
  var target: Target?
  /// The response that is known before the content; the content is not read then.
  var refusal: Reply?
  var losesResponse = false
  var statusAfterContent: Int?
}

extension UploadEndpoint {
  /// Decides about a request.
  func begin(_ head: RequestHead, _ route: UploadRoute) -> UploadExchange {
    var exchange = UploadExchange()
    let index = route.index
    if let index, index < 0 || index >= uploads.count {
      exchange.refusal = marked(.status(404))
      return exchange
    }
    if head.method == "OPTIONS" {
      exchange.refusal = discovery
      return exchange
    }
    let fault = takeFault(for: head)
    if case .status(let status, let fields) = fault {
      var reply = Reply.status(status)
      reply.headers += fields
      exchange.refusal = reply
      return exchange
    }
    if fault == .forget, let index { forget(index) }
    exchange.losesResponse = fault == .loseResponse
    if case .statusAfterContent(let status) = fault { exchange.statusAfterContent = status }
    let upload = index.map { takeTurn(at: $0) }
    if let refusal = violation(head, of: upload) {
      exchange.refusal = refusal
      return exchange
    }
    switch (head.method, index) {
    case ("HEAD", let index?): exchange.refusal = offset(of: index, fault)
    case ("DELETE", let index?):
      forget(index)
      exchange.refusal = marked(.status(204))
    case ("PATCH", let index?): append(head, to: index, upload ?? Upload(), &exchange)
    case (_, nil): create(head, path: route.path, &exchange)
    default: exchange.refusal = .status(405)
    }
    if case .cut(let count) = fault { exchange.target?.cut = count }
    return exchange
  }

  private func takeFault(for head: RequestHead) -> Fault? {
    // Whether chunks are empty is known only after they have come.
    let hasContent =
      head.value("Transfer-Encoding") != nil || (head.value("Content-Length").flatMap { Int($0) } ?? 0) > 0
    return state.withLock { state in
      guard let fault = state.faults.first else { return nil }
      let fits =
        switch fault {
        case .cut, .statusAfterContent: hasContent
        case .offset, .length: head.method == "HEAD"
        case .forget: head.method == "HEAD" || head.method == "PATCH"
        case .loseResponse, .pass, .status: true
        }
      return fits ? state.faults.removeFirst() : nil
    }
  }

  /// Ends the turn of earlier requests for an upload, and returns the upload as the next request finds it.
  private func takeTurn(at index: Int) -> Upload {
    state.withLock { state in
      state.uploads[index].turn += 1
      return state.uploads[index]
    }
  }

  private func forget(_ index: Int) { state.withLock { $0.uploads[index].isForgotten = true } }

  // MARK: Rules

  /// Returns the response to a request that breaks the rules of the protocol; `nil` if the request keeps them.
  ///
  /// - Parameter upload: The upload that the request names; `nil` if it is to create one.
  private func violation(_ head: RequestHead, of upload: Upload?) -> Reply? {
    if dialect == .tus, head.value("Tus-Resumable") != "1.0.0" {
      return marked(.status(412)).with(header: "Tus-Version", value: "1.0.0")
    }
    if let upload {
      guard !upload.isForgotten else { return marked(.status(404)) }
      if dialect == .draft, head.value("Upload-Draft-Interop-Version") != "\(options.interopVersion)" {
        return .status(400)
      }
      if head.method == "HEAD" {
        let forbidden =
          head.value("Upload-Offset") ?? head.value("Upload-Complete") ?? head.value("Content-Type")
        return forbidden == nil ? nil : .status(400)
      }
    }
    if let total = number(head, "Upload-Length"), let largest = options.maximumSize, total > largest {
      return limited(marked(.status(413)))
    }
    return nil
  }

  /// Returns the response to a content that has, or will have, this many bytes; `nil` if they may be kept.
  ///
  /// - Parameter isWhole: Whether no more bytes follow.
  private func violation(
    _ count: Int, ofUploadWithLength length: Int?, from start: Int, isEnd: Bool?, isWhole: Bool
  ) -> Reply? {
    let room = options.maximumSize.map { max(0, $0 - start) } ?? .max
    if count > min(room, options.maximumAppendSize ?? .max) { return limited(marked(.status(413))) }
    guard let length else { return nil }
    let missing = max(0, length - start)
    if count > missing {
      return dialect == .tus ? marked(.status(413)) : problem(400, "inconsistent-upload-length")
    }
    // In tus, any content is followed by another one until the length is reached.
    guard isWhole, isEnd == true, count < missing else { return nil }
    return problem(400, "inconsistent-upload-length")
  }

  /// Returns the response to a content whose length, if the head has one, breaks the rules; `nil` if it keeps them.
  private func violation(_ head: RequestHead, of upload: Upload, isEnd: Bool?) -> Reply? {
    guard let length = number(head, "Content-Length") else { return nil }
    return violation(
      length, ofUploadWithLength: upload.length, from: upload.content.count, isEnd: isEnd, isWhole: true)
  }

  private func number(_ head: RequestHead, _ name: String) -> Int? {
    head.value(name).flatMap { $0.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int($0) : nil }
  }

  private func isEnd(_ head: RequestHead) -> Bool? {
    switch head.value("Upload-Complete") {
    case "?1": true
    case "?0": false
    default: nil
    }
  }

  private func create(_ head: RequestHead, path: String, _ exchange: inout UploadExchange) {
    var upload = Upload()
    var isEnd: Bool?
    switch dialect {
    case .draft:
      guard head.value("Upload-Draft-Interop-Version") == "\(options.interopVersion)",
        let complete = self.isEnd(head)
      else {
        // An ordinary request.
        exchange.refusal = violation(head, of: upload, isEnd: true)
        guard exchange.refusal == nil else { return }
        exchange.target = .init(index: add(upload), isEnd: true, created: false)
        return
      }
      isEnd = complete
    case .tus:
      guard head.method == "POST", number(head, "Upload-Length") != nil, head.value("Content-Type") == nil
      else {
        exchange.refusal = marked(.status(400))
        return
      }
    }
    upload.length = number(head, "Upload-Length")
    upload.metadata = head.value("Upload-Metadata")
    exchange.refusal = violation(head, of: upload, isEnd: isEnd)
    guard exchange.refusal == nil else { return }
    let index = add(upload)
    exchange.target = .init(index: index, isEnd: isEnd, created: true)
    guard dialect == .draft, options.sendsInformational else { return }
    exchange.informational =
      limits + [
        HTTPHeader(name: "Upload-Draft-Interop-Version", value: "\(options.interopVersion)"),
        HTTPHeader(name: "Location", value: location(path, index)),
      ]
  }

  private func add(_ upload: Upload) -> Int {
    state.withLock { state in
      state.uploads.append(upload)
      return state.uploads.count - 1
    }
  }

  func location(_ path: String, _ index: Int) -> String { "\(options.locationPrefix)\(path)/\(index)" }

  private func append(_ head: RequestHead, to index: Int, _ upload: Upload, _ exchange: inout UploadExchange)
  {
    let type = dialect == .draft ? "application/partial-upload" : "application/offset+octet-stream"
    var isEnd: Bool?
    if head.value("Content-Type") != type {
      exchange.refusal = marked(.status(415))
    } else if number(head, "Upload-Offset") != upload.content.count {
      exchange.refusal = problem(409, "mismatching-upload-offset")
    } else if upload.isComplete {
      exchange.refusal = problem(400, "completed-upload")
    }
    if dialect == .draft {
      guard let complete = self.isEnd(head) else {
        exchange.refusal = .status(400)
        return
      }
      isEnd = complete
    }
    exchange.refusal = exchange.refusal ?? violation(head, of: upload, isEnd: isEnd)
    guard exchange.refusal == nil else { return }
    exchange.target = .init(
      index: index, turn: upload.turn, start: upload.content.count, isEnd: isEnd, created: false)
  }

  // MARK: Responses

  /// The fate of bytes of a content.
  enum Taking {
    case taken
    /// A later request for the upload has come, and none was taken.
    case superseded
    /// The content breaks the rules, and none of it is kept.
    case refused(Reply)
  }

  /// Takes bytes of a content.
  ///
  /// - Parameter isWhole: Whether no more bytes of the content follow.
  func take(_ bytes: ArraySlice<UInt8>, for target: UploadExchange.Target, isWhole: Bool) -> Taking {
    state.withLock { state in
      // Without a second reference to the content, which would be copied for each piece.
      guard state.uploads[target.index].turn == target.turn else { return .superseded }
      let taken = state.uploads[target.index].content.count - target.start
      if let refusal = violation(
        taken + bytes.count, ofUploadWithLength: state.uploads[target.index].length, from: target.start,
        isEnd: target.isEnd, isWhole: isWhole)
      {
        state.uploads[target.index].content.removeLast(taken)
        state.receivedByteCount -= taken
        return .refused(refusal)
      }
      state.uploads[target.index].content += bytes
      state.receivedByteCount += bytes.count
      return .taken
    }
  }

  /// Completes an upload of tus whose last byte has come, because nothing else marks its end. Called after a content,
  /// also after one that was broken off.
  func settle(_ target: UploadExchange.Target) {
    guard dialect == .tus else { return }
    state.withLock { state in
      let upload = state.uploads[target.index]
      if upload.turn == target.turn, upload.content.count == upload.length { state.complete(target.index) }
    }
  }

  /// Returns the response after the complete content.
  func end(_ exchange: UploadExchange, _ target: UploadExchange.Target, path: String) -> Reply {
    let upload = state.withLock { state -> Upload in
      let isCurrent = state.uploads[target.index].turn == target.turn
      if target.isEnd == true, isCurrent { state.complete(target.index) }
      return state.uploads[target.index]
    }
    if let status = exchange.statusAfterContent { return marked(.status(status)) }
    var reply: Reply
    if target.isEnd == true {
      reply = .text("stored \(upload.content.count)")
      reply.headers += options.finalFields
      if upload.length != nil { reply.headers.append(HTTPHeader(name: "Upload-Complete", value: "?1")) }
      return reply
    }
    reply = marked(.status(target.created ? 201 : 204))
    reply.headers.append(HTTPHeader(name: "Upload-Offset", value: "\(upload.content.count)"))
    if dialect == .draft {
      reply.headers.append(HTTPHeader(name: "Upload-Complete", value: "?0"))
      reply = limited(reply)
    } else if upload.content.count == upload.length {
      reply.headers += options.finalFields
    }
    if target.created {
      reply.headers.append(HTTPHeader(name: "Location", value: location(path, target.index)))
    }
    return reply
  }

  private func offset(of index: Int, _ fault: Fault?) -> Reply {
    let upload = state.withLock { $0.uploads[index] }
    var offset = upload.content.count
    if case .offset(let wrong) = fault { offset = wrong }
    var length = upload.length
    if case .length(let wrong) = fault { length = wrong }
    var reply = marked(.status(dialect == .draft ? 204 : 200)).with(
      header: "Cache-Control", value: "no-store")
    reply = reply.with(header: "Upload-Offset", value: "\(offset)")
    if let length { reply = reply.with(header: "Upload-Length", value: "\(length)") }
    guard dialect == .draft else { return reply }
    return limited(reply).with(header: "Upload-Complete", value: upload.isComplete ? "?1" : "?0")
  }

  private var discovery: Reply {
    guard dialect == .tus else { return limited(.status(204)) }
    let reply = Reply.status(204).with(header: "Tus-Version", value: "1.0.0")
      .with(header: "Tus-Extension", value: "creation,termination")
    guard let largest = options.maximumSize else { return reply }
    return reply.with(header: "Tus-Max-Size", value: "\(largest)")
  }

  private func marked(_ reply: Reply) -> Reply {
    dialect == .tus ? reply.with(header: "Tus-Resumable", value: "1.0.0") : reply
  }

  private func limited(_ reply: Reply) -> Reply {
    var reply = reply
    reply.headers += limits
    return reply
  }

  private var limits: [HTTPHeader] {
    guard dialect == .draft else { return [] }
    let members = [
      options.maximumSize.map { "max-size=\($0)" }, options.maximumAppendSize.map { "max-append-size=\($0)" },
    ].compactMap { $0 }
    return members.isEmpty ? [] : [HTTPHeader(name: "Upload-Limit", value: members.joined(separator: ", "))]
  }

  private func problem(_ status: Int, _ name: String) -> Reply {
    guard dialect == .draft else { return marked(.status(status)) }
    var reply = Reply.text(#"{"type": "https://iana.org/assignments/http-problem-types#\#(name)"}"#)
    reply.status = status
    reply.headers = [.contentType("application/problem+json")]
    return reply
  }
}

extension Conversation {
  /// The largest content that is read although it is refused, so that the connection can be kept.
  private static let largestRefusedContent = 16 << 20

  /// Answers a request for an ``UploadEndpoint``. Returns whether another request can follow.
  func serve(_ route: UploadRoute, _ head: RequestHead, _ decoder: RequestBodyDecoder) throws -> Bool {
    var decoder = decoder
    var exchange = route.endpoint.begin(head, route)
    if let fields = exchange.informational {
      try channel.write(ReplyHead.head(status: 104, reason: nil, headers: fields))
    }
    guard try takeContent(of: &exchange, &decoder, for: route.endpoint, head) else {
      channel.end(.reset, hasUnread: true)
      return false
    }
    let taken = exchange.target.map { route.endpoint.end(exchange, $0, path: route.path) }
    if exchange.losesResponse {
      channel.end(.close, hasUnread: false)
      return false
    }
    let reply = taken ?? exchange.refusal ?? .status(500)
    let ending = try send(reply, to: head, isComplete: decoder.isComplete)
    if ending == .keepAlive, decoder.isComplete { return true }
    channel.end(ending, hasUnread: !decoder.isComplete)
    return false
  }

  /// Reads the content up to its end, or to the byte that breaks the rules. A large content that is refused is not
  /// read. Returns false if the connection is to break earlier, and stops at that byte.
  private func takeContent(
    of exchange: inout UploadExchange, _ decoder: inout RequestBodyDecoder, for endpoint: UploadEndpoint,
    _ head: RequestHead
  ) throws -> Bool {
    var body = ReceivedBody()
    body.isComplete = false
    body.isChunked = decoder.isChunked
    defer {
      if let target = exchange.target { endpoint.settle(target) }
      body.trailers = decoder.trailers
      record(head, body)
    }
    let length = RequestBodyDecoder.decimal(head.value("Content-Length") ?? "") ?? 0
    if exchange.target == nil, length > Self.largestRefusedContent {
      exchange.refusal = exchange.refusal?.closing()
      return true
    }
    if head.expectsContinue, !decoder.isComplete {
      try channel.write(ReplyHead.head(status: 100, reason: nil, headers: []))
    }
    let cut = exchange.target?.cut ?? .max
    while true {
      var bytes: [UInt8] = []
      let count = try decoder.feed(buffer[...], into: &bytes)
      buffer.removeFirst(count)
      let kept = bytes.prefix(cut - body.length)
      if let target = exchange.target {
        switch endpoint.take(kept, for: target, isWhole: decoder.isComplete && kept.count == bytes.count) {
        case .taken: break
        case .superseded: return false
        case .refused(let refusal):
          exchange.target = nil
          exchange.refusal = refusal.closing()
          return true
        }
      }
      body.length += kept.count
      if body.length >= cut { return false }
      body.isComplete = decoder.isComplete
      if body.isComplete { return true }
      buffer = try receive(atMost: 65_536)
      if buffer.isEmpty { throw Channel.Failure.clientGone }
    }
  }
}
