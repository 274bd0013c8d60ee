import Foundation
import FoundationNetworking
import HTTPWire

// The calls of a `URLProtocol` to its client; on any thread.
extension ProtocolExchange: URLProtocolClient {
  func urlProtocol(
    _ protocol: URLProtocol, didReceive response: URLResponse,
    cacheStoragePolicy policy: URLCache.StoragePolicy
  ) {
    events.async { [self] in received(response) }
  }

  func urlProtocol(_ protocol: URLProtocol, didLoad data: Data) {
    events.async { [self] in received(data) }
  }

  func urlProtocolDidFinishLoading(_ protocol: URLProtocol) {
    events.async { [self] in happened(.finish) }
  }

  func urlProtocol(_ protocol: URLProtocol, didFailWithError error: any Error) {
    events.async { [self] in
      if reply.state != .ended { given.error = error }
      happened(.failure)
    }
  }

  func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse) {
    events.async { [self] in
      guard reply.state == .waiting else { return }
      received(cachedResponse.response)
      received(cachedResponse.data)
    }
  }

  func urlProtocol(
    _ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse
  ) {
    events.async { [self] in
      guard reply.event(.redirect) == .follow else { return }
      let head = ResponseHead(redirect: redirectResponse, to: request, from: wire.method)
      end(.success(WireResponse(head: head, body: nil, metrics: TransferMetrics())))
    }
  }

  func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge) {
    events.async { [self] in
      guard reply.event(.challenge) == .answerChallenge else { return }
      guard let sender = challenge.sender else {
        _ = reply.event(.cancel)
        return end(
          .failure(
            TransportFailure(
              .userAuthenticationRequired,
              "The URLProtocol class \(type) asked for credentials without a sender to take them.")))
      }
      let credential = challenge.previousFailureCount == 0 ? credential : nil
      work.async {
        if let credential {
          sender.use(credential, for: challenge)
        } else {
          sender.continueWithoutCredential(for: challenge)
        }
      }
    }
  }

  func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge) {}

  // MARK: On the queue of events

  private func received(_ response: URLResponse) {
    if reply.state == .waiting { given.response = response }
    happened(.response)
  }

  private func received(_ data: Data) {
    let action = reply.event(.bytes)
    perform(action)
    guard action == .deliverBytes || action == .deliverBytesAlone else { return }
    delivery.append(data)
    deliver()
  }
}

extension ResponseHead {
  /// The head of data that a class gives without a response.
  static var missing: ResponseHead {
    var head = ResponseHead(status: 200)
    head.role = .missing
    return head
  }

  /// Makes the head of a response by a class of the user. A redirect status is not followed, because such a class
  /// redirects by calling its client.
  init(_ response: URLResponse) {
    guard let response = response as? HTTPURLResponse else {
      self.init(status: 200, fields: response.describingFields)
      role = .other
      return
    }
    self.init(status: response.statusCode, fields: Self.fields(response))
    role = .answer
  }

  /// Makes the head of a redirect by a class of the user, which follows the rules of a server's redirect. The status
  /// is changed if it would not give the method that the class has chosen.
  init(redirect response: URLResponse, to request: URLRequest, from method: String) {
    let response = response as? HTTPURLResponse
    var status = response?.statusCode ?? 0
    let keepsMethod = (request.httpMethod ?? "GET") == method
    if ![301, 302, 303, 307, 308].contains(status) || (keepsMethod && !["GET", "HEAD"].contains(method)) {
      status = 307
    }
    if !keepsMethod { status = 303 }
    var fields = response.map(Self.fields) ?? []
    fields.removeAll { FieldName.equal($0.name, "Location") }
    if let url = request.url { fields.append(HTTPHeader(name: "Location", value: url.absoluteString)) }
    self.init(status: status, fields: fields)
  }

  /// Returns the fields sorted by name, because a dictionary has no order. Line breaks are removed, because they would
  /// add fields.
  private static func fields(_ response: HTTPURLResponse) -> [HTTPHeader] {
    response.allHeaderFields
      .compactMap { key, value in
        guard let name = key as? String else { return nil }
        return HTTPHeader(name: oneLine(name), value: oneLine("\(value)"))
      }
      .sorted { $0.name < $1.name }
  }

  private static func oneLine(_ text: String) -> String {
    guard text.utf8.contains(where: { $0 == 0x0A || $0 == 0x0D }) else { return text }
    return String(decoding: text.utf8.map { $0 == 0x0A || $0 == 0x0D ? 0x20 : $0 }, as: UTF8.self)
  }
}

extension URLResponse {
  /// The header fields for the media type and the length.
  fileprivate var describingFields: [HTTPHeader] {
    var fields: [HTTPHeader] = []
    if let mimeType {
      let charset = textEncodingName.map { "; charset=\($0)" } ?? ""
      fields.append(HTTPHeader(name: "Content-Type", value: mimeType + charset))
    }
    if expectedContentLength >= 0 {
      fields.append(HTTPHeader(name: "Content-Length", value: "\(expectedContentLength)"))
    }
    return fields
  }
}
