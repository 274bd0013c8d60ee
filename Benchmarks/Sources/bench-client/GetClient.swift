import Foundation

/// One small GET in each of the ways that are measured. The URL is the client's.
protocol GetClient: Sendable {
  func data() async throws -> Data
  func item() async throws -> Item
  /// Calls `done` once, on a queue of the client.
  func callback(_ done: @escaping @Sendable (Result<Data, any Error>) -> Void)
}

/// The settings of a client.
struct ClientSetting: Sendable {
  var url: URL
  /// Whether HTTP/2 may be spoken.
  var allowsHTTP2: Bool
  /// The certificate that signed the server's.
  var authority: String
  /// The most requests in flight, and so the most connections.
  var concurrency: Int
}

/// A response that is not the one that the server of the benchmarks gives.
struct UnexpectedResponse: Error {}
