package import HTTPTestServer

/// The server that stands for httpbin.org in a sample.
package enum SampleServer: Sendable {
  /// The test server, which also stands for all other hosts.
  case testServer
  /// A real httpbin behind a reverse proxy.
  case httpbin(HTTPBinProxy)

  /// The sample server of the running test.
  @TaskLocal package static var current = SampleServer.testServer

  package var isReal: Bool {
    if case .httpbin = self { true } else { false }
  }

  /// Returns the next recorded request of `server`. With httpbin it waits until httpbin has answered.
  package func request(of server: HTTPTestServer) async throws -> RecordedRequest {
    let request = try await server.takeRequest()
    if case .httpbin(let proxy) = self { await proxy.untilAnswered(request) }
    return request
  }
}
