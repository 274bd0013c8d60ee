import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

extension Pipeline {
  /// Stage 4: sends one hop, and once more with credentials if the server asks for them and the request
  /// has some. A challenge that cannot be answered is a response like any other.
  nonisolated(nonsending) func authenticated(
    _ request: WireRequest, home: Origin, hops: inout [Exchange.Hop]
  ) async throws(AFError) -> (response: WireResponse, sent: WireRequest) {
    let response = try await sent(request, home: home, hops: &hops)
    guard let answer = core.answer(to: response.head, of: request, home: home) else { return (response, request) }
    return (try await sent(answer, home: home, hops: &hops), answer)
  }

  /// Stage 5, the transport: one request, one response.
  nonisolated(nonsending) private func sent(
    _ request: WireRequest, home: Origin, hops: inout [Exchange.Hop]
  ) async throws(AFError) -> WireResponse {
    core.state.withLock { $0.hop = (request, home) }
    do {
      let response = try await core.session.transport.send(request, observer: core)
      hops.append(Exchange.Hop(request, metrics: response.metrics, head: response.head))
      return response
    } catch {
      if let metrics = error.metrics {
        hops.append(Exchange.Hop(request, metrics: metrics, head: nil))
        core.broken(Exchange(url: URL(string: request.url), head: nil, hops: hops))
      }
      throw AFError(error, url: request.url)
    }
  }
}

extension RequestCore {
  /// The request with an answer to a Basic challenge (RFC 7617), or `nil` if there is none to give:
  /// no credentials, credentials that were sent already, or another scheme. Credentials go to the
  /// origin of the user's own request alone.
  func answer(to head: ResponseHead, of request: WireRequest, home: Origin) -> WireRequest? {
    guard head.status == 401, request.origin == home,
      !request.fields.contains(where: { FieldName.equal($0.name, "Authorization") }),
      let credential = basicCredential,
      head.block.value(of: "WWW-Authenticate")?.offersBasic == true
    else { return nil }
    let answer = HTTPHeader.authorization(username: credential.user, password: credential.password)
    return request.with(fields: request.fields + [answer])
  }
}
