import CLinux
import Glibc
import Synchronization

/// An object that waits for a socket.
protocol PollTarget: AnyObject {
  /// Called when the socket may be ready. An event is an edge: the next one of its kind comes only after a read or a
  /// write had to wait.
  func ready(_ events: PollEvents)
}

/// The events of a socket.
struct PollEvents: OptionSet, Sendable {
  let rawValue: UInt32

  static let readable = PollEvents(rawValue: EPOLLIN.rawValue)
  static let writable = PollEvents(rawValue: EPOLLOUT.rawValue)
  /// The peer has ended the connection, or the connection is broken.
  static let ended = PollEvents(rawValue: EPOLLRDHUP.rawValue | EPOLLHUP.rawValue | EPOLLERR.rawValue)
}

/// The slot of a socket in a ``Poller``. The token of a socket that is no longer watched is invalid, even if its slot
/// is reused.
struct PollToken: Equatable, Sendable {
  fileprivate let slot: UInt32
  fileprivate let generation: UInt32

  fileprivate var bits: UInt64 { UInt64(generation) << 32 | UInt64(slot) }

  fileprivate init(slot: UInt32, generation: UInt32) {
    self.slot = slot
    self.generation = generation
  }

  fileprivate init(bits: UInt64) {
    slot = UInt32(truncatingIfNeeded: bits)
    generation = UInt32(truncatingIfNeeded: bits >> 32)
  }
}

/// The sockets of one loop (epoll), and the descriptor by which other threads wake it (eventfd).
///
/// A socket is registered once, for all events and edge-triggered, so that neither a request nor a suspension needs a
/// call of the kernel. The counter of the eventfd is never read: each write is a new edge. Everything belongs to the
/// loop's thread, except ``wake()``.
final class Poller {
  /// A watched socket. The target lives as long as its socket is watched.
  private struct Slot {
    var target: (any PollTarget)?
    var generation: UInt32 = 0
    var descriptor: Int32 = -1
  }

  /// The number of events for which there is room at first.
  private static let leastRoom = 256
  /// Marks the events of the waker, which has no slot.
  private static let wakerBits = UInt64.max
  /// The pause of a loop for which the system has no descriptors, in milliseconds.
  private static let pauseWithoutDescriptors: Int32 = 10

  /// Readable when a socket is ready, so that another poll can wait for this one; −1 before ``open()``.
  @exclusivity(unchecked) private(set) var descriptor: Int32 = -1
  /// The descriptor by which other threads wake the loop.
  private let waker = Atomic<Int32>(-1)
  /// Has room for all watched sockets and the waker, so that a turn knows of each connection whether it has ended.
  @exclusivity(unchecked) private var events = UnsafeMutableBufferPointer<epoll_event>.allocate(
    capacity: leastRoom)
  /// The events that have not been delivered.
  @exclusivity(unchecked) private var readyCount = 0
  @exclusivity(unchecked) private var slots: [Slot] = []
  @exclusivity(unchecked) private var freeSlots: [UInt32] = []

  deinit {
    events.deallocate()
    let waker = waker.load(ordering: .relaxed)
    if waker >= 0 { close(waker) }
    if descriptor >= 0 { close(descriptor) }
  }

  /// Whether a socket is watched.
  var isWatching: Bool { slots.count > freeSlots.count }

  /// Asks the system for the descriptors, unless they exist. Without them, sockets cannot be watched, and the loop only
  /// pauses between its turns: it still ends its transfers, with an error.
  @discardableResult
  func open() -> Bool {
    guard descriptor < 0 else { return true }
    let poll = epoll_create1(Int32(EPOLL_CLOEXEC))
    guard poll >= 0 else { return false }
    let waker = eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC))
    var event = epoll_event()
    event.events = EPOLLIN.rawValue | EPOLLET.rawValue
    event.data.u64 = Self.wakerBits
    guard waker >= 0, epoll_ctl(poll, EPOLL_CTL_ADD, waker, &event) == 0 else {
      let code = errno
      if waker >= 0 { close(waker) }
      close(poll)
      errno = code
      return false
    }
    descriptor = poll
    self.waker.store(waker, ordering: .sequentiallyConsistent)
    return true
  }

  // MARK: Sockets

  /// Watches a socket until ``forget(_:)``. Returns `nil` if the system refuses; `errno` says why.
  func watch(_ socket: Int32, for target: any PollTarget) -> PollToken? {
    guard open() else { return nil }
    let index = freeSlots.popLast() ?? UInt32(slots.count)
    if Int(index) == slots.count { slots.append(Slot()) }
    let token = PollToken(slot: index, generation: slots[Int(index)].generation)
    var event = epoll_event()
    event.events = EPOLLIN.rawValue | EPOLLOUT.rawValue | EPOLLRDHUP.rawValue | EPOLLET.rawValue
    event.data.u64 = token.bits
    guard epoll_ctl(descriptor, EPOLL_CTL_ADD, socket, &event) == 0 else {
      freeSlots.append(index)
      return nil
    }
    slots[Int(index)].target = target
    slots[Int(index)].descriptor = socket
    return token
  }

  /// Ends the watch over a socket, before it is closed. Events that have not been delivered are dropped.
  func forget(_ token: PollToken) {
    let index = Int(token.slot)
    guard index < slots.count, slots[index].generation == token.generation, slots[index].target != nil else {
      return
    }
    // Closing the socket is not enough: a duplicate of its descriptor keeps it registered.
    var event = epoll_event()
    epoll_ctl(descriptor, EPOLL_CTL_DEL, slots[index].descriptor, &event)
    slots[index].generation &+= 1
    slots[index].descriptor = -1
    freeSlots.append(token.slot)
    // Last, because the target may end with this reference and ask the poller for something.
    let target = slots[index].target
    slots[index].target = nil
    _ = consume target
  }

  // MARK: Waiting

  /// Ends the wait, or the next one. Callable from any thread.
  func wake() {
    let waker = waker.load(ordering: .sequentiallyConsistent)
    guard waker >= 0 else { return }
    var one: UInt64 = 1
    _ = write(waker, &one, MemoryLayout<UInt64>.size)
  }

  /// Waits until a socket is ready, the loop is woken, or the time is over. May return earlier.
  ///
  /// It does not call ``open()``, because a wake-up before that call is lost: the loop opens the poller before it says
  /// that it waits.
  func wait(milliseconds: Int32) {
    guard descriptor >= 0 else {
      readyCount = 0
      poll(nil, 0, min(milliseconds, Self.pauseWithoutDescriptors))
      return
    }
    if events.count <= slots.count { growEvents() }
    readyCount = 0
    // Newer versions of the C library demand memory, and there is always some.
    guard let memory = events.baseAddress else { return }
    readyCount = max(0, Int(epoll_wait(descriptor, memory, Int32(events.count), milliseconds)))
  }

  private func growEvents() {
    events.deallocate()
    events = .allocate(capacity: 2 * slots.count)
  }

  /// Notifies the targets of what the last wait has found.
  func deliver() {
    var position = 0
    while position < readyCount {
      let event = events[position]
      position += 1
      guard event.data.u64 != Self.wakerBits else { continue }
      let token = PollToken(bits: event.data.u64)
      let index = Int(token.slot)
      guard index < slots.count, slots[index].generation == token.generation else { continue }
      let target = slots[index].target
      target?.ready(PollEvents(rawValue: event.events))
    }
    readyCount = 0
  }
}
