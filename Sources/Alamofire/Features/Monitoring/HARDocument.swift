import Foundation
import FoundationNetworking
import HTTPWire

/// An HTTP archive, version 1.2. The names come from the format.
struct HARDocument: Encodable {
  struct Log: Encodable {
    let version = "1.2"
    let creator = Creator()
    let entries: [HAREntry]
  }

  struct Creator: Encodable {
    let name = "Alamofire"
    let version = AFInfo.version
  }

  struct Pair: Encodable, Sendable {
    let name: String
    let value: String
  }

  struct PostData: Encodable, Sendable {
    let mimeType: String
    let text: String
  }

  struct Content: Encodable, Sendable {
    let size: Int64
    let mimeType: String
    var text: String?
  }

  struct Request: Encodable, Sendable {
    let method: String
    let url: String
    let httpVersion: String
    let cookies: [Pair]
    let headers: [Pair]
    let queryString: [Pair]
    let postData: PostData?
    let headersSize: Int64
    let bodySize: Int64
  }

  struct Response: Encodable, Sendable {
    let status: Int
    let statusText: String
    let httpVersion: String
    let cookies: [Pair]
    let headers: [Pair]
    let content: Content
    let redirectURL: String
    let headersSize: Int64
    let bodySize: Int64
  }

  /// Milliseconds; −1 for a phase that did not happen.
  struct Timings: Encodable, Sendable {
    let blocked: Double
    let dns: Double
    let connect: Double
    let ssl: Double
    let send: Double
    let wait: Double
    let receive: Double
  }

  struct Cache: Encodable, Sendable {}

  struct HAREntry: Encodable, Sendable {
    let startedDateTime: String
    let time: Double
    let request: Request
    let response: Response
    let cache = Cache()
    let timings: Timings
    let serverIPAddress: String?
    let connection: String?
    var comment: String?

    /// The start in seconds since 1970, for the timeline.
    let start: TimeInterval

    private enum CodingKeys: String, CodingKey {
      case startedDateTime, time, request, response, cache, timings, serverIPAddress, connection, comment
    }
  }

  let log: Log

  init(entries: [HAREntry]) {
    log = Log(entries: entries)
  }
}

extension HARDocument.HAREntry {
  /// Makes the entry of a transaction.
  ///
  /// - Parameters:
  ///   - transaction: The metrics of a request that was sent, or answered by a cache.
  ///   - sent:        The body of the request.
  ///   - received:    The body of the response.
  ///   - bodyLimit:   The largest body that is recorded.
  ///   - redaction:   The rules for secrets.
  init(
    _ transaction: TransactionMetrics, sent: Data?, received: Data?, bodyLimit: Int, redaction: Redaction
  ) {
    let timings = HARDocument.Timings(transaction.values)
    start = transaction.values.start
    startedDateTime = Date(timeIntervalSince1970: start)
      .formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    time = timings.total
    self.timings = timings
    request = HARDocument.Request(transaction, body: sent, bodyLimit: bodyLimit, redaction: redaction)
    response = HARDocument.Response(transaction, body: received, bodyLimit: bodyLimit, redaction: redaction)
    serverIPAddress = transaction.remoteAddress
    connection = transaction.localPort.map { "\($0)" }
    comment = transaction.resourceFetchType == .localCache ? "The response came from a cache." : nil
  }
}

extension HARDocument.Timings {
  init(_ values: TransferMetrics.Values) {
    func phase(_ start: Int64, _ end: Int64) -> Double {
      start >= 0 && end >= 0 ? Double(max(0, end - start)) / 1_000 : -1
    }
    let connectStart = max(values.queueEnd, values.lookupEnd)
    let connectEnd = max(values.connectEnd, values.secureEnd)
    dns = values.lookupEnd >= 0 ? phase(values.queueEnd, values.lookupEnd) : -1
    connect = values.connectEnd >= 0 ? phase(connectStart, connectEnd) : -1
    ssl = values.secureEnd >= 0 ? phase(max(0, values.connectEnd), values.secureEnd) : -1
    send = max(0, phase(values.requestStart, values.sendingEnd))
    wait = max(0, phase(values.sendingEnd, values.responseStart))
    receive = max(0, phase(values.responseStart, values.end))
    // The rest of the time: the queue, and a connection that failed.
    let known = max(0, dns) + max(0, connect) + send + wait + receive
    blocked = (max(0, Double(values.latest) / 1_000 - known) * 1_000).rounded() / 1_000
  }

  /// The sum of all phases; `connect` includes `ssl`.
  var total: Double { max(0, blocked) + max(0, dns) + max(0, connect) + send + wait + receive }
}

extension HARDocument.Request {
  fileprivate init(_ transaction: TransactionMetrics, body: Data?, bodyLimit: Int, redaction: Redaction) {
    // With the fields that the transport has added, if it has reported them.
    let fields =
      transaction.requestHead.map { WireHead(Array($0.utf8)).fields } ?? transaction.requestFields
    let type = fields.last { $0.name.lowercased() == "content-type" }?.value
    method = transaction.request.httpMethod ?? "GET"
    url = redaction.url(transaction.request.url?.absoluteString ?? "")
    // A server that answers with HTTP/1.0 was asked with HTTP/1.1.
    let version = transaction.transfer.version
    httpVersion = (version == .http1_0 ? .http1_1 : version).text
    cookies = HARDocument.Pair.cookies(fields, "cookie")
    headers = HARDocument.Pair.list(redaction.fields(fields))
    queryString = HARDocument.Pair.query(of: url)
    postData = body.flatMap { HARDocument.text($0, type, bodyLimit, redaction) }
      .map { HARDocument.PostData(mimeType: type ?? "", text: $0) }
    headersSize = transaction.countOfRequestHeaderBytesSent
    bodySize = transaction.countOfRequestBodyBytesSent
  }
}

extension HARDocument.Response {
  fileprivate init(_ transaction: TransactionMetrics, body: Data?, bodyLimit: Int, redaction: Redaction) {
    let response = transaction.response as? HTTPURLResponse
    let fields = transaction.responseFields
    let type = fields.last { $0.name.lowercased() == "content-type" }?.value
    status = response?.statusCode ?? 0
    statusText = ""
    httpVersion = transaction.transfer.version.text
    cookies = HARDocument.Pair.cookies(fields, "set-cookie")
    headers = HARDocument.Pair.list(redaction.fields(fields))
    content = HARDocument.Content(
      size: transaction.countOfResponseBodyBytesAfterDecoding, mimeType: type ?? "x-unknown",
      text: body.flatMap { HARDocument.text($0, type, bodyLimit, redaction) })
    redirectURL = redaction.url(fields.first { $0.name.lowercased() == "location" }?.value ?? "")
    headersSize = transaction.countOfResponseHeaderBytesReceived
    bodySize = transaction.countOfResponseBodyBytesReceived
  }
}

extension HARDocument {
  /// Returns a body without its secrets; `nil` if it is empty, larger than the limit, or no text.
  fileprivate static func text(_ body: Data, _ type: String?, _ limit: Int, _ redaction: Redaction) -> String?
  {
    guard !body.isEmpty, body.count <= limit, let text = String(validating: body, as: UTF8.self) else {
      return nil
    }
    return redaction.body(text, contentType: type)
  }
}

extension HARDocument.Pair {
  fileprivate static func list(_ fields: [HTTPHeader]) -> [Self] {
    fields.map { Self(name: $0.name, value: $0.value) }
  }

  /// Returns the names of cookies, because the values are secret.
  fileprivate static func cookies(_ fields: [HTTPHeader], _ name: String) -> [Self] {
    fields.filter { $0.name.lowercased() == name }.flatMap { field in
      Redaction.cookieNames(field.value, isSet: name == "set-cookie").map {
        Self(name: $0, value: "<redacted>")
      }
    }
  }

  fileprivate static func query(of url: String) -> [Self] {
    guard let start = url.firstIndex(of: "?") else { return [] }
    let query = url[url.index(after: start)...].prefix { $0 != "#" }
    return query.split(separator: "&").map { item in
      let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      return Self(name: String(parts[0]), value: parts.count > 1 ? String(parts[1]) : "")
    }
  }
}
