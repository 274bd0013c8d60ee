import ChildProcesses
package import HTTPTestServer

/// What stands before a real httpbin: a test server takes requests over TLS and records them, and this leads those for
/// httpbin.org there. Answers come back byte for byte.
package enum HTTPBinFront {
  /// The routes of the server in front.
  ///
  /// - Parameters:
  ///   - port: Where httpbin is.
  ///   - others: The port of who answers for all other hosts, over plain HTTP.
  package static func routes(to port: UInt16, others: Int) -> Routes {
    Routes.none.adding("/**") { request, _ in
      forwarded(request, to: request.header("Host") == "httpbin.org" ? port : UInt16(others))
    }
  }

  /// A request that goes nowhere is answered with 502 and the reason.
  private static func forwarded(_ request: RecordedRequest, to port: UInt16) -> Reply {
    do {
      return .raw(try Loopback.exchange(bytes(of: request), with: port))
    } catch {
      var reply = Reply.text("\(error)")
      reply.status = 502
      return reply
    }
  }

  /// The request as it came, but for what belongs to its connection: it gets one of its own, which the answer ends.
  /// httpbin is told of the TLS in front of it, as where it is at home.
  private static func bytes(of request: RecordedRequest) -> [UInt8] {
    let ofTheConnection = ["connection", "content-length", "expect", "transfer-encoding"]
    var lines = ["\(request.method) \(request.target) HTTP/1.1"]
    for field in request.headers where !ofTheConnection.contains(field.name.lowercased()) {
      lines.append("\(field.name): \(field.value)")
    }
    let hasBody = request.isChunked || request.header("Content-Length") != nil
    if hasBody { lines.append("Content-Length: \(request.body.count)") }
    lines += ["X-Forwarded-Proto: https", "Connection: close", "", ""]
    return Array(lines.joined(separator: "\r\n").utf8) + request.body
  }
}
