import HTTPWire

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
