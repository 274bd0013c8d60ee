import Foundation
public import HTTPWire

extension HTTPHeaders {
  /// The fields that every request of a default session has: `Accept-Encoding`, `Accept-Language` and `User-Agent`, in
  /// this order. Created once, on first use.
  public static let `default`: HTTPHeaders = [
    .defaultAcceptEncoding, .defaultAcceptLanguage, .defaultUserAgent,
  ]
}

extension HTTPHeader {
  /// `Accept-Encoding` (RFC 9110 §12.5.3) with the codings that can be decoded here, for example
  /// `br;q=1.0, gzip;q=0.9, deflate;q=0.8`. Created once, on first use.
  public static let defaultAcceptEncoding = HTTPHeader.acceptEncoding(
    ranked(ContentCodings.supported))

  /// `Accept-Language` (RFC 9110 §12.5.4) with up to six of the user's languages, for example `de-DE;q=1.0, en;q=0.9`.
  /// Created once, on first use.
  public static let defaultAcceptLanguage = HTTPHeader.acceptLanguage(
    ranked(Locale.preferredLanguages.prefix(6)))

  /// `User-Agent` (RFC 9110 §10.1.5) that names the program, its bundle, the system and this library, for example
  /// `tool/2.1 (org.example.tool; build:7; Linux) Alamofire/1.2.3`. Created once, on first use.
  ///
  /// Version, bundle and build come from the bundle of the program. Most programs on Linux have none, and then the
  /// field is `tool (Linux) Alamofire/1.2.3`. To name a version, set your own field with `userAgent(_:)`. The version
  /// of the kernel is not sent, because it tells an attacker which faults the machine has.
  public static let defaultUserAgent = HTTPHeader.userAgent(
    userAgent(info: Bundle.main.infoDictionary ?? [:], arguments: ProcessInfo.processInfo.arguments))

  /// Returns values with falling qualities (RFC 9110 §12.4.2): the first 1.0, and a tenth less each, down to 0.1.
  package static func ranked(_ values: some Collection<String>) -> String {
    values.enumerated()
      .map { index, value in
        let quality = index == 0 ? "1.0" : "0.\(max(10 - index, 1))"
        return "\(value);q=\(quality)"
      }
      .joined(separator: ", ")
  }

  package static func userAgent(info: [String: Any], arguments: [String]) -> String {
    func value(_ key: String) -> String? {
      (info[key] as? String).map(token).flatMap { $0.isEmpty ? nil : $0 }
    }
    let launched = arguments.first?.split(separator: "/").last.map { token(String($0)) }
    let program = (value("CFBundleExecutable") ?? launched).map { name in
      name + (value("CFBundleShortVersionString").map { "/\($0)" } ?? "")
    }
    let bundle = [value("CFBundleIdentifier"), value("CFBundleVersion").map { "build:\($0)" }, "Linux"]
    let comment = "(\(bundle.compactMap { $0 }.joined(separator: "; ")))"
    let library = "Alamofire/\(AFInfo.version)"
    // The field begins with a product.
    return program.map { "\($0) \(comment) \(library)" } ?? "\(library) \(comment)"
  }

  /// Replaces characters that are invalid in the name of a product (RFC 9110 §5.6.2). The file name of a program can
  /// contain any character, such as a line break.
  private static func token(_ text: String) -> String {
    String(text.map { HeaderFieldRules.isToken(String($0)) ? $0 : "_" })
  }
}

/// The content codings (RFC 9110 §8.4.1) that a response may use.
package enum ContentCodings {
  /// The content codings of the default `Accept-Encoding` that the engine supports, preferred ones first. The engine
  /// decodes others (`zstd`) too, and a request can accept them.
  package static let supported = ["br", "gzip", "deflate"].filter { ContentCoding(rawValue: $0) != nil }
}

/// Facts about the library itself.
public enum AFInfo {
  /// The version of this library (Semantic Versioning), which is unrelated to upstream Alamofire's. Only this line and
  /// the CHANGELOG contain the version.
  public static let version = "0.1.0"
}
