import CCurl
import FoundationEssentials
package import HTTPWire

extension CurlTransport: ByteStreamTransport {
  package func stream(
    _ request: WireRequest, isSecure: Bool, watcher: any ByteStreamWatcher
  ) -> any ByteStream {
    LoopStream(StreamLink(request, isSecure: isSecure, transport: self, watcher: watcher))
  }
}

/// A stream whose operations are posted to the loop that it belongs to.
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

  func write(_ data: Data, timeout: Duration?, _ completion: @escaping ByteStreamCompletion<Void>)
    -> ByteStreamFlow.Number
  {
    let number = link.loop.nextTicket()
    post { $0.write(number, data, timeout: timeout, completion, $1) }
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

  private func post(_ body: @escaping @Sendable (StreamLink, LoopCore) -> Void) {
    link.loop.post(.run { [link] core in body(link, core) })
  }
}

/// The streams of bytes of one loop. Belongs to its thread.
final class LoopStreams {
  /// The largest number of bytes of one read.
  static let chunk = 65_536

  @exclusivity(unchecked) private var links: [StreamLink] = []
  @exclusivity(unchecked) private var sockets: [curl_waitfd] = []
  /// The streams that wait for ``sockets``, in the same order.
  @exclusivity(unchecked) private var waiting: [StreamLink] = []
  /// The buffer for reads. It is made for the first read.
  @exclusivity(unchecked) private var room: UnsafeMutableRawBufferPointer?

  deinit { room?.deallocate() }

  var isEmpty: Bool { links.isEmpty }

  /// Whether a stream has more to do at once.
  var isBusy: Bool { links.contains { $0.isBusy } }

  /// The time at which the first of the streams times out.
  var expiry: UInt64 { links.reduce(.max) { min($0, $1.expiry) } }

  /// The buffer for bytes that are copied before the next read.
  var scratch: UnsafeMutableRawBufferPointer {
    if let room { return room }
    let new = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.chunk, alignment: 16)
    room = new
    return new
  }

  func add(_ link: StreamLink) { links.append(link) }

  func remove(_ link: StreamLink) { links.removeAll { $0 === link } }

  /// Moves the bytes of streams whose sockets are ready, or that have more to do.
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

  /// Calls `body` with the sockets that the streams wait for.
  func withSockets(_ body: (UnsafeMutablePointer<curl_waitfd>?, UInt32) -> Void) {
    for link in links {
      guard let socket = link.awaited else { continue }
      sockets.append(socket)
      waiting.append(link)
    }
    sockets.withUnsafeMutableBufferPointer { body($0.baseAddress, UInt32($0.count)) }
  }
}
