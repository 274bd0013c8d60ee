import HTTPTestServer
import HTTPWire
import Synchronization
import Testing

/// Records the events of one transfer.
final class Watcher: TransferObserver {
  struct Seen {
    var control: (any TransferControl)?
    var heads: [ResponseHead] = []
    var informationalHeads: [ResponseHead] = []
    var counts: [ByteCount] = []
    var beganCount = 0
    var endedCount = 0
    var callsAfterEnd = 0
  }

  private let seen = Mutex(Seen())
  private let disposition: HeadDisposition
  private let onHead: (@Sendable (Watcher) -> Void)?
  private let onBytes: (@Sendable (Watcher, ByteCount) -> Void)?
  let began = Moment()
  let headCame = Moment()

  init(
    startsClosed: Bool = false, isRefusing: Bool = false,
    holdsHead: Bool = false, disposition: HeadDisposition? = nil,
    onHead: (@Sendable (Watcher) -> Void)? = nil,
    onBytes: (@Sendable (Watcher, ByteCount) -> Void)? = nil
  ) {
    start = isRefusing ? .refuse : startsClosed ? .hold : .go
    self.disposition = disposition ?? (holdsHead ? .hold : .proceed)
    self.onHead = onHead
    self.onBytes = onBytes
  }

  var heads: [ResponseHead] { seen.withLock { $0.heads } }
  var informationalHeads: [ResponseHead] { seen.withLock { $0.informationalHeads } }
  var counts: [ByteCount] { seen.withLock { $0.counts } }
  var last: ByteCount? { seen.withLock { $0.counts.last } }
  var endedCount: Int { seen.withLock { $0.endedCount } }
  var beganCount: Int { seen.withLock { $0.beganCount } }
  var callsAfterEnd: Int { seen.withLock { $0.callsAfterEnd } }

  /// The answer to the begin of a transfer.
  private let start: TransferStart

  func resume() { seen.withLock { $0.control }?.resume() }
  func cancel() { seen.withLock { $0.control }?.cancel() }
  func suspend() { seen.withLock { $0.control }?.suspend() }
  func setPriority(_ priority: Float) { seen.withLock { $0.control }?.setPriority(priority) }

  func transferBegan(_ control: any TransferControl) -> TransferStart {
    seen.withLock { seen in
      seen.control = control
      seen.beganCount += 1
    }
    began.come()
    return start
  }

  func informationalHeadReceived(_ head: ResponseHead) {
    note { $0.informationalHeads.append(head) }
  }

  func headReceived(_ head: ResponseHead) -> HeadDisposition {
    note { $0.heads.append(head) }
    onHead?(self)
    headCame.come()
    return disposition
  }

  func bytesMoved(_ count: ByteCount) {
    note { $0.counts.append(count) }
    onBytes?(self, count)
  }

  func transferEnded() {
    note { $0.endedCount += 1 }
  }

  private func note(_ change: (inout Seen) -> Void) {
    seen.withLock { seen in
      if seen.endedCount > 0 { seen.callsAfterEnd += 1 }
      change(&seen)
    }
  }
}

/// An event that happens once and wakes the tasks that wait for it.
final class Moment: Sendable {
  private let gate = Mutex<(hasCome: Bool, waiters: [CheckedContinuation<Void, Never>])>((false, []))

  var hasCome: Bool { gate.withLock { $0.hasCome } }

  func come() {
    let waiters = gate.withLock { gate in
      defer { gate = (true, []) }
      return gate.waiters
    }
    for waiter in waiters { waiter.resume() }
  }

  func wait(_ location: SourceLocation = #_sourceLocation) async {
    await WaitLimit.watch("the event", location, orElse: { self.come() }) { await arrival() }
  }

  private func arrival() async {
    await withCheckedContinuation { waiter in
      let isOver = gate.withLock { gate in
        if !gate.hasCome { gate.waiters.append(waiter) }
        return gate.hasCome
      }
      if isOver { waiter.resume() }
    }
  }
}
