import Foundation
import FoundationNetworking

/// The text of the debug descriptions of responses: a line for each part, and four spaces for each level. Programs read
/// it in logs, so its form does not change.
struct ResponseOutline {
  private static let largestShownBody = 100_000

  let redaction: Redaction
  private var lines: [String] = []
  /// The body of the response, if it was shown.
  private var shownBody: Data?

  init(_ redaction: Redaction = .standard) {
    self.redaction = redaction
  }

  var text: String { lines.joined(separator: "\n") }

  mutating func add(_ line: String, level: Int = 0) {
    let indentation = String(repeating: "    ", count: level)
    for part in ReadableText.lines(line).split(separator: "\n", omittingEmptySubsequences: false) {
      lines.append(indentation + part)
    }
  }

  mutating func add(_ request: URLRequest) {
    add(
      "[Request]: \(request.httpMethod ?? "GET") \(request.url.map { redaction.url($0.absoluteString) } ?? "None")"
    )
    let fields = request.allHTTPHeaderFields ?? [:]
    addFields(fields)
    addBody(request.httpBody, fields: fields)
  }

  /// Adds the response. A body of `nil` is not mentioned; an inner `nil` is an empty body.
  mutating func add(_ response: HTTPURLResponse?, body: Data??) {
    guard let response else {
      add("[Response]: None")
      return
    }
    add("[Response]:")
    add("[Status Code]: \(response.statusCode)", level: 1)
    let fields = response.allHeaderFields as? [String: String] ?? [:]
    addFields(fields)
    if let body, addBody(body, fields: fields) { shownBody = body }
  }

  mutating func addDurations(_ metrics: TaskMetrics?, serialization: TimeInterval) {
    add("[Network Duration]: \(metrics.map { "\($0.taskInterval.duration)s" } ?? "None")")
    add("[Serialization Duration]: \(serialization)s")
  }

  private mutating func addFields(_ fields: [String: String]) {
    guard !fields.isEmpty else {
      add("[Headers]: None", level: 1)
      return
    }
    add("[Headers]:", level: 1)
    for (name, value) in fields.sorted(by: { $0.key.lowercased() < $1.key.lowercased() }) {
      add("\(name): \(redaction.value(value, ofHeaderField: name))", level: 2)
    }
  }

  /// Adds the result. A body that is already shown is not shown again, neither as the value nor as the excerpt in a
  /// failure.
  mutating func addResult<Success, Failure: Error>(_ result: Result<Success, Failure>) {
    guard let shownBody else { return add("[Result]: \(result)") }
    switch result {
    case .success(let text as String) where text == String(decoding: shownBody, as: UTF8.self):
      add("[Result]: success(the body as a String of \(text.count) characters)")
    case .success: add("[Result]: \(result)")
    case .failure: add("[Result]: \(result)".replacing(BodyExcerpt.sentence(shownBody), with: ""))
    }
  }

  /// Returns whether the text of the body is shown.
  @discardableResult
  private mutating func addBody(_ body: Data?, fields: [String: String]) -> Bool {
    guard let body, !body.isEmpty else {
      add("[Body]: None", level: 1)
      return false
    }
    let type = fields.first { $0.key.lowercased() == "content-type" }?.value.lowercased() ?? ""
    let name = type.prefix { $0 != ";" }
    let isText = ["json", "xml", "text"].contains { name.contains($0) }
    guard isText, body.count <= Self.largestShownBody else {
      add("[Body]: \(body.count) bytes", level: 1)
      return false
    }
    add("[Body]:", level: 1)
    let text = String(decoding: body, as: UTF8.self)
    let shown = redaction.body(text.trimmingCharacters(in: .whitespacesAndNewlines), contentType: type)
    add(shown, level: 2)
    return true
  }
}

extension ResponseOutline {
  /// Returns a line about the exchange that failed: method, URL, status, type and size of the body, and its beginning.
  /// The beginning is left out if the text of the failure has it.
  static func line(
    _ request: URLRequest?, _ response: HTTPURLResponse?, body: Data?, of failure: String,
    _ redaction: Redaction
  ) -> String? {
    guard let request, let url = request.url else { return nil }
    let line = "\(request.httpMethod ?? "GET") \(redaction.url(url.absoluteString))"
    guard let response else { return line }
    let type = response.value(forHTTPHeaderField: "Content-Type")
    var facts = ["\(response.statusCode)"]
    if let type { facts.append(type) }
    if let body, !body.isEmpty {
      let excerpt = BodyExcerpt(body, contentType: type, redaction: redaction)
      facts.append(
        failure.contains(BodyExcerpt.sentence(body)) ? body.count.bytes : "\(body.count.bytes): \(excerpt)")
    }
    return ReadableText.line("\(line) (\(facts.joined(separator: ", ")))")
  }
}
