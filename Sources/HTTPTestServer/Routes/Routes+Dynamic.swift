import FoundationEssentials
import HTTPWire

/// Routes that let the client choose the status, size or speed.
extension Routes {
  var dynamic: Routes {
    adding("/status/{code}") { _, parameters in Self.status(parameters[0]) }
      .adding("/bytes/{count}", methods: ["GET"]) { _, parameters in
        Self.counted(parameters[0]) { .bytes($0) }
      }
      .adding("/stream-bytes/{count}", methods: ["GET"]) { request, parameters in
        Self.counted(parameters[0]) { .bytes($0).framed(.chunked) }
      }
      .adding("/stream/{count}", methods: ["GET"]) { request, parameters in
        Self.counted(parameters[0]) { Self.lines($0, of: request) }
      }
      .adding("/delay/{seconds}") { request, parameters in
        guard let seconds = Double(parameters[0]), (0...600).contains(seconds) else {
          return .refusal("\(parameters[0]) is no number of seconds")
        }
        let document = EchoDocument(request).everything(withMethod: false)
        return .json(.object(document)).delayed(by: .seconds(seconds))
      }
      .adding("/drip", methods: ["GET"]) { request, _ in Self.drip(request) }
      .adding("/response-headers", methods: ["GET", "POST"]) { request, _ in
        var reply = Reply.json(.multimap(request.query))
        reply.headers += request.query.map { HTTPHeader(name: $0.name, value: $0.value) }
        return reply
      }
      .adding("/uuid", methods: ["GET"]) { _, _ in
        .json(.object([("uuid", .string(UUID().uuidString.lowercased()))]))
      }
  }

  private static func counted(_ text: String, _ reply: (Int) -> Reply) -> Reply {
    guard let count = RequestBodyDecoder.decimal(text) else {
      return .refusal("\(text) is no number of bytes or lines")
    }
    return reply(count)
  }

  private static func status(_ text: String) -> Reply {
    guard let status = Int(text), (200...999).contains(status) else {
      return .refusal("\(text) is no final status")
    }
    let reply = Reply.status(status)
    switch status {
    case 301, 302, 303, 305, 307, 308: return reply.with(header: "Location", value: "/redirect/1")
    case 401: return reply.with(header: "WWW-Authenticate", value: #"Basic realm="Fake Realm""#)
    case 407: return reply.with(header: "Proxy-Authenticate", value: #"Basic realm="Fake Realm""#)
    default: return reply
    }
  }

  /// The largest content of lines, in bytes, which is in memory as a whole.
  private static let largestStream = 100_000_000

  /// Answers with one document a line, each in a separate chunk.
  private static func lines(_ count: Int, of request: RecordedRequest) -> Reply {
    let basics = EchoDocument(request).basics
    let count = min(count, 100_000)
    // Each line repeats the fields and the query of the request.
    guard count == 0 || JSONValue.object(basics).text.utf8.count <= largestStream / count else {
      return .refusal("\(count) lines with this request are too long")
    }
    let parts = (0..<count).map { number in
      let line = JSONValue.object(basics + [("id", .int(number))]).text + "\n"
      return Reply.Part.bytes(Array(line.utf8))
    }
    return Reply(headers: [.contentType("application/json")], body: .parts(parts))
  }

  /// Returns asterisks that are sent over a time, after a delay.
  private static func drip(_ request: RecordedRequest) -> Reply {
    let count = request.queryValue("numbytes").map { RequestBodyDecoder.decimal($0) ?? 0 } ?? 10
    let duration = request.queryValue("duration").map { Double($0) ?? -1 } ?? 2
    let delay = request.queryValue("delay").map { Double($0) ?? -1 } ?? 0
    let status = request.queryValue("code").map { Int($0) ?? 0 } ?? 200
    guard (1...10_000_000).contains(count), (0...600).contains(duration), (0...600).contains(delay),
      (200...999).contains(status)
    else { return .refusal("numbytes, duration, delay or code is out of range") }
    // A hundred steps are smooth enough for any count.
    let steps = min(count, 100)
    var parts: [Reply.Part] = []
    for step in 0..<steps {
      let size = count * (step + 1) / steps - count * step / steps
      parts.append(.pause(.seconds(duration / Double(steps))))
      parts.append(.bytes([UInt8](repeating: 0x2A, count: size)))
    }
    var reply = Reply(
      status: status, headers: [.contentType("application/octet-stream")], body: .parts(parts))
    reply.framing = .contentLength
    return reply.delayed(by: .seconds(delay))
  }
}

extension Reply {
  /// Makes a 400 with a reason.
  static func refusal(_ text: String) -> Reply {
    .json(.object([("error", .string(text))]), status: 400)
  }
}

/// Routes that send the client elsewhere.
extension Routes {
  var redirects: Routes {
    adding("/redirect/{count}") { request, parameters in
      let isAbsolute = request.queryValue("absolute")?.lowercased() == "true"
      return Self.redirect(request, parameters[0], name: "redirect", isAbsolute: isAbsolute)
    }
    .adding("/relative-redirect/{count}") { request, parameters in
      Self.redirect(request, parameters[0], name: "relative-redirect", isAbsolute: false)
    }
    .adding("/absolute-redirect/{count}") { request, parameters in
      Self.redirect(request, parameters[0], name: "absolute-redirect", isAbsolute: true)
    }
    .adding("/redirect-to") { request, _ in
      let form = PercentCoding.pairs(request.bodyText)
      func value(_ name: String) -> String? {
        request.queryValue(name) ?? form.first { $0.name == name }?.value
      }
      guard let url = value("url") else { return .refusal("there is no url") }
      let status = value("status_code").flatMap { Int($0) } ?? 302
      return .redirect(to: url, status: (300..<400).contains(status) ? status : 302)
    }
  }

  private static func redirect(
    _ request: RecordedRequest, _ text: String, name: String, isAbsolute: Bool
  ) -> Reply {
    guard let count = RequestBodyDecoder.decimal(text), count >= 1 else {
      return .refusal("\(text) is no number of redirects")
    }
    let path = count == 1 ? "/get" : "/\(name)/\(count - 1)"
    guard isAbsolute else { return .redirect(to: path) }
    let query = name == "redirect" && count > 1 ? "?absolute=true" : ""
    return .redirect(to: EchoDocument(request).absoluteURL(of: path + query))
  }
}
