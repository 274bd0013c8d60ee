import Foundation

/// An answer of httpbin, or of a test server, and what it says of the request.
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

  /// The header fields, without what is between the server in front and httpbin, which does not show it.
  private var fields: [String: String]? {
    (document?["headers"] as? [String: String])?.filter { $0.key != "X-Forwarded-Proto" }
  }

  /// Returns the difference, if there is one; the reason phrase, the addresses and the time are ignored.
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
