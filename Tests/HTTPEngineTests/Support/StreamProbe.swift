import FoundationEssentials
import HTTPEngine
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Synchronization
import Testing

/// The owner of one stream of bytes in a test.
final class StreamProbe: ByteStreamWatcher {
  private struct State {
    var wasOpened = false
    var end: Result<Void, TransportFailure>?
    var waiter: CheckedContinuation<Result<Void, TransportFailure>, Never>?
  }

  private let state = Mutex(State())

  var wasOpened: Bool { state.withLock { $0.wasOpened } }

  func evaluate(_ chain: PresentedChain) async -> TransportFailure? { nil }
  func identity() async -> Result<ClientIdentity?, TransportFailure> { .success(nil) }
  func streamOpened() { state.withLock { $0.wasOpened = true } }

  func streamEnded(_ failure: TransportFailure?) {
    let end: Result<Void, TransportFailure> = failure.map { .failure($0) } ?? .success(())
    let waiter = state.withLock { state in
      state.end = end
      return state.waiter.take()
    }
    waiter?.resume(returning: end)
  }

  /// Waits for the end of the stream.
  func end(_ location: SourceLocation = #_sourceLocation) async -> Result<Void, TransportFailure> {
    await WaitLimit.watch(
      "the end of the stream", location, orElse: { self.streamEnded(TransportFailure(.timedOut, "")) }
    ) { await outcome() }
  }

  private func outcome() async -> Result<Void, TransportFailure> {
    await withCheckedContinuation { continuation in
      let end = state.withLock { state in
        if state.end == nil { state.waiter = continuation }
        return state.end
      }
      if let end { continuation.resume(returning: end) }
    }
  }
}

extension Client {
  /// Makes a stream to a host, with a request that determines how to connect.
  func stream(
    _ host: String, port: Int, isSecure: Bool = false, idleTimeout: Duration? = nil,
    addresses: [IPAddress]? = nil
  ) -> (any ByteStream, StreamProbe) {
    let origin = Origin(scheme: isSecure ? "https" : "http", host: host, port: port)
    let request = WireRequest(url: "\(origin)/", origin: origin, profile: profile) { parts in
      parts.idleTimeout = idleTimeout
      parts.addresses = addresses.map { KnownAddresses(host: host, port: port, addresses: $0) }
    }
    let probe = StreamProbe()
    return (transport.stream(request, isSecure: isSecure, watcher: probe), probe)
  }
}

extension ByteStream {
  /// Writes bytes to a server that echoes them, and returns what comes back.
  func echo(_ bytes: [UInt8]) async -> Result<[UInt8], TransportFailure> {
    await withCheckedContinuation { continuation in
      write(Data(bytes), timeout: nil) { _ in }
      read(least: bytes.count, most: bytes.count, timeout: WaitLimit.duration) { result in
        continuation.resume(returning: result.map { Array($0.data) })
      }
    }
  }
}
