import FoundationEssentials
public import HTTPWire

extension Reply {
  /// 200 without a body.
  public static let ok = Reply()

  /// Makes a 200 with `text/plain; charset=utf-8`.
  public static func text(_ text: String) -> Reply {
    Reply(headers: [.contentType("text/plain; charset=utf-8")], body: .bytes(Array(text.utf8)))
  }

  /// Makes a 200 with `application/json`; the text is sent as it is, valid or not.
  public static func json(_ text: String) -> Reply {
    Reply(headers: [.contentType("application/json")], body: .bytes(Array(text.utf8)))
  }

  /// Makes a 200 with `application/json`, written by `JSONEncoder` with sorted keys.
  public static func json(encoding value: some Encodable) throws -> Reply {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys]
    let data = try encoder.encode(value)
    return Reply(headers: [.contentType("application/json")], body: .bytes(Array(data)))
  }

  /// Makes a reply of this status, without a body.
  public static func status(_ status: Int) -> Reply { Reply(status: status) }

  /// Makes a 200 with `count` bytes of ``patternByte(at:)`` as `application/octet-stream`.
  public static func bytes(_ count: Int) -> Reply {
    Reply(headers: [.contentType("application/octet-stream")], body: .pattern(count))
  }

  /// Makes a 200 with these bytes as `application/octet-stream`.
  public static func data(_ bytes: [UInt8]) -> Reply {
    Reply(headers: [.contentType("application/octet-stream")], body: .bytes(bytes))
  }

  /// Makes a 200 with these parts in the chunked coding, each a chunk of its own.
  public static func parts(_ parts: Part...) -> Reply {
    Reply(headers: [.contentType("application/octet-stream")], body: .parts(parts))
  }

  /// Makes a redirect to `location`, an absolute URL or a reference, 302 by default.
  public static func redirect(to location: String, status: Int = 302) -> Reply {
    Reply(status: status, headers: [HTTPHeader(name: "Location", value: location)])
  }

  /// Makes a reply that sends only these bytes, then ends the connection unless `closes` is `false`.
  public static func raw(_ bytes: [UInt8], closes: Bool = true) -> Reply {
    Reply(effect: .raw(bytes, closes: closes))
  }

  /// Makes a reply that sends only the UTF-8 of a text, then ends the connection unless `closes` is `false`.
  public static func raw(_ text: String, closes: Bool = true) -> Reply {
    raw(Array(text.utf8), closes: closes)
  }
}

extension Reply {
  /// Returns a copy with another status, such as a body of an error.
  public func with(status: Int) -> Reply {
    changed { $0.status = status }
  }

  /// Returns a copy with one more header field.
  public func with(header name: String, value: String) -> Reply {
    changed { $0.headers.append(HTTPHeader(name: name, value: value)) }
  }

  /// Returns a copy that is sent so much later.
  public func delayed(by delay: Duration) -> Reply {
    changed { $0.delay = delay }
  }

  /// Returns a copy that is held, as a whole, until the gate is opened.
  public func held(by gate: Gate) -> Reply {
    changed { $0.gate = gate }
  }

  /// Returns a copy that fails by this effect.
  public func with(effect: Effect) -> Reply {
    changed { $0.effect = effect }
  }

  /// Returns a copy whose body is delimited by this framing.
  public func framed(_ framing: Framing) -> Reply {
    changed { $0.framing = framing }
  }

  /// Returns a copy with these fields behind its last chunk.
  public func with(trailers: [HTTPHeader]) -> Reply {
    changed { $0.trailers = trailers }
  }

  /// Returns a copy that sends an informational answer first, such as 103 with `Link` fields.
  public func preceded(by status: Int, headers: [HTTPHeader] = []) -> Reply {
    changed { $0.informational.append(Informational(status: status, headers: headers)) }
  }

  /// Returns a copy that treats the body of the request in this way.
  public func requestBody(_ treatment: RequestBody) -> Reply {
    changed { $0.requestBody = treatment }
  }

  /// Returns a copy after which the connection is closed, announced by `Connection: close`.
  public func closing() -> Reply {
    changed { $0.closesConnection = true }
  }

  private func changed(_ change: (inout Reply) -> Void) -> Reply {
    var copy = self
    change(&copy)
    return copy
  }
}
