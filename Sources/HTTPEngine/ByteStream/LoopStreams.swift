import CCurl
import HTTPWire

/// The streams of bytes of one loop. Belongs to its thread.
final class LoopStreams {
  /// What one read of a socket takes at most.
  static let chunk = 65_536

  @exclusivity(unchecked) private var links: [StreamLink] = []
  @exclusivity(unchecked) private var sockets: [curl_waitfd] = []
  /// Who waits for the sockets.
  @exclusivity(unchecked) private var waiting: [StreamLink] = []
  /// Where bytes are read to before they are given to a stream; none before the first.
  @exclusivity(unchecked) private var room: UnsafeMutableRawBufferPointer?

  deinit { room?.deallocate() }

  var isEmpty: Bool { links.isEmpty }

  /// Whether a stream has more to do at once.
  var isBusy: Bool { links.contains { $0.isBusy } }

  /// When the next of them runs out of time.
  var expiry: UInt64 { links.reduce(.max) { min($0, $1.expiry) } }

  /// For bytes that are copied before the next read.
  var scratch: UnsafeMutableRawBufferPointer {
    if let room { return room }
    let new = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.chunk, alignment: 16)
    room = new
    return new
  }

  func add(_ link: StreamLink) { links.append(link) }

  func remove(_ link: StreamLink) { links.removeAll { $0 === link } }

  /// Moves the bytes of streams whose sockets were waited for, or that have not got as far as they can.
  func turn(_ now: UInt64) {
    for (index, link) in waiting.enumerated() where sockets[index].revents != 0 { link.isBusy = true }
    waiting.removeAll(keepingCapacity: true)
    sockets.removeAll(keepingCapacity: true)
    for link in links {
      if link.expiry <= now { link.expire(now) }
      if link.isBusy { link.pump() }
    }
  }

  /// Ends all of them.
  func end(_ failure: TransportFailure) {
    for link in links { link.fail(failure) }
  }

  /// Hands the sockets that are waited for to `body`.
  func withSockets(_ body: (UnsafeMutablePointer<curl_waitfd>?, UInt32) -> Void) {
    for link in links {
      guard let socket = link.awaited else { continue }
      sockets.append(socket)
      waiting.append(link)
    }
    sockets.withUnsafeMutableBufferPointer { body($0.baseAddress, UInt32($0.count)) }
  }
}
