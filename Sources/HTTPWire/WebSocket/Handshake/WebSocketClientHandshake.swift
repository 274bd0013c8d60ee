package import FoundationEssentials

/// The opening handshake of a client (RFC 6455 §4.1).
package struct WebSocketClientHandshake: Sendable {
  /// The value of `Sec-WebSocket-Key`.
  package let key: String
  private let subprotocols: [String]
  private let offer: WebSocketDeflateParameters?

  /// Makes the handshake of one connection. Throws if the name of a subprotocol is not a token or occurs twice.
  ///
  /// - Parameters:
  ///   - nonce: Random bytes, a new value for each handshake.
  ///   - subprotocols: The names of the accepted subprotocols, the preferred one first.
  ///   - deflate: Offers permessage-deflate, if it is not `nil`.
  package init(
    nonce: (UInt64, UInt64), subprotocols: [String] = [], deflate: WebSocketDeflateOptions? = nil
  ) throws(WebSocketHandshakeError) {
    var names: Set<String> = []
    for name in subprotocols {
      guard HeaderFieldRules.isToken(name) else { throw .subprotocolName(name) }
      guard names.insert(name).inserted else { throw .duplicateSubprotocol(name) }
    }
    key = WebSocketKey.text(of: nonce)
    self.subprotocols = subprotocols
    offer = deflate?.offer
  }

  /// The fields of the request, which is a GET of HTTP/1.1.
  package var fields: [HTTPHeader] {
    var fields = [
      HTTPHeader(name: "Upgrade", value: "websocket"),
      HTTPHeader(name: "Connection", value: "Upgrade"),
      HTTPHeader(name: "Sec-WebSocket-Key", value: key),
      HTTPHeader(name: "Sec-WebSocket-Version", value: "13"),
    ]
    if !subprotocols.isEmpty { fields.append(.websocketProtocol(subprotocols.joined(separator: ", "))) }
    if let offer {
      fields.append(HTTPHeader(name: "Sec-WebSocket-Extensions", value: offer.webSocketExtension.text))
    }
    return fields
  }

  /// Verifies the response, after redirects and challenges.
  package func verify(
    _ head: ResponseHead, sha1: WebSocketKey.SHA1
  ) throws(WebSocketHandshakeError) -> WebSocketAgreement {
    guard head.status == 101 else {
      throw .status(head.status, supportedVersions: head.block.value(of: "Sec-WebSocket-Version"))
    }
    guard head.version == .http1_1 else { throw .httpVersion(head.version) }
    let upgrade = head.block.value(of: "Upgrade")
    guard let upgrade, FieldName.equal(upgrade, "websocket") else { throw .upgrade(upgrade) }
    let connection = head.block.value(of: "Connection")
    // Splitting a list takes longer than all the rest.
    guard
      connection.map({ FieldName.equal($0, "upgrade") }) == true
        || head.block.elements(of: "Connection").contains(where: { FieldName.equal(String($0), "upgrade") })
    else { throw .connection(connection) }
    try verifyAccept(head.block, sha1: sha1)
    return WebSocketAgreement(subprotocol: try subprotocol(head.block), deflate: try deflate(head.block))
  }

  private func verifyAccept(
    _ block: FieldBlock, sha1: WebSocketKey.SHA1
  ) throws(WebSocketHandshakeError) {
    guard let expected = WebSocketKey.accept(key, sha1: sha1) else { throw .hashUnavailable }
    let values = block.values(of: "Sec-WebSocket-Accept")
    guard let value = values.first else { throw .missingAccept }
    guard values.count == 1 else { throw .repeatedField("Sec-WebSocket-Accept") }
    guard value == expected else { throw .acceptMismatch }
  }

  private func subprotocol(_ block: FieldBlock) throws(WebSocketHandshakeError) -> String? {
    let values = block.values(of: "Sec-WebSocket-Protocol")
    guard values.count <= 1 else { throw .repeatedField("Sec-WebSocket-Protocol") }
    guard let name = values.first else { return nil }
    guard subprotocols.contains(name) else { throw .subprotocolNotOffered(name) }
    return name
  }

  private func deflate(_ block: FieldBlock) throws(WebSocketHandshakeError) -> WebSocketDeflate? {
    guard let value = block.value(of: "Sec-WebSocket-Extensions"), !value.isEmpty else { return nil }
    guard let extensions = WebSocketExtension.list(value) else { throw .malformedExtensions }
    var agreement: WebSocketDeflate?
    for element in extensions {
      // A second response to the one offer has no offer either.
      guard element.name == WebSocketDeflateParameters.name, let offer, agreement == nil else {
        throw .extensionNotOffered(element.name)
      }
      do throws(WebSocketDeflateError) {
        agreement = try offer.agreement(with: WebSocketDeflateParameters(element, isResponse: true))
      } catch {
        throw .deflate(error)
      }
    }
    return agreement
  }
}

extension WireRequest {
  /// The names of the fields that belong to the handshake, or to a body that it does not have.
  private static let ownedFields = [
    "host", "connection", "upgrade", "keep-alive", "sec-websocket-key", "sec-websocket-version",
    "sec-websocket-extensions", "sec-websocket-protocol", "sec-websocket-accept", "accept-encoding", "te",
    "content-length", "transfer-encoding", "expect",
  ]

  /// The subprotocols that the fields of the request name, in their order.
  package var namedSubprotocols: [String] {
    fields.filter { FieldName.equal($0.name, "Sec-WebSocket-Protocol") }
      .flatMap { WebSocketClientHandshake.subprotocols(in: $0.value) }
  }

  /// Returns the bytes of the request that opens a WebSocket connection (RFC 6455 §4.1). The request line and the
  /// fields were validated before; see `HeaderFieldRules`.
  ///
  /// The caller's fields that belong to the handshake are left out, except for `Host`.
  package func upgradeHead(_ handshake: WebSocketClientHandshake) -> Data {
    var head: [UInt8] = []
    head.reserveCapacity(512)
    func add(_ text: String) { head.append(contentsOf: text.utf8) }
    func add(_ name: String, _ value: String) {
      add(name)
      add(": ")
      add(value)
      add("\r\n")
    }
    add("GET ")
    add(target)
    add(" HTTP/1.1\r\n")
    add("Host", fields.first { FieldName.equal($0.name, "Host") }?.value ?? Self.authority(of: origin))
    for field in fields where !Self.isOwned(field.name) { add(field.name, field.value) }
    for field in handshake.fields { add(field.name, field.value) }
    add("\r\n")
    return Data(head)
  }

  private static func isOwned(_ name: String) -> Bool {
    ownedFields.contains { FieldName.equal(name, $0) }
  }

  /// The path and the query (RFC 9112 §3.2.1).
  private var target: String {
    let text = url.utf8.prefix { $0 != UInt8(ascii: "#") }
    guard let colon = text.firstIndex(of: UInt8(ascii: ":")) else { return "/" }
    let rest = text[colon...].dropFirst(3)
    let start = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.endIndex
    let path = String(Substring(rest[start...]))
    return path.hasPrefix("/") ? path : "/" + path
  }

  private static func authority(of origin: Origin) -> String {
    // The zone of an address has a meaning on this machine alone (RFC 6874 §4).
    let isAddress = origin.host.utf8.contains(UInt8(ascii: ":"))
    let host = isAddress ? "[\(origin.host.prefix { $0 != "%" })]" : origin.host
    return origin.port == (origin.scheme == "https" ? 443 : 80) ? host : "\(host):\(origin.port)"
  }
}

extension WebSocketClientHandshake {
  /// Returns the names in a list of subprotocols.
  package static func subprotocols(in list: String) -> [String] {
    list.split(separator: ",").map { name in
      let isSpace = { (character: Character) in character == " " || character == "\t" }
      var name = name.drop(while: isSpace)
      while let last = name.last, isSpace(last) { name = name.dropLast() }
      return String(name)
    }.filter { !$0.isEmpty }
  }
}

/// Reads the response to an opening handshake: its head and, unless the status is 101, its body. Informational
/// responses are skipped. Pure: its owner gives it the bytes of the transport.
///
/// Lines are read by the rules for all responses; see `Documentation/HTTPReading.md`.
package struct UpgradeResponseReader: Sendable {
  package enum HandshakeStep: Sendable {
    case needsMore
    /// The head is complete. The position is after it.
    case head(ResponseHead)
    /// The body is complete, or as much of it as is kept.
    case end
    /// The heads together are larger than the limit.
    case refuseHead
    /// The body is larger than the caller accepts.
    case refuseBody
    case refuse(HeadViolation)
  }

  private enum Framing: Sendable {
    case none
    case length(left: Int64)
    case chunked(ChunkedReader)
    case untilClose
  }

  private var assembly: ResponseAssembly
  private let headerSizeLimit: Int
  private let bodySizeLimit: Int
  private let largestBody: Int64
  /// The part of a line that has arrived.
  private var line: [UInt8] = []
  /// The framing of the body; `nil` before the end of the head.
  private var framing: Framing?
  package private(set) var body = Data()

  /// Makes a reader.
  ///
  /// - Parameters:
  ///   - headerSizeLimit: The most bytes of all heads.
  ///   - bodySizeLimit:   The most bytes that are kept of the body; the rest is cut off.
  ///   - largestBody:     The most bytes that the caller accepts; `nil` means no limit.
  package init(headerSizeLimit: Int, bodySizeLimit: Int = 1_048_576, largestBody: Int64? = nil) {
    self.largestBody = max(0, largestBody ?? .max)
    assembly = ResponseAssembly(headerSizeLimit: headerSizeLimit)
    self.headerSizeLimit = headerSizeLimit
    self.bodySizeLimit = bodySizeLimit
  }

  /// Continues at `position`, and stops after the head.
  package mutating func read(_ bytes: UnsafeRawBufferPointer, from position: inout Int) -> HandshakeStep {
    guard framing == nil else { return readBody(bytes, &position) }
    while position < bytes.count {
      let rest = UnsafeRawBufferPointer(rebasing: bytes[position...])
      let end = rest.firstIndex(of: 0x0A).map { $0 + 1 } ?? rest.count
      line.append(contentsOf: rest[..<end])
      position += end
      guard line.count <= headerSizeLimit else { return .refuseHead }
      guard line.last == 0x0A else { return .needsMore }
      let action = line.withUnsafeBytes { assembly.lineReceived($0) }
      line.removeAll(keepingCapacity: true)
      switch action {
      case .keep, .inform: continue
      case .verify(let version): return .refuse(.version(version.text))
      case .deliver(let head):
        framing = framing(of: head)
        return .head(head)
      case .refuseHead: return .refuseHead
      case .refuse(let violation): return .refuse(violation)
      }
    }
    return .needsMore
  }

  /// Whether the response may end with the connection here.
  package var mayEnd: Bool {
    switch framing {
    case .untilClose, .some(.none), .length(left: 0): true
    case .chunked(let reader): reader.isComplete
    case .length, nil: false
    }
  }

  private func framing(of head: ResponseHead) -> Framing {
    if head.status == 101 || head.status == 204 || head.status == 304 { return .none }
    if assembly.framing.isChunked { return .chunked(ChunkedReader(trailerSizeLimit: assembly.headSizeLeft)) }
    if let length = assembly.framing.contentLength { return .length(left: length) }
    return .untilClose
  }

  private mutating func readBody(_ bytes: UnsafeRawBufferPointer, _ position: inout Int) -> HandshakeStep {
    let rest = bytes.count - position
    switch framing {
    case nil, .some(.none): return .end
    case .length(let left):
      let count = Int(min(left, Int64(rest)))
      let end = append(bytes[position..<position + count])
      position += count
      framing = .length(left: left - Int64(count))
      return end ?? (left == Int64(count) ? .end : .needsMore)
    case .untilClose:
      defer { position = bytes.count }
      return append(bytes[position...]) ?? .needsMore
    case .chunked(var reader):
      defer { framing = .chunked(reader) }
      return readChunks(bytes, &position, &reader)
    }
  }

  private mutating func readChunks(
    _ bytes: UnsafeRawBufferPointer, _ position: inout Int, _ reader: inout ChunkedReader
  ) -> HandshakeStep {
    while true {
      switch reader.read(bytes, from: &position) {
      case .content(let range):
        reader.contentTaken(range.count)
        position = range.upperBound
        if let end = append(bytes[range]) { return end }
      case .needsMore: return .needsMore
      case .end: return .end
      case .refuseTrailers: return .refuseHead
      case .refuse(let violation): return .refuse(violation)
      }
    }
  }

  /// Returns the end of the reading if a limit is reached.
  private mutating func append(_ bytes: Slice<UnsafeRawBufferPointer>) -> HandshakeStep? {
    guard Int64(bytes.count) <= largestBody - Int64(body.count) else { return .refuseBody }
    body.append(contentsOf: bytes.prefix(bodySizeLimit - body.count))
    return body.count >= bodySizeLimit ? .end : nil
  }
}
