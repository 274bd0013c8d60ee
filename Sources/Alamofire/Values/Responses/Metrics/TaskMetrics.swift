public import Foundation
public import FoundationNetworking
public import HTTPWire

/// `TaskMetrics` under the name that it has on Apple's systems.
///
/// Foundation's own class cannot be filled from outside, so this name means ours wherever `Alamofire` is imported. The
/// name is ambiguous in a file that also imports FoundationNetworking. Leave out that import, which `Alamofire` makes
/// superfluous, or say once in your module which type is meant:
///
/// ```swift
/// typealias URLSessionTaskMetrics = Alamofire.URLSessionTaskMetrics
/// typealias URLSessionTaskTransactionMetrics = Alamofire.URLSessionTaskTransactionMetrics
/// ```
public typealias URLSessionTaskMetrics = TaskMetrics

/// `TransactionMetrics` under the name that it has on Apple's systems; see ``URLSessionTaskMetrics``.
public typealias URLSessionTaskTransactionMetrics = TransactionMetrics

/// The metrics of a request: one transaction for each request that was sent, including redirects and challenges.
///
/// Every request that has ended has metrics. Metrics without a transaction mean that nothing was sent. The request
/// could not be created, was cancelled before, or was served by a file, a `data:` URL or a `URLProtocol` class.
///
/// It has the members of Foundation's class of the other name. The transport measured the values; they can be read on
/// any thread.
///
/// ```swift
/// let response = await AF.request(url).serializingData().response
/// print(response.metrics?.taskInterval.duration ?? 0)
/// ```
public final class TaskMetrics: Sendable {
  /// The source of a response.
  public enum ResourceFetchType: Int, Sendable {
    /// An unknown source.
    case unknown = 0
    /// The network.
    case networkLoad = 1
    /// The server, before it was asked. Never happens here.
    case serverPush = 2
    /// A cache of this program.
    case localCache = 3
  }

  /// The protocol of the name's look-up.
  public enum DomainResolutionProtocol: Int, Sendable {
    /// An unknown protocol, because the system's resolver does not report it.
    case unknown = 0
    /// DNS over UDP.
    case udp = 1
    /// DNS over TCP.
    case tcp = 2
    /// DNS over TLS.
    case tls = 3
    /// DNS over HTTPS.
    case https = 4
  }

  /// The requests in the order in which they were sent; empty if nothing was handed to the network.
  public let transactionMetrics: [TransactionMetrics]
  /// From the start of the first request to the end of the last.
  public let taskInterval: DateInterval
  /// The number of followed redirects.
  public let redirectCount: Int

  /// Makes the metrics of an attempt that handed nothing to the network, from `start` to now.
  init(from start: Date) {
    transactionMetrics = []
    taskInterval = DateInterval(start: start, end: max(start, Date()))
    redirectCount = 0
  }

  /// Makes the metrics of an attempt. `finalResponse` is the response of the last hop, so that users see one object
  /// everywhere.
  init(hops: ShortList<Exchange.Hop>, finalResponse: LazyResponse) {
    transactionMetrics = hops.enumerated().compactMap { index, hop in
      TransactionMetrics(hop: hop, response: index == hops.count - 1 ? finalResponse : nil)
    }
    let start = hops.first.map { $0.metrics.values.start } ?? 0
    let end =
      hops.map { $0.metrics.values.start + Double($0.metrics.values.latest) / 1_000_000 }.max() ?? start
    taskInterval = DateInterval(
      start: Date(timeIntervalSince1970: start), end: Date(timeIntervalSince1970: max(start, end)))
    redirectCount = hops.dropLast().count { hop in
      [301, 302, 303, 307, 308].contains(hop.head?.status)
    }
  }
}

extension TaskMetrics: CustomStringConvertible {
  /// A line for the whole, and for every request a line for each phase that happened.
  public var description: String {
    let duration = Milliseconds(taskInterval.duration * 1_000_000)
    let redirects = redirectCount == 1 ? "1 redirect" : "\(redirectCount) redirects"
    return (["Task: \(duration), \(redirects)"] + transactionMetrics.map(\.description)).joined(
      separator: "\n")
  }
}

extension TransferMetrics.Values {
  /// The last moment that is known, in microseconds since the start.
  var latest: Int64 {
    max(0, lookupEnd, connectEnd, secureEnd, requestStart, requestEnd, responseStart, end)
  }

  /// The end of the phase in which the request was sent. If a response came before all of it was sent, its first byte
  /// ends the phase.
  var sendingEnd: Int64 { requestEnd >= 0 ? requestEnd : responseStart }
}

/// The metrics of one request, from the look-up of the name to the last byte.
///
/// It has the members of Foundation's `URLSessionTaskTransactionMetrics`. A phase that did not happen, such as the
/// handshake on a reused connection, has no dates. Only ``TaskMetrics`` makes it.
public final class TransactionMetrics: Sendable {
  /// The request: URL, method and the header fields that were sent.
  public let request: URLRequest
  /// The source of the response.
  public let resourceFetchType: TaskMetrics.ResourceFetchType
  /// The header fields of the request in their order. The transport adds `Host` and the fields that frame the body; see
  /// ``requestHead``.
  public let requestFields: [HTTPHeader]

  let transfer: TransferMetrics
  /// The body in memory that was sent. Retained while ``requestHead`` is.
  let requestBody: Data?
  private let lazyResponse: LazyResponse
  private let head: ResponseHead?

  /// Makes the metrics of a hop; `nil` when Foundation cannot parse its URL.
  init?(hop: Exchange.Hop, response: LazyResponse?) {
    guard let url = URL(wire: hop.url) else { return nil }
    var request = URLRequest(url: url)
    request.httpMethod = hop.method
    request.allHTTPHeaderFields = Dictionary(
      hop.fields.map { ($0.name, $0.value) }, uniquingKeysWith: { $0 + ", " + $1 })
    self.request = request
    requestFields = hop.fields
    head = hop.head
    resourceFetchType = hop.fetchType
    transfer = hop.metrics
    if hop.metrics.requestHead != nil, case .bytes(let data) = hop.request.body {
      requestBody = data
    } else {
      requestBody = nil
    }
    lazyResponse = response ?? LazyResponse(url: url, head: hop.head)
  }

  /// The response; `nil` if none was received.
  public var response: URLResponse? { lazyResponse.value }

  /// The header fields of the response as received: in their order and spelling, and with each `Set-Cookie` as a
  /// separate field. Empty without a response. Created on each access.
  ///
  /// ```swift
  /// for transaction in response.metrics?.transactionMetrics ?? [] {
  ///   for field in transaction.responseFields { print("\(field.name): \(field.value)") }
  /// }
  /// ```
  public var responseFields: [HTTPHeader] { head?.block.fields ?? [] }

  /// The head of the request as it was sent: its first line and all fields, each with a line break. HTTP/2 encodes a
  /// head, which is shown in the form of HTTP/1.1. It may contain secrets.
  ///
  /// It is stored while a ``WireLog`` or a ``RequestRecorder`` observes the request, and is `nil` otherwise.
  public var requestHead: String? { transfer.requestHead }

  var values: TransferMetrics.Values { transfer.values }

  /// Returns the date of a moment in microseconds; `nil` for a moment that did not occur (−1).
  private func date(_ microseconds: Int64) -> Date? {
    guard microseconds >= 0 else { return nil }
    return Date(timeIntervalSince1970: values.start + Double(microseconds) / 1_000_000)
  }

  private var connects: Bool { values.connectEnd >= 0 }
  private var secures: Bool { values.secureEnd >= 0 }
}

// MARK: Dates

extension TransactionMetrics {
  /// The time at which the request was handed to the transport.
  public var fetchStartDate: Date? { date(0) }
  /// The start of the name's look-up, after the time in the queue of the session; `nil` on a reused connection.
  public var domainLookupStartDate: Date? { values.lookupEnd >= 0 ? date(values.queueEnd) : nil }
  /// The end of the name's look-up.
  public var domainLookupEndDate: Date? { date(values.lookupEnd) }
  /// The start of the connection, even if it was not complete in time; `nil` on a reused connection.
  public var connectStartDate: Date? {
    connects || values.lookupEnd >= 0 ? date(max(values.queueEnd, values.lookupEnd)) : nil
  }
  /// The time at which the connection could be used: after the TLS handshake, if there was one.
  public var connectEndDate: Date? { connects ? date(max(values.connectEnd, values.secureEnd)) : nil }
  /// The start of the TLS handshake.
  public var secureConnectionStartDate: Date? { secures ? date(max(0, values.connectEnd)) : nil }
  /// The end of the TLS handshake.
  public var secureConnectionEndDate: Date? { date(values.secureEnd) }
  /// The time at which the first byte of the request was sent.
  public var requestStartDate: Date? { date(values.requestStart) }
  /// The time at which the last byte of the request was sent; `nil` if the body was not complete. Bytes count as sent
  /// when the system has accepted them.
  public var requestEndDate: Date? { date(values.requestEnd) }
  /// The time at which the first byte of the response was received.
  public var responseStartDate: Date? { date(values.responseStart) }
  /// The time at which the last byte of the response was received.
  public var responseEndDate: Date? { date(values.end) }
}

// MARK: Sizes

extension TransactionMetrics {
  /// The size of the request's head in bytes.
  public var countOfRequestHeaderBytesSent: Int64 { values.requestHeaderBytes }
  /// The number of bytes of the request's body that were sent.
  public var countOfRequestBodyBytesSent: Int64 { values.requestBodyBytes }
  /// The size of the request's body in bytes, as it was handed to the transport; here the same as
  /// ``countOfRequestBodyBytesSent``.
  public var countOfRequestBodyBytesBeforeEncoding: Int64 { values.requestBodyBytes }
  /// The size of the response's head in bytes.
  public var countOfResponseHeaderBytesReceived: Int64 { values.responseHeaderBytes }
  /// The size of the response's body in bytes, as received over the wire.
  public var countOfResponseBodyBytesReceived: Int64 { values.responseBodyBytes }
  /// The size of the response's body in bytes, after its content coding was undone.
  public var countOfResponseBodyBytesAfterDecoding: Int64 { values.decodedBodyBytes }
}

// MARK: Connection

extension TransactionMetrics {
  /// The ALPN name of the protocol: `http/1.1`, `h2` (RFC 7301).
  public var networkProtocolName: String? { transfer.version.alpn }
  /// Whether a proxy was in between.
  public var isProxyConnection: Bool { values.isProxyConnection }
  /// Whether the connection was there already.
  public var isReusedConnection: Bool { values.isReusedConnection }
  /// Our end of the connection, as text.
  public var localAddress: String? { transfer.localAddress.isEmpty ? nil : transfer.localAddress }
  /// The port at our end.
  public var localPort: Int? { values.localPort > 0 ? Int(values.localPort) : nil }
  /// The other end of the connection, as text: the server, or its proxy.
  public var remoteAddress: String? { transfer.remoteAddress.isEmpty ? nil : transfer.remoteAddress }
  /// The port at the other end.
  public var remotePort: Int? { values.remotePort > 0 ? Int(values.remotePort) : nil }
  /// The version of TLS; `nil` without TLS.
  public var negotiatedTLSProtocolVersion: TLSProtocolVersion? {
    transfer.tlsVersion.flatMap { TLSProtocolVersion(openSSLName: $0) }
  }
  /// The cipher suite; `nil` without TLS. Its description is a name, such as `TLS_AES_256_GCM_SHA384`.
  public var negotiatedTLSCipherSuite: TLSCipherSuite? {
    transfer.tlsCipher.map { TLSCipherSuite(rawValue: $0) }
  }
  /// The protocol of the name's look-up; always `.unknown`, because the system's resolver does not report it.
  public var domainResolutionProtocol: TaskMetrics.DomainResolutionProtocol { .unknown }
  /// Always `false`: Linux does not say which network is a cellular one.
  public var isCellular: Bool { false }
  /// Always `false`: Linux does not say which network costs money.
  public var isExpensive: Bool { false }
  /// Always `false`: there is no low data mode on Linux.
  public var isConstrained: Bool { false }
  /// Always `false`: Multipath TCP is not used.
  public var isMultipath: Bool { false }
}

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
      "request", from: values.requestStart, to: values.sendingEnd,
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
