import Alamofire
import Foundation
import Testing

/// Trailers of requests and responses, with a server by other authors.
@Suite("Trailers with Node", .needsNode, .timeLimit(.minutes(5))) struct TrailerPeerTests {
  private func session(isHTTP2: Bool) -> Session {
    var options = TransportOptions()
    if isHTTP2 { options.httpVersions = .http2PriorKnowledge }
    return .isolated(options)
  }

  @Test("Trailers arrive in both directions, on a connection that is reused", arguments: [false, true])
  func bothDirections(isHTTP2: Bool) async throws {
    let peer = try await TrailerPeer()
    let session = session(isHTTP2: isHTTP2)
    defer { withExtendedLifetime(session) {} }
    for (index, size) in [0, 1, 300_000].enumerated() {
      let response = await session.upload(
        Data(repeating: 0x61, count: size), to: peer.url(isHTTP2: isHTTP2), headers: ["TE": "trailers"]
      )
      .trailers(announcing: ["X-Sent"]) { ["X-Sent": "\(index)", "X-Second": "2"] }
      .validate().serializingString().response
      #expect(response.value == "body", "\(String(describing: response.error))")
      #expect(response.trailers?["x-size"] == "\(size)")
      #expect(response.trailers?["x-received"] == #"{"x-sent":"\#(index)","x-second":"2"}"#)
      #expect(response.trailers?["x-announced"] == "X-Sent" && response.trailers?["x-te"] == "trailers")
      #expect(response.metrics?.transactionMetrics.last?.isReusedConnection == (index > 0))
    }
  }

  @Test("A request without trailers has none", arguments: [false, true]) func none(isHTTP2: Bool) async throws
  {
    let peer = try await TrailerPeer()
    let session = session(isHTTP2: isHTTP2)
    defer { withExtendedLifetime(session) {} }
    let response = await session.request(peer.url(isHTTP2: isHTTP2)).validate().serializingString().response
    #expect(response.value == "body" && response.trailers?["x-received"] == "{}")
    #expect(response.trailers?["x-announced"] == "none" && response.trailers?["x-te"] == "none")
  }
}
