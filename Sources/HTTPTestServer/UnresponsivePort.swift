import Glibc

/// A port on 127.0.0.1 that neither accepts nor refuses: connecting to it takes for ever, for tests of connection
/// timeouts. The port is given back with its last reference.
///
/// ```swift
/// let target = try UnresponsivePort()
/// let url = "http://127.0.0.1:\(target.port)/"
/// ```
public final class UnresponsivePort: Sendable {
  private let listener: Listener
  private let fillers: [Int32]

  /// Binds a free port and fills its queue of pending connections, which are never accepted.
  public init() throws(ServerError) {
    listener = try Listener(backlog: 0)
    // A queue of length 0 holds one connection; the kernel drops the requests behind it.
    var fillers: [Int32] = []
    for _ in 0..<2 {
      let filler = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
      guard filler >= 0 else { break }
      DescriptorFlags.set(on: filler)
      var address = LoopbackAddress.make(port: listener.port)
      _ = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          connect(filler, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
      }
      fillers.append(filler)
    }
    self.fillers = fillers
    if fillers.count < 2 { throw .system(call: "socket", code: errno) }
  }

  deinit {
    for filler in fillers { close(filler) }
  }

  /// The port on 127.0.0.1.
  public var port: Int { listener.port }
}

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
