import Foundation
import FoundationNetworking

/// The text behind the debug descriptions of responses: a line for each part, and four spaces for each
/// level. Programs read it in logs, so its form does not change.
struct ResponseOutline {
  private static let largestShownBody = 100_000

  private var lines: [String] = []

  var text: String { lines.joined(separator: "\n") }

  mutating func add(_ line: String, level: Int = 0) {
    let indentation = String(repeating: "    ", count: level)
    for part in line.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline) {
      lines.append(indentation + part)
    }
  }

  mutating func add(_ request: URLRequest) {
    add("[Request]: \(request.httpMethod ?? "GET") \(request.url?.shownText ?? "None")")
    let fields = request.allHTTPHeaderFields ?? [:]
    addFields(fields)
    addBody(request.httpBody, fields: fields)
  }

  /// A body of `nil` is not mentioned at all, an inner `nil` is an empty one.
  mutating func add(_ response: HTTPURLResponse?, body: Data??) {
    guard let response else {
      add("[Response]: None")
      return
    }
    add("[Response]:")
    add("[Status Code]: \(response.statusCode)", level: 1)
    let fields = response.allHeaderFields as? [String: String] ?? [:]
    addFields(fields)
    if let body { addBody(body, fields: fields) }
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
      add("\(name): \(Self.shown(value, of: name))", level: 2)
    }
  }

  /// Masks secrets, because descriptions end up in logs: only the presence of the field and its scheme are shown.
  private static func shown(_ value: String, of name: String) -> String {
    switch name.lowercased() {
    case "authorization", "proxy-authorization":
      let words = value.split(separator: " ", maxSplits: 1)
      return words.count == 2 ? "\(words[0]) <redacted>" : "<redacted>"
    case "cookie", "set-cookie": return "<redacted>"
    default: return value
    }
  }

  private mutating func addBody(_ body: Data?, fields: [String: String]) {
    guard let body, !body.isEmpty else {
      add("[Body]: None", level: 1)
      return
    }
    let type = fields.first { $0.key.lowercased() == "content-type" }?.value.lowercased() ?? ""
    let isText = ["json", "xml", "text"].contains { type.contains($0) }
    guard isText, body.count <= Self.largestShownBody else {
      add("[Body]: \(body.count) bytes", level: 1)
      return
    }
    add("[Body]:", level: 1)
    let text = String(decoding: body, as: UTF8.self)
    add(text.trimmingCharacters(in: .whitespacesAndNewlines), level: 2)
  }
}
