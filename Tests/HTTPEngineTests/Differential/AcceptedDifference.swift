import HTTPTestServer

/// A script of which the engine makes something else than `curl` does, for a reason.
struct AcceptedDifference: Sendable {
  /// The result of the engine.
  enum Expected: Sendable, Equatable {
    case malformed
    case cutOff
    case undecodable
    /// A response with status 200 and this body.
    case response(String)
  }

  let expected: Expected
  /// A sentence about `curl`.
  let reason: String
  /// Parts of the names of the scripts.
  let scripts: [String]

  init(_ expected: Expected, _ reason: String, _ scripts: String...) {
    self.expected = expected
    self.reason = reason
    self.scripts = scripts
  }

  func covers(_ script: WireScript) -> Bool { scripts.contains { script.name.contains($0) } }

  func allows(_ kind: WireOutcome.Kind) -> Bool {
    switch expected {
    case .malformed: kind == .malformed
    case .cutOff: kind == .cutOff
    case .undecodable: kind == .undecodable
    case .response(let body): kind == .response(status: 200, body: .init(Array(body.utf8)))
    }
  }

  /// All differences. `Documentation/HTTPReading.md` has the rules of the engine.
  static let all = [
    AcceptedDifference(
      .cutOff, "curl sends a request again although a byte of a response to it has arrived.",
      "fault a single byte"),
    AcceptedDifference(
      .malformed, "curl reads the digits at the start of a length, and takes the last length.",
      "Content-Length: 5\r\nContent-Length: 6", "Content-Length: 6\r\nContent-Length: 5",
      "Content-Length: 5, 6",
      "Content-Length: +5", "Content-Length: 5a", "Content-Length: 0x5", "Content-Length: 1e2",
      "Content-Length: 5 5", "Content-Length: 5;", "Content-Length: 1\r\n 5"),
    AcceptedDifference(
      .malformed, "curl ignores a length that it cannot represent.",
      "Content-Length: 9223372036854775808", "Content-Length: 18446744073709551621"),
    AcceptedDifference(
      .malformed, "curl decodes transfer codings that it did not ask for.",
      "Transfer-Encoding: gzip", "xchunked", "chunked;q=1"),
    AcceptedDifference(
      .malformed, "curl finds the coding chunked anywhere and any number of times.",
      "chunked, chunked", "chunked\r\nTransfer-Encoding: chunked", "chunked, identity"),
    AcceptedDifference(
      .malformed, "curl does not unfold a line before it looks for codings.", "Transfer-Encoding:\r\n chunked"
    ),
    AcceptedDifference(
      .malformed, "curl does not check the characters of field names.",
      "Content-Length : 5", "X-A\t: b", "X A: b", "X(A): b", "\r\n: b", "X-Á: b"),
    AcceptedDifference(
      .malformed, "curl reads CR without LF as a part of the line.", "X-A: b\rX-B", "X-A: b\r\r\n", "200 O\rK"
    ),
    AcceptedDifference(
      .malformed, "curl takes 101 that it did not ask for as a response.", "malformed HTTP/1.1 101"),
    AcceptedDifference(
      .malformed, "curl does not compare the version with the connection's.",
      "malformed HTTP/2", "seed response/excess 2"),
    AcceptedDifference(
      .malformed, "curl 8 reads the first three digits of a status.", "malformed HTTP/1.1 2000 OK"),
    AcceptedDifference(
      .malformed, "curl follows the first of several locations.", "Location: /a\r\nLocation: /b"),
    AcceptedDifference(
      .malformed, "curl reports a wrong chunk as a failure of receiving.", "fault bad chunk"),
    AcceptedDifference(
      .cutOff, "curl takes a head without its empty line as complete.", "fault head ends early"),
    AcceptedDifference(
      .undecodable, "curl takes a part of a gzip stream as complete.", "fault truncated gzip"),
    AcceptedDifference(
      .response("hello"), "curl 7.88 takes excess bytes as the next response.", "seed response/excess 0"),
    AcceptedDifference(
      .response("hello"), "curl does not unfold a line before it looks for codings.", "seed response/folded 0"
    ),
    AcceptedDifference(
      .malformed, "curl 7.88 ends at a head if its first field begins with white space.",
      "seed response/folded 1"),
  ]
}
