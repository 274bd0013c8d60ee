import FoundationNetworking
import HTTPWire

extension TransactionMetrics: CustomStringConvertible {
  /// A line for the request, and one for each phase that happened, with its duration and its bytes.
  public var description: String {
    ([title] + phases.map { "  " + $0 }).joined(separator: "\n")
  }

  private var title: String {
    let status = (response as? HTTPURLResponse).map { "\($0.statusCode)" } ?? "no response"
    var parts = ["\(request.httpMethod ?? "GET") \(request.url?.shownText ?? ""): \(status)"]
    switch resourceFetchType {
    case .localCache: parts.append("from a cache")
    case .unknown, .networkLoad, .serverPush:
      parts.append(transfer.version.alpn)
      if let remoteAddress { parts.append(remoteAddress + (remotePort.map { " port \($0)" } ?? "")) }
      if isProxyConnection { parts.append("through a proxy") }
      if isReusedConnection { parts.append("connection used again") }
    }
    return parts.joined(separator: ", ")
  }

  private var phases: [String] {
    let values = values
    var phases: [String] = []
    func add(_ name: String, from start: Int64, to end: Int64, _ note: String? = nil) {
      guard start >= 0, end >= 0 else { return }
      phases.append("\(name): \(Milliseconds(max(0, end - start)))" + (note.map { ", \($0)" } ?? ""))
    }
    let tls = negotiatedTLSProtocolVersion.map { version in
      "\(version)" + (negotiatedTLSCipherSuite.map { " with \($0)" } ?? "")
    }
    if values.queueEnd > 0 { add("queue", from: 0, to: values.queueEnd) }
    add("look-up", from: values.queueEnd, to: values.lookupEnd)
    add("connection", from: max(values.queueEnd, values.lookupEnd), to: values.connectEnd)
    add("TLS handshake", from: max(0, values.connectEnd), to: values.secureEnd, tls)
    add(
      "request", from: values.requestStart, to: values.requestEnd,
      "\(values.requestHeaderBytes) + \(values.requestBodyBytes) bytes")
    add("waiting", from: values.requestEnd, to: values.responseStart)
    let decoded =
      values.decodedBodyBytes == values.responseBodyBytes ? "" : ", \(values.decodedBodyBytes) decoded"
    add(
      "response", from: values.responseStart, to: values.end,
      "\(values.responseHeaderBytes) + \(values.responseBodyBytes) bytes\(decoded)")
    return phases
  }
}

/// A duration as people read it: `12.3 ms`.
struct Milliseconds: CustomStringConvertible {
  let microseconds: Int64

  init(_ microseconds: Double) {
    self.microseconds = Int64(microseconds.rounded())
  }

  init(_ microseconds: Int64) {
    self.microseconds = microseconds
  }

  var description: String {
    let tenths = (microseconds + 50) / 100
    return "\(tenths / 10).\(tenths % 10) ms"
  }
}
