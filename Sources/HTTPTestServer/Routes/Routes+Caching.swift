import HTTPWire

/// Routes for conditional and partial requests (RFC 9110 §13, §14) and for caches (RFC 9111).
extension Routes {
  var caching: Routes {
    adding("/etag/{tag}", methods: ["GET"]) { request, parameters in
      let tag = "\"\(parameters[0])\""
      // RFC 9110 §13.2.2 has this order. Only If-None-Match ignores `W/` (§13.1).
      let reply: Reply
      if let tags = Self.tags("If-Match", request), !tags.contains(tag), tags != ["*"] {
        reply = .status(412)
      } else if let tags = Self.tags("If-None-Match", request),
        tags.contains(tag) || tags.contains("W/\(tag)") || tags == ["*"]
      {
        reply = .status(304)
      } else {
        reply = .json(.object(EchoDocument(request).basics))
      }
      return reply.with(header: "ETag", value: tag)
    }
    .adding("/cache", methods: ["GET"]) { request, _ in
      let isKnown =
        request.header("If-None-Match") != nil || request.header("If-Modified-Since") != nil
      let reply = isKnown ? Reply.status(304) : .json(.object(EchoDocument(request).basics))
      return reply.with(header: "Date", value: HTTPDate.now)
        .with(header: "Last-Modified", value: "Thu, 01 Jan 2026 00:00:00 GMT")
        .with(header: "ETag", value: #""cache""#)
    }
    .adding("/cache/{seconds}", methods: ["GET"]) { request, parameters in
      guard let seconds = RequestBodyDecoder.decimal(parameters[0]) else {
        return .refusal("\(parameters[0]) is no number of seconds")
      }
      return Reply.json(.object(EchoDocument(request).basics))
        .with(header: "Date", value: HTTPDate.now)
        .with(header: "Cache-Control", value: "public, max-age=\(seconds)")
    }
    .adding("/range/{count}", methods: ["GET"]) { request, parameters in
      guard let count = RequestBodyDecoder.decimal(parameters[0]), count <= 100_000_000 else {
        return .refusal("\(parameters[0]) is no number of bytes")
      }
      return Self.range(of: count, request)
    }
  }

  /// Returns the entity tags of a condition; `nil` without the field. Commas in quotes do not separate them, and
  /// backslashes escape nothing there (RFC 9110 §8.8.3).
  private static func tags(_ name: String, _ request: RecordedRequest) -> [String]? {
    let values = request.headers(named: name)
    guard !values.isEmpty else { return nil }
    var isQuoted = false
    return values.joined(separator: ",").split { character in
      if character == "\"" { isQuoted.toggle() }
      return character == "," && !isQuoted
    }.map { trimmed($0) }
  }

  /// Answers with the alphabet over and over, as httpbin sends it, whole or in part.
  private static func range(of count: Int, _ request: RecordedRequest) -> Reply {
    let tag = "\"range\(count)\""
    let reply = Reply(headers: [
      .contentType("application/octet-stream"), HTTPHeader(name: "ETag", value: tag),
      HTTPHeader(name: "Accept-Ranges", value: "bytes"),
    ])
    let isCurrent = request.header("If-Range").map { $0 == tag } ?? true
    // Only GET has ranges (RFC 9110 §14.2).
    let isPartial = request.method == "GET" && isCurrent
    switch isPartial ? ByteRange.parse(request.header("Range"), of: count) : .whole {
    case .whole:
      var whole = reply
      whole.body = .bytes(alphabet(0..<count))
      return whole
    case .unsatisfiable:
      var refusal = reply.with(header: "Content-Range", value: "bytes */\(count)")
      refusal.status = 416
      return refusal
    case .part(let part):
      var partial = reply.with(
        header: "Content-Range", value: "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(count)")
      partial.status = 206
      partial.body = .bytes(alphabet(part))
      return partial
    }
  }

  private static func alphabet(_ range: Range<Int>) -> [UInt8] {
    range.map { UInt8(0x61 + $0 % 26) }
  }
}

/// Routes that show, set and delete cookies (RFC 6265).
extension Routes {
  var cookies: Routes {
    adding("/cookies", methods: ["GET"]) { request, _ in
      .json(.object([("cookies", Self.cookies(of: request))]))
    }
    .adding("/cookies/set", methods: ["GET"]) { request, _ in
      Self.setting(request.query.map { "\($0.name)=\($0.value); Path=/" })
    }
    .adding("/cookies/set/{name}/{value}", methods: ["GET"]) { _, parameters in
      Self.setting(["\(parameters[0])=\(parameters[1]); Path=/"])
    }
    .adding("/cookies/delete", methods: ["GET"]) { request, _ in
      Self.setting(
        request.query.map { "\($0.name)=; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=0; Path=/" })
    }
  }

  private static func setting(_ cookies: [String]) -> Reply {
    var reply = Reply.redirect(to: "/cookies")
    reply.headers += cookies.map { HTTPHeader(name: "Set-Cookie", value: $0) }
    return reply
  }

  private static func cookies(of request: RecordedRequest) -> JSONValue {
    let pairs = request.headers(named: "Cookie").flatMap { $0.split(separator: ";") }
    return .object(
      pairs.map { pair in
        let name = pair.prefix { $0 != "=" }
        return (trimmed(name), .string(trimmed(pair.dropFirst(name.count + 1))))
      })
  }
}
