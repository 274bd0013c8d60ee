import CCurl
import CLinux
import FoundationEssentials
import Glibc
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
///
/// A turn of the loop visits the streams that have something to do, and no others: an idle connection costs its loop
/// nothing. The sockets are watched by one epoll descriptor, for which the loop waits together with libcurl's sockets.
final class LoopStreams {
  /// The largest number of bytes of one read.
  static let chunk = 65_536
  /// The number of ready sockets that are read from epoll at once.
  private static let mostEvents = 64

  @exclusivity(unchecked) private var links: [UInt64: StreamLink] = [:]
  /// The streams that have changed since the loop last waited.
  @exclusivity(unchecked) private var changed: [StreamLink] = []
  /// The streams that have more to do at once.
  @exclusivity(unchecked) private var busy: [StreamLink] = []
  /// No stream times out before this time.
  @exclusivity(unchecked) private(set) var expiry: UInt64 = .max
  /// The epoll descriptor, as an entry of libcurl's list. The descriptor is −1 before the first stream.
  @exclusivity(unchecked) private var poll = curl_waitfd(fd: -1, events: Int16(POLLIN), revents: 0)
  @exclusivity(unchecked) private var watchedCount = 0
  /// The buffer for reads, which is made for the first read.
  @exclusivity(unchecked) private var room: UnsafeMutableRawBufferPointer?

  deinit {
    room?.deallocate()
    if poll.fd >= 0 { close(poll.fd) }
  }

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
    watch(link, for: 0)
    guard links.isEmpty else { return }
    // Without streams there is no turn in which the list could become empty.
    busy.removeAll(keepingCapacity: true)
    expiry = .max
  }

  /// Notes that the stream may wait for something else, have more to do, or time out at another time.
  func noteChange(of link: StreamLink) {
    guard !link.isChanged else { return }
    link.isChanged = true
    changed.append(link)
  }

  /// Moves the bytes of streams whose sockets are ready, or that have more to do, and ends what has timed out.
  func turn(_ now: UInt64) {
    settle()
    // A loop with a busy stream does not wait, so that nothing says whether other streams are ready.
    if poll.revents != 0 || watchedCount > 0 && !busy.isEmpty { readEvents() }
    if !busy.isEmpty {
      let links = busy
      busy.removeAll(keepingCapacity: true)
      for link in links where link.isBusy { link.pump() }
    }
    guard expiry <= now else { return }
    for link in Array(links.values) where link.expiry <= now { link.expire(now) }
    expiry = links.values.reduce(.max) { min($0, $1.expiry) }
  }

  /// Ends all of them.
  func end(_ failure: TransportFailure) {
    for link in Array(links.values) { link.fail(failure) }
  }

  /// Calls `body` with the sockets for which the streams wait.
  func withSockets(_ body: (UnsafeMutablePointer<curl_waitfd>?, UInt32) -> Void) {
    settle()
    poll.revents = 0
    withUnsafeMutablePointer(to: &poll) { body($0, watchedCount > 0 ? 1 : 0) }
  }

  // MARK: Events

  /// Applies the changes of the streams.
  private func settle() {
    while let link = changed.popLast() {
      link.isChanged = false
      guard links[link.number] === link else { continue }
      if link.isBusy { busy.append(link) }
      expiry = min(expiry, link.expiry)
      watch(link, for: link.awaitedEvents)
    }
  }

  /// Watches the socket of a stream for other events than before; 0 ends that.
  private func watch(_ link: StreamLink, for events: UInt32) {
    let old = link.watchedEvents
    guard events != old, let descriptor = link.watchedDescriptor else { return }
    var event = epoll_event()
    event.events = events
    event.data.u64 = link.number
    if poll.fd < 0 { poll.fd = epoll_create1(Int32(EPOLL_CLOEXEC)) }
    let operation = events == 0 ? EPOLL_CTL_DEL : old == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD
    let isDone = poll.fd >= 0 && epoll_ctl(poll.fd, operation, descriptor, &event) == 0
    guard isDone || events == 0 else { return link.fail(Self.unwatchable(link, errno)) }
    link.watchedEvents = events
    watchedCount += (old == 0 ? 1 : 0) - (events == 0 ? 1 : 0)
  }

  private static func unwatchable(_ link: StreamLink, _ code: Int32) -> TransportFailure {
    TransportFailure(
      .unknown,
      "The connection to \(link.request.origin.host) cannot be watched: \(String(cString: strerror(code))).")
  }

  /// Reads the sockets that are ready. Sockets that do not fit are ready at the next turn, too.
  private func readEvents() {
    poll.revents = 0
    withUnsafeTemporaryAllocation(of: epoll_event.self, capacity: Self.mostEvents) { events in
      guard let first = events.baseAddress else { return }
      let count = epoll_wait(poll.fd, first, Int32(Self.mostEvents), 0)
      for event in events.prefix(max(0, Int(count))) {
        guard let link = links[event.data.u64] else { continue }
        if !link.isBusy { busy.append(link) }
        link.isBusy = true
      }
    }
  }
}
