extension HTTPTestServer {
  private static let refusingListener: Result<Listener, ServerError> = {
    do throws(ServerError) { return .success(try Listener(backlog: nil)) } catch { return .failure(error) }
  }()

  /// A port on 127.0.0.1 where connections are refused; the same for the whole life of the process, which
  /// holds it so that nobody else can listen there.
  public static func refusedPort() throws(ServerError) -> Int {
    try refusingListener.get().port
  }
}
