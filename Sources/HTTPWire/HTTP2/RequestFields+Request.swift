extension RequestFields {
  /// Makes the fields of a request.
  ///
  /// - Parameter omitsExpect: Whether `Expect` is left out, because the server has refused it.
  package init(_ request: WireRequest, omitsExpect: Bool = false) throws(Violation) {
    // Trailers do not change the length here.
    let content = RequestHeadWriter.Content(request.parts.body)
    guard request.method != "HEAD" || content == .none && !request.sendsTrailers else {
      throw .head(.contentOfHead)
    }
    var fields = request.fields
    if omitsExpect { fields.removeAll { FieldName.equal($0.name, "Expect") } }
    let length: Int64? =
      switch content {
      case .none: Self.meansContent(request.method) ? 0 : nil
      case .length(let length): length
      case .chunked: nil
      }
    try self.init(
      Control(method: request.method, origin: request.origin, target: Self.target(of: request.url)),
      fields: fields, contentLength: length)
    do throws(RequestHeadViolation) {
      let names = RequestTrailerRules.announcedNames(of: request)
      if !names.isEmpty { appendField(try RequestTrailerRules.announcement(of: names)) }
    } catch {
      throw .head(error)
    }
  }

  /// Makes the trailer fields of a request.
  package init(trailers: [HTTPHeader]) throws(Violation) {
    self.init()
    do throws(RequestHeadViolation) {
      try RequestTrailerRules.check(trailers)
    } catch {
      throw .head(error)
    }
    for field in trailers { appendField(field) }
  }

  /// Whether a request with this method and without content says so (RFC 9110 §8.6).
  private static func meansContent(_ method: String) -> Bool {
    method == "POST" || method == "PUT" || method == "PATCH"
  }

  /// Returns path and query of an absolute URL.
  private static func target(of url: String) -> Substring {
    var url = url
    let (start, end) = url.withUTF8 { text in
      let end = text.firstIndex(of: UInt8(ascii: "#")) ?? text.count
      guard let colon = text[..<end].firstIndex(of: UInt8(ascii: ":")) else { return (end, end) }
      let rest = text[min(colon + 3, end)..<end]
      return (rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? end, end)
    }
    let text = url.utf8
    return url[text.index(text.startIndex, offsetBy: start)..<text.index(text.startIndex, offsetBy: end)]
  }

  /// The size of the head in the form of HTTP/1.1, in which metrics count it.
  package var lineSize: Int {
    // The request line and the empty line, without method and target.
    var size = 12
    forEach { name, value in
      guard name.first == UInt8(ascii: ":") else { return size += name.count + value.count + 4 }
      if FieldName.equal(name, lowercase: ":authority") {
        size += value.count + 8
      } else if !FieldName.equal(name, lowercase: ":scheme") {
        size += value.count
      }
    }
    return size
  }

  /// The fields as lines of HTTP/1.1, for observers; without pseudo-header fields, and with an empty line at the end.
  package var trailerLines: [UInt8] {
    var lines: [UInt8] = []
    forEach { name, value in
      lines += Array(name) + Array(": ".utf8) + Array(value) + Array("\r\n".utf8)
    }
    return lines + Array("\r\n".utf8)
  }

  /// The head in the form of HTTP/1.1, for observers.
  package var lines: [UInt8] {
    var control: [String: [UInt8]] = [:]
    var result: [UInt8] = []
    forEach { name, value in
      guard name.first == UInt8(ascii: ":") else {
        result += Array(name) + Array(": ".utf8) + Array(value) + Array("\r\n".utf8)
        return
      }
      control[String(decoding: name, as: UTF8.self)] = Array(value)
    }
    let method = control[":method"] ?? []
    let authority = control[":authority"] ?? []
    let target = control[":path"] ?? authority
    let start = method + Array(" ".utf8) + target + Array(" HTTP/2\r\nHost: ".utf8) + authority
    return start + Array("\r\n".utf8) + result + Array("\r\n".utf8)
  }
}
