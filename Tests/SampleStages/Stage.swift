package import HTTPTestServer

/// The server that serves httpbin.org for a sample.
package enum Stage: Sendable {
  /// The test server, as for all other hosts.
  case testServer
  /// A real httpbin behind this.
  case httpbin(HTTPBinFront)

  /// The stage of the test that asks.
  @TaskLocal package static var current = Stage.testServer

  package var isReal: Bool {
    if case .httpbin = self { true } else { false }
  }

  /// The next request that `server` gets, or has got; before httpbin, once it is answered there as well.
  package func request(of server: HTTPTestServer) async throws -> RecordedRequest {
    let request = try await server.takeRequest()
    if case .httpbin(let front) = self { await front.untilAnswered(request) }
    return request
  }
}
