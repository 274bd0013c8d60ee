extension HTTPTestServer {
  private static let refusingListener: Result<Listener, ServerError> = {
    do throws(ServerError) { return .success(try Listener(backlog: nil)) } catch { return .failure(error) }
  }()

  /// Returns a port on 127.0.0.1 that refuses connections. The process keeps the port bound until it exits, so that
  /// no other process can listen on it.
  public static func refusedPort() throws(ServerError) -> Int {
    try refusingListener.get().port
  }
}
