import HTTPTestServer

/// A recorded request without the fields of its connection, because it is sent on a new connection that the response
/// ends. `X-Forwarded-Proto` tells httpbin that the client used TLS.
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
