import FoundationEssentials
import HTTPWire

/// The documents in which httpbin describes a request.
struct EchoDocument {
  private let request: RecordedRequest

  init(_ request: RecordedRequest) {
    self.request = request
  }

  /// `args`, `headers`, `origin` and `url`, as `/get` answers.
  var basics: [(String, JSONValue)] {
    [
      ("args", .multimap(request.query)), ("headers", headers), ("origin", .string("127.0.0.1")),
      ("url", .string(url)),
    ]
  }

  /// Returns all that `/anything` answers; `/post` and its siblings leave out the method.
  func everything(withMethod: Bool) -> [(String, JSONValue)] {
    var members = basics
    if withMethod { members.append(("method", .string(request.method))) }
    members.append(contentsOf: content)
    return members
  }

  /// The names in the form that httpbin gives them (`X-My-Header`), repeated fields joined by commas.
  var headers: JSONValue {
    var members: [(name: String, value: String)] = []
    var indices: [String: Int] = [:]
    for header in request.headers {
      let name = Self.titleCase(header.name)
      if let index = indices[name] {
        members[index].value += "," + header.value
      } else {
        indices[name] = members.count
        members.append((name, header.value))
      }
    }
    return .object(members.map { ($0.name, .string($0.value)) })
  }

  /// The absolute URL of the request, by its `Host` field.
  var url: String { absoluteURL(of: request.target) }

  /// Returns the absolute URL of a target on the host that the client named.
  func absoluteURL(of target: String) -> String {
    guard target.hasPrefix("/") else { return target }
    return "\(request.tls == nil ? "http" : "https")://\(request.header("Host") ?? "127.0.0.1")\(target)"
  }

  /// `data`, `files`, `form` and `json`, read from the body by its type.
  private var content: [(String, JSONValue)] {
    let type = MediaType(request.header("Content-Type") ?? "")
    var data = JSONValue.string("")
    var files = JSONValue.object([])
    var form = JSONValue.object([])
    var json = JSONValue.null
    switch type.essence {
    case "application/x-www-form-urlencoded":
      form = .multimap(PercentCoding.pairs(request.bodyText))
    case "multipart/form-data":
      let parts = MultipartParser.parts(of: request.body, boundary: type.parameter("boundary") ?? "")
      form = .multimap(parts.filter { $0.fileName == nil }.map { ($0.name, Self.text(of: $0.body)) })
      files = .multimap(parts.filter { $0.fileName != nil }.map { ($0.name, Self.text(of: $0.body)) })
    default:
      data = .string(Self.text(of: request.body))
      if JSONCheck.isValid(request.body) { json = .verbatim(request.bodyText) }
    }
    return [("data", data), ("files", files), ("form", form), ("json", json)]
  }

  /// Returns the text, or a data URL if the bytes are not UTF-8.
  private static func text(of bytes: [UInt8]) -> String {
    String(validating: bytes, as: UTF8.self)
      ?? "data:application/octet-stream;base64,\(Data(bytes).base64EncodedString())"
  }

  private static func titleCase(_ name: String) -> String {
    name.split(separator: "-", omittingEmptySubsequences: false)
      .map { $0.prefix(1).uppercased() + $0.dropFirst().lowercased() }
      .joined(separator: "-")
  }
}

/// A JSON document that keeps the order of its members.
enum JSONValue: Sendable, Equatable {
  case null
  case bool(Bool)
  case int(Int)
  case string(String)
  case array([JSONValue])
  case members([Member])
  /// Text that is JSON already.
  case verbatim(String)

  struct Member: Sendable, Equatable {
    let name: String
    let value: JSONValue
  }

  static func object(_ members: [(String, JSONValue)]) -> JSONValue {
    .members(members.map { Member(name: $0.0, value: $0.1) })
  }

  /// Returns pairs as httpbin shows them: a single value is a text, several values of a name are an array.
  static func multimap(_ pairs: [(name: String, value: String)]) -> JSONValue {
    var names: [String] = []
    var values: [String: [String]] = [:]
    for (name, value) in pairs {
      if values[name] == nil { names.append(name) }
      values[name, default: []].append(value)
    }
    return .members(
      names.map { name in
        let all = (values[name] ?? []).map { JSONValue.string($0) }
        return Member(name: name, value: all.count == 1 ? all[0] : .array(all))
      })
  }

  /// The text of the document (RFC 8259), without line breaks.
  var text: String {
    switch self {
    case .null: "null"
    case .bool(let value): value ? "true" : "false"
    case .int(let value): "\(value)"
    case .string(let value): Self.quoted(value)
    case .array(let values): "[\(values.map(\.text).joined(separator: ", "))]"
    case .members(let members):
      "{\(members.map { "\(Self.quoted($0.name)): \($0.value.text)" }.joined(separator: ", "))}"
    case .verbatim(let text): text
    }
  }

  private static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\r": result += "\\r"
      case "\t": result += "\\t"
      case "\u{0}"..."\u{1F}":
        let digits = String(scalar.value, radix: 16)
        result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }
}

extension Reply {
  static func json(_ document: JSONValue, status: Int = 200) -> Reply {
    var reply = Reply.json(document.text)
    reply.status = status
    return reply
  }
}

/// Routes that describe the request.
extension Routes {
  var inspection: Routes {
    var routes =
      self
      .adding("/get", methods: ["GET"]) { request, _ in .json(.object(EchoDocument(request).basics)) }
      .adding("/headers", methods: ["GET"]) { request, _ in
        .json(.object([("headers", EchoDocument(request).headers)]))
      }
      .adding("/ip", methods: ["GET"]) { _, _ in .json(.object([("origin", .string("127.0.0.1"))])) }
      .adding("/user-agent", methods: ["GET"]) { request, _ in
        let agent = request.header("User-Agent").map { JSONValue.string($0) } ?? .null
        return .json(.object([("user-agent", agent)]))
      }
      .adding("/anything/**") { request, _ in
        .json(.object(EchoDocument(request).everything(withMethod: true)))
      }
      .adding("/echo", methods: ["POST", "PUT", "PATCH", "DELETE", "GET"]) { request, _ in
        Reply(
          headers: [.contentType(request.header("Content-Type") ?? "application/octet-stream")],
          body: .bytes(request.body))
      }
      .adding("/upload-sink", methods: ["POST", "PUT", "PATCH"], requestBody: .counted) { request, _ in
        .json(.object([("received", .int(request.bodyLength))]))
      }
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
      routes = routes.adding("/\(method.lowercased())", methods: [method]) { request, _ in
        .json(.object(EchoDocument(request).everything(withMethod: false)))
      }
    }
    return routes
  }
}

/// Routes with fixed documents in several formats and codings.
extension Routes {
  var formats: Routes {
    adding("/json", methods: ["GET"]) { _, _ in .json(Self.slideshow) }
      .adding("/html", methods: ["GET"]) { _, _ in Self.document(Self.html, "text/html; charset=utf-8") }
      .adding("/xml", methods: ["GET"]) { _, _ in Self.document(Self.xml, "application/xml") }
      .adding("/encoding/utf8", methods: ["GET"]) { _, _ in
        Self.document(Self.manyScripts, "text/html; charset=utf-8")
      }
      .adding("/image/png", methods: ["GET"]) { _, _ in
        Reply(headers: [.contentType("image/png")], body: .bytes(Self.png))
      }
      .adding("/gzip", methods: ["GET"]) { request, _ in
        Self.coded(request, "gzipped", "gzip", Compression.gzip)
      }
      .adding("/deflate", methods: ["GET"]) { request, _ in
        Self.coded(request, "deflated", "deflate", Compression.zlib)
      }
  }

  private static func document(_ text: String, _ type: String) -> Reply {
    Reply(headers: [.contentType(type)], body: .bytes(Array(text.utf8)))
  }

  private static func coded(
    _ request: RecordedRequest, _ flag: String, _ coding: String, _ compress: ([UInt8]) -> [UInt8]
  ) -> Reply {
    let document = JSONValue.object([
      (flag, .bool(true)), ("headers", EchoDocument(request).headers),
      ("method", .string(request.method)), ("origin", .string("127.0.0.1")),
    ])
    return Reply(
      headers: [.contentType("application/json"), .contentEncoding(coding)],
      body: .bytes(compress(Array(document.text.utf8))))
  }

  private static let slideshow = """
    {"slideshow": {"author": "Ada Lovelace", "date": "2026-01-01", "slides": [{"title": "Engines", \
    "type": "all"}, {"items": ["mills", "stores"], "title": "Overview", "type": "all"}], \
    "title": "Sample"}}
    """

  private static let html = """
    <!DOCTYPE html>
    <html>
      <head><meta charset="utf-8"><title>A page</title></head>
      <body><h1>A page</h1><p>It says nothing, in a few words.</p></body>
    </html>

    """

  private static let xml = """
    <?xml version="1.0" encoding="UTF-8"?>
    <slideshow title="Sample" date="2026-01-01" author="Ada Lovelace">
      <slide type="all"><title>Engines</title></slide>
    </slideshow>

    """

  private static let manyScripts = """
    <h1>Many scripts</h1>
    <p>Grüße, Ελλάδα, Россия, שלום, سلام, नमस्ते, 你好, こんにちは, 안녕, ∮ E⋅da = Q, 👩‍🚀</p>

    """

  /// One pixel.
  private static let png = [UInt8](
    Data(
      base64Encoded: """
        iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP438AAAAQBAYD718vxAAAAAElFTkSuQmCC
        """) ?? Data())
}
