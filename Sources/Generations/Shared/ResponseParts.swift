import Alamofire
public import Foundation
import FoundationNetworking

/// The points in time of a request and its durations, in seconds.
///
/// Points in time count from the start of 2001, UTC (`Date.timeIntervalSinceReferenceDate`).
public struct Timeline: Sendable {
  /// The time at which the request was first resumed, or its last retry began.
  public let requestStartTime: TimeInterval
  /// The time at which the first byte of a response arrived, or the request ended without one.
  public let initialResponseTime: TimeInterval
  /// The time at which the request ended.
  public let requestCompletedTime: TimeInterval
  /// The time at which the serializer returned.
  public let serializationCompletedTime: TimeInterval

  /// From the start to the first byte.
  public var latency: TimeInterval { initialResponseTime - requestStartTime }
  /// From the start to the end of the request.
  public var requestDuration: TimeInterval { requestCompletedTime - requestStartTime }
  /// From the end of the request to the end of the serialization, waiting included.
  public var serializationDuration: TimeInterval { serializationCompletedTime - requestCompletedTime }
  /// From the start to the end of the serialization.
  public var totalDuration: TimeInterval { serializationCompletedTime - requestStartTime }

  /// Makes a timeline of points in time; the durations follow from them.
  public init(
    requestStartTime: TimeInterval = 0, initialResponseTime: TimeInterval = 0,
    requestCompletedTime: TimeInterval = 0, serializationCompletedTime: TimeInterval = 0
  ) {
    self.requestStartTime = requestStartTime
    self.initialResponseTime = initialResponseTime
    self.requestCompletedTime = requestCompletedTime
    self.serializationCompletedTime = serializationCompletedTime
  }

  /// The current time.
  static var now: TimeInterval { Date().timeIntervalSinceReferenceDate }
}

extension Timeline: CustomStringConvertible, CustomDebugStringConvertible {
  /// The four durations, with three decimals.
  public var description: String { "Timeline: { \(durations.joined(separator: ", ")) }" }

  /// The four points in time and the four durations, with three decimals.
  public var debugDescription: String {
    let times = [
      ("Request Start Time", requestStartTime), ("Initial Response Time", initialResponseTime),
      ("Request Completed Time", requestCompletedTime),
      ("Serialization Completed Time", serializationCompletedTime),
    ].map { "\"\($0)\": \(Self.text($1))" }
    return "Timeline: { \((times + durations).joined(separator: ", ")) }"
  }

  private var durations: [String] {
    [
      ("Latency", latency), ("Request Duration", requestDuration),
      ("Serialization Duration", serializationDuration), ("Total Duration", totalDuration),
    ].map { "\"\($0)\": \(Self.text($1)) secs" }
  }

  private static func text(_ seconds: TimeInterval) -> String { String(format: "%.3f", seconds) }
}

// The lines of debug descriptions of responses. Secrets are left out, because logs keep them.
extension URLRequest {
  /// The method and the URL.
  var debugLine: String {
    let method = ReadableText.line(httpMethod ?? "GET")
    return url.map { "\(method) \($0.textWithoutPassword)" } ?? "\(method) without a URL"
  }
}

extension HTTPURLResponse {
  /// The status, the URL and the header fields, which are sorted by name.
  var debugLine: String {
    let fields = allHeaderFields.map { name, value in
      let name = "\(name)"
      return "\(name): \(Redaction.standard.value("\(value)", ofHeaderField: name))"
    }
    let shown = fields.sorted().joined(separator: ", ")
    let location = url.map { "\($0.textWithoutPassword) " } ?? ""
    return ReadableText.line("\(statusCode) \(location){\(shown.isEmpty ? "" : " \(shown) ")}")
  }
}

extension URL {
  /// The text for descriptions, without password and secret query items because logs keep it.
  var textWithoutPassword: String { ReadableText.line(Redaction.standard.url(absoluteString)) }
}

extension PropertyListSerialization {
  /// Parses a property list from a server.
  ///
  /// Foundation limits the nesting of arrays and dictionaries to 512. It does not limit `plist` elements, and too many
  /// of them end the process. A document has one. ``BinaryPropertyList`` says what the binary format can contain.
  static func untrusted(_ data: Data, options: ReadOptions) throws -> Any {
    if let refusal = data.withUnsafeBytes({ BinaryPropertyList.refusal(of: $0) }) {
      throw CocoaError(
        .propertyListReadCorrupt, userInfo: [NSDebugDescriptionErrorKey: refusal.description])
    }
    guard hasKnownEncoding(data), countOfRoots(data) <= 512 else {
      throw CocoaError(.propertyListReadCorrupt)
    }
    return try propertyList(from: data, options: options, format: nil)
  }

  /// The encodings in which the bytes of a tag follow each other, apart from zeros.
  private static let knownEncodings: Set<String> = [
    "utf-8", "utf8", "us-ascii", "iso-8859-1", "utf-16", "utf-16le", "utf-16be", "utf-32", "utf-32le",
    "utf-32be",
  ]

  /// Returns whether the XML declaration, if there is one, names no encoding in which a tag can be hidden. In
  /// ISO-2022-JP, for example, an escape sequence may stand within each word.
  private static func hasKnownEncoding(_ data: Data) -> Bool {
    guard data.starts(with: Data("<?xml".utf8)) else { return true }
    let end = data.range(of: Data("?>".utf8))?.lowerBound ?? data.endIndex
    let parts = String(decoding: data[..<end], as: UTF8.self).lowercased()
      .components(separatedBy: "encoding")
    // Foundation might read another one than this function.
    guard parts.count == 2 else { return parts.count == 1 }
    let value = parts[1].drop { $0.isWhitespace || $0 == "=" }
    guard let quote = value.first, quote == "\"" || quote == "'" else { return false }
    return knownEncodings.contains(String(value.dropFirst().prefix { $0 != quote }))
  }

  /// Returns the number of `<plist` in the text, whose encoding is one of the known ones.
  private static func countOfRoots(_ data: Data) -> Int {
    var count = 0
    var window: UInt64 = 0
    let root = "<plist".utf8.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    data.withUnsafeBytes { bytes in
      for byte in bytes where byte != 0 {
        window = window << 8 | UInt64(byte)
        if window & 0xFFFF_FFFF_FFFF == root { count += 1 }
      }
    }
    return count
  }
}
