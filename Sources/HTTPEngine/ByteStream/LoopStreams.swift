import FoundationEssentials
import Glibc
package import HTTPWire

extension HTTPTransport: ByteStreamTransport {
  package func stream(
    _ request: WireRequest, isSecure: Bool, watcher: any ByteStreamWatcher
  ) -> any ByteStream {
    LoopStream(StreamLink(request, isSecure: isSecure, transport: self, watcher: watcher))
  }
}

/// A stream that posts its operations to its loop.
private struct LoopStream: ByteStream {
  private let link: StreamLink

  init(_ link: StreamLink) { self.link = link }

  func resume() { post { $0.resume($1) } }
  func suspend() { post { link, _ in link.suspend() } }

  func read(
    least: Int, most: Int, timeout: Duration?, _ completion: @escaping ByteStreamCompletion<StreamedBytes>
  ) -> ByteStreamFlow.Number {
    let number = link.loop.nextTicket()
    post { $0.read(number, least: least, most: most, timeout: timeout, completion, $1) }
    return number
  }

  func write(
    _ data: @escaping @Sendable () -> Data, timeout: Duration?,
    _ completion: @escaping ByteStreamCompletion<Void>
  ) -> ByteStreamFlow.Number {
    let number = link.loop.nextTicket()
    post { $0.write(number, data(), timeout: timeout, completion, $1) }
    return number
  }

  func secure(_ completion: @escaping ByteStreamCompletion<Void>) -> ByteStreamFlow.Number {
    let number = link.loop.nextTicket()
    post { $0.secure(number, completion, $1) }
    return number
  }

  func withdraw(_ number: Number) { post { link, _ in link.withdraw(number) } }
  func closeReading() { post { link, _ in link.closeReading() } }
  func closeWriting() { post { link, _ in link.closeWriting() } }
  func close() { post { link, _ in link.close() } }
  func cancel() { post { link, _ in link.cancel() } }
  func shutDown() { post { link, _ in link.fail(LoopCore.shutDown) } }

  private func post(_ body: @escaping @Sendable (StreamLink, LoopCore) -> Void) {
    link.loop.post(.run { [link] core in body(link, core) })
  }
}

/// The streams of bytes of one loop. Belongs to its thread.
///
/// A turn of the loop visits the streams that have something to do, and no others: an idle connection costs its loop
/// nothing.
final class LoopStreams {
  /// The largest number of bytes of one read.
  static let chunk = 65_536

  let contexts: TLSContexts
  private let state: LoopState
  @exclusivity(unchecked) private var links: [UInt64: StreamLink] = [:]
  /// The streams that have changed since the loop last processed them.
  @exclusivity(unchecked) private var changed: [StreamLink] = []
  /// The streams that have more to do at once.
  @exclusivity(unchecked) private var busy: [StreamLink] = []
  /// The streams that are moving bytes; empty between the turns, so that its memory is reused.
  @exclusivity(unchecked) private var pumped: [StreamLink] = []
  /// No stream times out before this time.
  @exclusivity(unchecked) private(set) var expiry: UInt64 = .max
  /// The buffer for reads, which is allocated at the first read.
  @exclusivity(unchecked) private var room: UnsafeMutableRawBufferPointer?

  init(_ contexts: TLSContexts, _ state: LoopState) {
    self.contexts = contexts
    self.state = state
  }

  deinit { room?.deallocate() }

  var isEmpty: Bool { links.isEmpty }

  /// Whether a stream has more to do at once.
  var isBusy: Bool {
    settle()
    return !busy.isEmpty
  }

  /// The buffer for bytes that are copied before the next read.
  var scratch: UnsafeMutableRawBufferPointer {
    if let room { return room }
    let new = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.chunk, alignment: 16)
    room = new
    return new
  }

  func add(_ link: StreamLink) { links[link.number] = link }

  func remove(_ link: StreamLink) {
    links[link.number] = nil
    guard links.isEmpty else { return }
    // Without streams, no later turn would empty the list.
    busy.removeAll(keepingCapacity: true)
    expiry = .max
  }

  /// Notes that the stream may have more to do, or time out at another time.
  func noteChange(of link: StreamLink) {
    guard !link.isChanged else { return }
    link.isChanged = true
    changed.append(link)
  }

  /// Notes that a reader has got bytes, which it may answer at once.
  func noteAnswer() { state.hasAnswered = true }

  /// Moves the bytes of streams that have more to do, and ends what has timed out.
  func turn(_ now: UInt64) {
    settle()
    if !busy.isEmpty {
      swap(&busy, &pumped)
      for link in pumped where link.isBusy { link.pump() }
      pumped.removeAll(keepingCapacity: true)
    }
    guard expiry <= now else { return }
    for link in Array(links.values) where link.expiry <= now { link.expire(now) }
    expiry = links.values.reduce(.max) { min($0, $1.expiry) }
  }

  /// Ends all of them.
  func end(_ failure: TransportFailure) {
    for link in Array(links.values) { link.fail(failure) }
  }

  /// Applies the changes of the streams.
  private func settle() {
    while let link = changed.popLast() {
      link.isChanged = false
      guard links[link.number] === link else { continue }
      if link.isBusy { busy.append(link) }
      expiry = min(expiry, link.expiry)
    }
  }
}

extension ByteStreamFlow.Reason {
  /// Returns the failure of a stream or an operation for this reason.
  ///
  /// - Parameters:
  ///   - host: The host of the stream, for the message.
  ///   - cause: The failure that the connection has reported.
  func failure(of host: String, _ cause: TransportFailure?) -> TransportFailure {
    switch self {
    case .failure: return cause ?? .lost(host, ECONNRESET)
    case .cancelled: return TransportFailure(.cancelled, "The stream was cancelled.")
    case .timedOut: return TransportFailure(.timedOut, "The operation on the stream to \(host) timed out.")
    case .closed:
      return TransportFailure(.connectionLost, "This side of the stream to \(host) is closed.")
    case .alreadySecure:
      return TransportFailure(.secureConnectionFailed, "The stream to \(host) is secure already.")
    case .cleartextLeft:
      return TransportFailure(
        .secureConnectionFailed,
        "\(host) sent more in the clear than was read before the stream was to be secured; an attacker could have sent it."
      )
    case .halfClosed:
      return TransportFailure(
        .secureConnectionFailed,
        "The stream to \(host) could not be secured, because one of its sides was closed before.")
    case .cutOff:
      return TransportFailure(
        .connectionLost,
        "The stream to \(host) was closed because a write or its TLS was cancelled before it was complete.")
    }
  }
}
