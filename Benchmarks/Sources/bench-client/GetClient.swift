import Alamofire
import Foundation
import Scorecard

/// Sends one small GET in each measured way. The client knows the URL.
protocol GetClient: Sendable {
  func data() async throws -> Data
  func item() async throws -> Item
  /// Sends a request of ``Row/everyday``.
  func everyday(_ row: Row) async throws -> Data
  /// Calls `done` once, on a queue of the client.
  func callback(_ done: @escaping @Sendable (Result<Data, any Error>) -> Void)
}

/// The settings of a client.
struct ClientSetting: Sendable {
  var url: URL
  /// Whether HTTP/2 is allowed.
  var allowsHTTP2: Bool
  /// The file of the authority that signed the certificate of the server.
  var authority: String
  /// The largest number of requests in flight, and so of connections.
  var concurrency: Int
}

extension ClientSetting {
  /// Makes a session of this package.
  func session() -> Session {
    let configuration = URLSessionConfiguration.af.default
    configuration.httpMaximumConnectionsPerHost = concurrency
    var options = TransportOptions()
    options.trustStore = .file(authority)
    options.httpVersions = allowsHTTP2 ? .automatic : .http1Only
    return Session(configuration: configuration, transportOptions: options)
  }
}

/// A response that the server of the benchmarks does not send.
struct UnexpectedResponse: Error {}
