import HTTPTestServer

/// A request as it came, but for what belongs to its connection: it gets one of its own, which the answer ends. httpbin
/// is told of the TLS in front of it, as where it is at home.
struct ForwardedRequest {
  let bytes: [UInt8]

  private static let fieldsOfTheConnection = ["connection", "content-length", "expect", "transfer-encoding"]

  init(_ request: RecordedRequest) {
    var lines = ["\(request.method) \(request.target) HTTP/1.1"]
    for field in request.headers where !Self.fieldsOfTheConnection.contains(field.name.lowercased()) {
      lines.append("\(field.name): \(field.value)")
    }
    let hasBody = request.isChunked || request.header("Content-Length") != nil
    if hasBody { lines.append("Content-Length: \(request.body.count)") }
    lines += ["X-Forwarded-Proto: https", "Connection: close", "", ""]
    bytes = Array(lines.joined(separator: "\r\n").utf8) + request.body
  }
}
