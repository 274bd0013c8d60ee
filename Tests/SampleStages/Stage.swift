/// Who plays httpbin.org for a sample.
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
}
