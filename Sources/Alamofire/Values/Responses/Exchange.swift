package import FoundationNetworking
package import HTTPWire
import Synchronization

/// The result of an attempt. Foundation's objects and the metrics are created on first access, and retained. Creating
/// an `HTTPURLResponse` takes longer than all other processing of a small response.
package final class Exchange: Sendable {
  /// A request that was sent, and its response.
  package struct Hop: Sendable {
    package let request: WireRequest
    package var metrics: TransferMetrics
    package var head: ResponseHead?
    package var fetchType: TaskMetrics.ResourceFetchType

    package init(
      _ request: WireRequest, metrics: TransferMetrics, head: ResponseHead? = nil,
      fetchType: TaskMetrics.ResourceFetchType = .networkLoad
    ) {
      self.request = request
      self.metrics = metrics
      self.head = head
      self.fetchType = fetchType
    }

    /// Makes a hop of its parts, for fakes and tests.
    package init(
      url: String, method: String = "GET", fields: [HTTPHeader] = [], metrics: TransferMetrics,
      head: ResponseHead? = nil, fetchType: TaskMetrics.ResourceFetchType = .networkLoad
    ) {
      let origin = Origin(url: url) ?? Origin(scheme: "", host: "", port: nil)
      let request = WireRequest(url: url, origin: origin, profile: ConnectionProfile()) { parts in
        parts.method = method
        parts.fields = fields
      }
      self.init(request, metrics: metrics, head: head, fetchType: fetchType)
    }

    /// The absolute URL, ASCII only.
    package var url: String { request.url }
    package var method: String { request.method }
    /// The fields that were sent.
    package var fields: [HTTPHeader] { request.fields }
  }

  /// The URL of the response, after redirects.
  package let url: URL?
  /// The head of the last response; `nil` without a response.
  package let head: ResponseHead?
  /// The trailer fields of the last response; `nil` without any, or before its end.
  private let trailerBlock: FieldBlock?
  /// Redirects, challenges and the final request, in their order.
  package let hops: ShortList<Hop>
  /// The response if it is not an HTTP one: for a file, a `data:` URL, or a `URLProtocol` class. Then ``head`` is
  /// `nil`, so that no status is validated.
  package let other: URLResponse?
  /// The transfer of the last response if it is not one of ``hops``: from a file, a `data:` URL, a `URLProtocol` class.
  private let unlisted: TransferMetrics?
  /// The names of the caller's secret header fields, if ``hops`` is empty.
  private let namesOfSecrets: Set<String>
  /// The metrics and the response once they were asked for, by any thread.
  private let made: Mutex<Made>

  private struct Made {
    var response: LazyResponse?
    var metrics: TaskMetrics?
  }

  /// Makes the result of an attempt.
  ///
  /// - Parameters:
  ///   - url:              The URL of the response.
  ///   - head:             The head of the last response.
  ///   - trailers:         The trailer fields of the last response.
  ///   - hops:             The requests that were sent; empty for `file:` and `data:` URLs.
  ///   - response:         The response as an object, if it exists already.
  ///   - metrics:          The metrics of an attempt without hops.
  ///   - unlisted:         The transfer of the response, if `hops` does not contain it.
  ///   - protectedHeaders: The names of the request's protected header fields. Needed only without hops.
  package init(
    url: URL?, head: ResponseHead?, trailers: FieldBlock? = nil, hops: ShortList<Hop> = [],
    response: HTTPURLResponse? = nil, metrics: TaskMetrics? = nil, unlisted: TransferMetrics? = nil,
    protectedHeaders: Set<String> = []
  ) {
    namesOfSecrets = protectedHeaders
    self.url = url
    self.head = head
    trailerBlock = trailers
    self.hops = hops
    self.unlisted = unlisted
    other = nil
    made = Mutex(Made(response: response.map { LazyResponse($0) }, metrics: metrics))
  }

  /// Makes the result of a response that is not an HTTP one.
  package init(
    url: URL?, other: URLResponse?, _ hops: ShortList<Hop> = [], metrics: TaskMetrics? = nil,
    unlisted: TransferMetrics? = nil, protectedHeaders: Set<String> = []
  ) {
    namesOfSecrets = protectedHeaders
    self.url = url
    head = nil
    trailerBlock = nil
    self.hops = hops
    self.unlisted = unlisted
    self.other = other
    made = Mutex(Made(metrics: metrics))
  }

  /// The character set that the response names, or that its media type implies.
  package var textEncodingName: String? {
    guard let head else { return other?.textEncodingName }
    return head.charset ?? (head.isJSON ? Charset.impliedByJSON : nil)
  }

  /// The names of the protected header fields of the request, also if nothing was sent.
  var protectedHeaders: Set<String> { hops.last?.request.profile.options.protectedHeaders ?? namesOfSecrets }

  /// The numbers of the transfer of the last response; `nil` without a transfer.
  package var transfer: TransferMetrics.Values? { (unlisted ?? hops.last?.metrics)?.values }

  /// The number of bytes of the last body that was sent. A request without one may have followed after a redirect.
  package var sentBodyBytes: Int64 {
    if let count = transfer?.requestBodyBytes, count > 0 { return count }
    return hops.last { $0.request.bodyCount != 0 }?.metrics.values.requestBodyBytes ?? 0
  }

  /// The length of the body that the response announces; `nil` if it announces none, or if the body is encoded.
  package var announcedLength: Int64? {
    guard let block = head?.block else { return other?.expectedContentLength.nonNegative }
    guard !block.contains("Content-Encoding") else { return nil }
    return block.contentLength
  }

  /// The response for the destination of a download, which asks for one of HTTP in any case.
  package var responseForDestination: HTTPURLResponse? {
    if let response = httpResponse { return response }
    guard let other, let url = other.url else { return nil }
    var fields: [String: String] = [:]
    if let type = other.mimeType { fields["Content-Type"] = type }
    if other.expectedContentLength >= 0 { fields["Content-Length"] = "\(other.expectedContentLength)" }
    // The name of the file comes from there, unless the URL provides it.
    if let name = other.suggestedFilename, !name.utf8.contains(where: { $0 < 0x20 || $0 == 0x22 }) {
      fields["Content-Disposition"] = "attachment; filename=\"\(name)\""
    }
    return ReceivedHTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: fields)
  }

  /// The response, created from the head on first use; `nil` without URL or head.
  package var httpResponse: HTTPURLResponse? {
    response.value
  }

  /// The trailer fields, created on each access. Values of a repeated name are joined (RFC 9110 §5.3).
  package var trailers: HTTPHeaders? { trailerBlock.map { HTTPHeaders(joining: $0.fields) } }

  /// The metrics of all hops, created on first use; without hops, the ones passed to the initialiser.
  package var metrics: TaskMetrics? {
    let response = response
    return made.withLock { made in
      if let metrics = made.metrics { return metrics }
      guard !hops.isEmpty else { return nil }
      let metrics = TaskMetrics(hops: hops, finalResponse: response)
      made.metrics = metrics
      return metrics
    }
  }

  private var response: LazyResponse {
    made.withLock { made in
      if let response = made.response { return response }
      let response = LazyResponse(url: url, head: head)
      made.response = response
      return response
    }
  }
}

/// The source of a response's `HTTPURLResponse` and metrics: the caller's objects, or an exchange that creates them on
/// first access.
package enum ResponseOrigin: Sendable {
  case finished(HTTPURLResponse?, TaskMetrics?)
  case exchange(Exchange?)

  var response: HTTPURLResponse? {
    switch self {
    case .finished(let response, _): response
    case .exchange(let exchange): exchange?.httpResponse
    }
  }

  var metrics: TaskMetrics? {
    switch self {
    case .finished(_, let metrics): metrics
    case .exchange(let exchange): exchange?.metrics
    }
  }

  var trailers: HTTPHeaders? {
    switch self {
    case .finished: nil
    case .exchange(let exchange): exchange?.trailers
    }
  }

  /// The rules for the secrets of the exchange, with the protected header fields of its request.
  var redaction: Redaction {
    guard case .exchange(let exchange?) = self else { return .standard }
    let names = exchange.protectedHeaders
    return names.isEmpty ? .standard : Redaction.standard.adding(names)
  }
}

/// A list that usually has one element, for which it needs no separate memory.
package struct ShortList<Element: Sendable>: RandomAccessCollection, ExpressibleByArrayLiteral, Sendable {
  private var head: Element?
  /// Empty as long as there is no head.
  private var rest: [Element] = []

  package init() {}

  package init(_ elements: some Sequence<Element>) {
    for element in elements { append(element) }
  }

  package init(arrayLiteral elements: Element...) { self.init(elements) }

  package var startIndex: Int { 0 }
  package var endIndex: Int { head == nil ? 0 : 1 + rest.count }

  package subscript(position: Int) -> Element {
    if position == 0, let head { return head }
    return rest[position - 1]
  }

  package mutating func append(_ element: Element) {
    if head == nil { head = element } else { rest.append(element) }
  }

  /// Removes the element at a position and returns it.
  package mutating func remove(at position: Int) -> Element {
    let element = self[position]
    if position > 0 {
      rest.remove(at: position - 1)
    } else {
      head = rest.isEmpty ? nil : rest.removeFirst()
    }
    return element
  }
}

extension Int64 {
  fileprivate var nonNegative: Int64? { self < 0 ? nil : self }
}
