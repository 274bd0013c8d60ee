import Glibc
import HTTPEngine
import Testing

/// The engine that the tests of this target use: the value of `ALAMOFIRE_TEST_ENGINE`, by default `own`.
let engine = TestEngine.chosen

/// An engine under test.
///
/// ```swift
/// @Test("CONNECT skips informational responses", .enabled(if: !engine.isCurl))
/// @Test("The proxy receives the absolute form", .enabled(if: engine.has(.proxies)))
/// ```
enum TestEngine: String, CaseIterable, CustomTestStringConvertible {
  /// The engine over libcurl.
  case curl
  /// The engine over our own sockets.
  case own

  /// A part of an engine. Tests of a part that an engine does not have yet are disabled for it.
  enum Part: CaseIterable {
    case byteStreams, tls, requests, bodies, proxies, names, alternatives, http2, logins
  }

  /// The environment variable that chooses the engine.
  static let variable = "ALAMOFIRE_TEST_ENGINE"

  private static let name = getenv(variable).map { String(cString: $0) } ?? TestEngine.own.rawValue

  /// The engine that the environment chooses. The engine of an unknown name is not in this build.
  static let chosen = TestEngine(rawValue: name) ?? .own

  /// The engines that this build contains.
  static var available: [TestEngine] { allCases.filter(\.isAvailable) }

  var isCurl: Bool { self == .curl }
  var isAvailable: Bool { !parts.isEmpty }
  var testDescription: String { rawValue }

  func has(_ part: Part) -> Bool { parts.contains(part) }

  private var parts: Set<Part> {
    switch self {
    case .curl:
      Set(Part.allCases).subtracting(
        CurlLibrary.shared.connectionSchemes.contains(.ntlm) ? [] : [.logins]
      ).subtracting(CurlLibrary.shared.speaksHTTP2 ? [] : [.http2])
    case .own: Set(Part.allCases)
    }
  }

  /// Makes an engine. The only function of the tests that names the type of one.
  func makeTransport(_ loop: EventLoop) -> any EngineTransport {
    if !isAvailable {
      Issue.record(
        """
        \(Self.variable) chooses the engine "\(Self.name)", which is not in this build, so another one is used. Unset it, \
        or choose one of: \(Self.available.map(\.rawValue).joined(separator: ", ")).
        """)
    }
    return CurlTransport(loop: loop)
  }
}
