import Foundation
import FoundationNetworking

/// The facts of a request for a line of a log, without its secrets.
struct RequestFacts {
  let method: String?
  let url: String?
  let status: Int?
  let duration: TimeInterval?
  let transaction: TransactionMetrics?

  private let request: Request
  private let redaction: Redaction
  private let metrics: [TaskMetrics]

  init(_ request: Request, _ redaction: Redaction) {
    self.request = request
    self.redaction = request.redaction(redaction)
    let urlRequest = request.request
    method = urlRequest.map { $0.httpMethod ?? "GET" }
    url = urlRequest?.url.map { [rules = self.redaction] in
      ReadableText.line(rules.url($0.absoluteString))
    }
    status = request.response?.statusCode
    let all = request.allMetrics
    metrics = all
    transaction = all.last?.transactionMetrics.last
    duration = all.first.flatMap { first in
      all.last.map { $0.taskInterval.end.timeIntervalSince(first.taskInterval.start) }
    }
  }

  /// `GET https://example.com/`.
  var title: String { "\(method ?? "Request") \(url ?? "without URL")" }

  /// Returns the fields as `, Name: value, …` with masked secrets.
  func text(of fields: [(String, String)]) -> String {
    fields.sorted { $0.0.lowercased() < $1.0.lowercased() }.map { name, value in
      ", \(name): \(redaction.value(value, ofHeaderField: name))"
    }.joined()
  }

  /// Returns the message of an error on one line.
  func sentence(_ error: AFError) -> String {
    redaction.urls(in: error.localizedDescription).split(whereSeparator: \.isNewline).joined(separator: " ")
  }

  /// Returns the line at the end of the request.
  func end(_ error: AFError?, bodyLimit: Int) -> String {
    var parts = [status.map { "\(title): \($0)" } ?? "\(title): no response"]
    if let type = request.response?.value(forHTTPHeaderField: "Content-Type") { parts.append(type) }
    if let transaction, status != nil {
      parts.append(Int(clamping: transaction.countOfResponseBodyBytesAfterDecoding).bytes)
      if transaction.resourceFetchType == .localCache { parts.append("from a cache") }
    }
    if let duration { parts.append("\(Milliseconds(duration * 1_000_000))") }
    let redirects = metrics.last?.redirectCount ?? 0
    if redirects > 0 { parts.append(redirects == 1 ? "1 redirect" : "\(redirects) redirects") }
    let retries = request.retryCount
    if retries > 0 { parts.append(retries == 1 ? "1 retry" : "\(retries) retries") }
    if bodyLimit > 0 { parts += bodies(bodyLimit) }
    let line = parts.joined(separator: ", ")
    return error.map { "\(line): \(sentence($0))" } ?? line
  }

  private func bodies(_ limit: Int) -> [String] {
    var parts: [String] = []
    let sent = request.request
    if let body = sent?.httpBody, !body.isEmpty {
      let type = sent?.value(forHTTPHeaderField: "Content-Type")
      parts.append("sent \(BodyExcerpt(body, contentType: type, limit: limit, redaction: redaction))")
    }
    if let body = (request as? DataRequest)?.data, !body.isEmpty {
      let type = request.response?.value(forHTTPHeaderField: "Content-Type")
      parts.append("received \(BodyExcerpt(body, contentType: type, limit: limit, redaction: redaction))")
    }
    return parts
  }
}

extension Request {
  /// Returns rules for secrets with the protected header fields of this request.
  func redaction(_ rules: Redaction) -> Redaction {
    let names = core.profile.options.protectedHeaders
    return names.isEmpty ? rules : rules.adding(names)
  }
}
