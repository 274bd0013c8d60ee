/// Who plays httpbin.org for a sample.
package enum Stage: Hashable, Sendable {
  /// The test server, as for all other hosts.
  case testServer
  /// A real httpbin on this port of 127.0.0.1.
  case httpbin(port: UInt16)

  /// The stage of the test that asks.
  @TaskLocal package static var current = Stage.testServer
}
