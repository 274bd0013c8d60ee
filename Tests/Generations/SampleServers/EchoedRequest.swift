import Foundation

/// A response of httpbin, or of a test server, and its description of the request.
struct EchoedRequest {
  private let statusLine: String
  private let document: NSDictionary?

  init(_ answer: [UInt8]) {
    let data = Data(answer)
    let head = data.range(of: Data("\r\n\r\n".utf8))
    let lines = String(decoding: data[..<(head?.lowerBound ?? data.endIndex)], as: UTF8.self)
    statusLine = lines.components(separatedBy: "\r\n").first ?? ""
    document =
      (try? JSONSerialization.jsonObject(with: data[(head?.upperBound ?? data.endIndex)...])) as? NSDictionary
  }

  private var status: String { statusLine.split(separator: " ").dropFirst().first.map(String.init) ?? "none" }

  /// The header fields, without the one that the test server adds for httpbin, which httpbin does not echo.
  private var fields: [String: String]? {
    (document?["headers"] as? [String: String])?.filter { $0.key != "X-Forwarded-Proto" }
  }

  /// Returns the first difference, or `nil`. The reason phrase, the addresses and the time are ignored.
  func difference(from other: EchoedRequest) -> String? {
    if status != other.status { return "answered with \(status), expected \(other.status)" }
    for member in ["args", "data", "files", "form", "json", "authenticated", "user"] {
      let (mine, its) = (document?[member] as? NSObject, other.document?[member] as? NSObject)
      if mine != its {
        return "\(member): \(mine ?? "nothing" as NSString), expected \(its ?? "nothing" as NSString)"
      }
    }
    if fields != other.fields { return "fields: \(fields ?? [:]), expected \(other.fields ?? [:])" }
    return nil
  }
}
