import Alamofire

/// The heads of a request as they are sent and received, for a display in front of a body that is written as it
/// arrives.
final class HopLog: Sendable {
  /// A request that was sent, and the head of its response.
  struct Hop: Sendable {
    var request: Head
    var hasBody = false
    var response: Head?
  }

  private let entries: EntryList
  /// The monitor of the request.
  let log: WireLog

  private final class EntryList: Sendable {
    let values = Mutex<[WireLog.Entry]>([])
  }

  init() {
    let entries = EntryList()
    self.entries = entries
    // The pieces of bodies are not kept, because there can be any number of them.
    log = WireLog { entry in
      if entry.part == .responseBody { return }
      entries.values.withLock { entries in
        if entry.part == .requestBody, entry.byteCount == 0 || entries.last?.part == .requestBody { return }
        entries.append(entry)
      }
    }
  }

  /// The number of entries that are kept.
  var count: Int {
    log.queue.sync {}
    return entries.values.withLock { $0.count }
  }

  /// The hops so far. Informational responses and trailers are left out.
  var hops: [Hop] {
    // The entries of a response are made before its head is delivered, but on the queue of the log.
    log.queue.sync {}
    return Self.hops(entries.values.withLock { $0 })
  }

  /// Returns the heads of the hops since the last call, an empty line after each.
  ///
  /// - Parameter hasRequests: Whether the heads of requests are among them.
  func takeText(_ palette: Palette, hasRequests: Bool) -> String {
    log.queue.sync {}
    let new = entries.values.withLock { entries in
      defer { entries = [] }
      return entries
    }
    return Self.hops(new).flatMap { [hasRequests ? $0.request : nil, $0.response] }
      .compactMap { $0.map { $0.text(palette) + "\n" } }.joined()
  }

  private static func hops(_ entries: [WireLog.Entry]) -> [Hop] {
    var hops: [Hop] = []
    for entry in entries {
      switch entry.part {
      case .requestHead: if let head = Head(wire: entry.text) { hops.append(Hop(request: head)) }
      case .requestBody: if !hops.isEmpty { hops[hops.count - 1].hasBody = true }
      case .responseHead:
        guard let head = Head(wire: entry.text), !hops.isEmpty, !head.isInformational else { continue }
        hops[hops.count - 1].response = head
      case .responseBody: continue
      }
    }
    return hops
  }
}

extension Head {
  /// Reads a head; `nil` for trailers.
  init?(wire text: String) {
    // A value may have other line breaks of Unicode, which would be fields that the server did not send.
    let lines = text.utf8.split(separator: 0x0A).map { line in
      String(decoding: line.last == 0x0D ? line.dropLast() : line, as: UTF8.self)
    }
    guard let words = lines.first?.split(separator: " ", maxSplits: 2).map(String.init), words.count > 1
    else {
      return nil
    }
    let fields = lines.dropFirst().compactMap { line -> (name: String, value: String)? in
      guard let colon = line.firstIndex(of: ":") else { return nil }
      return (String(line[..<colon]), line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces))
    }
    if words[0].hasPrefix("HTTP/"), let status = Int(words[1]) {
      self.init(start: .response(status: status), version: words[0], fields: fields)
    } else if words.count == 3, words[2].hasPrefix("HTTP/"), !words[0].contains(":") {
      self.init(start: .request(method: words[0], target: words[1]), version: words[2], fields: fields)
    } else {
      return nil
    }
  }

  /// The head with its secrets masked.
  var masked: Head {
    var head = self
    if case .request(let method, let target) = start {
      head.start = .request(method: method, target: Redaction.standard.url(target))
    }
    head.fields = fields.map { ($0.name, Redaction.standard.value($0.value, ofHeaderField: $0.name)) }
    return head
  }

  var isRedirect: Bool {
    if case .response(let status) = start { [301, 302, 303, 307, 308].contains(status) } else { false }
  }

  var isInformational: Bool {
    if case .response(let status) = start { (100..<200).contains(status) } else { false }
  }
}
