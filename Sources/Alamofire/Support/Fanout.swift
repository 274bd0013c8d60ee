import Synchronization

/// One writer and several consumers, each with a mailbox and at its own speed. The writer pauses while a mailbox is
/// full, and the end of the whole waits until the consumers have processed everything.
///
/// All mailboxes share one lock. The writer and the consumers are called outside of it.
package final class Fanout<Element: Sendable>: Sendable {
  /// The parties that wait for a consumer.
  package enum Patience: Sendable {
    /// The writer and the end.
    case all
    /// Both after it has begun, but the end no longer after ``Fanout/endWithoutLoops()``.
    case afterBeginning
    /// The writer.
    case writer
  }

  private struct Mailbox: Sendable {
    let consumer: any MailboxConsumer<Element>
    let patience: Patience
    var backlog: Backlog<Element>
    /// The members that receive the elements.
    var members: [ObjectIdentifier]
    /// The members that get nothing but their end.
    var muted: [ObjectIdentifier] = []
    var hasBegun = false
    /// Whether the consumer has found nothing, so that the next element wakes it.
    var sleeps = true
    /// Whether the consumer does not know yet that no more elements follow.
    var owesEnd = false

    /// Whether a member gets what is written.
    var isOpen: Bool { members.count > muted.count }
    var holdsWriterBack: Bool { isOpen && (patience != .afterBeginning || hasBegun) }

    /// Whether no element is left and none follows. True once.
    mutating func takeEnd() -> Bool {
      guard owesEnd, backlog.isEmpty else { return false }
      owesEnd = false
      return true
    }

    func delaysEnd(_ waitsForLoops: Bool) -> Bool {
      guard !members.isEmpty, backlog.weight > 0 else { return false }
      return patience == .all || patience == .afterBeginning && hasBegun && waitsForLoops
    }
  }

  private struct State: Sendable {
    var mailboxes: [Mailbox] = []
    /// Resumes the writer; `nil` between transfers.
    var resume: (@Sendable () -> Void)?
    var writerWaits = false
    /// Continues what waits for the consumers.
    var proceed: (@Sendable () -> Void)?
    var waitsForLoops = true
    /// The element that may grow, as long as it is the last one in each open mailbox.
    var last: Element?

    /// Looks at the mailboxes in their array, because a copy of each would count references.
    func contains(_ condition: (borrowing Mailbox) -> Bool) -> Bool {
      mailboxes.indices.contains { condition(mailboxes[$0]) }
    }

    var isBusy: Bool { contains { $0.delaysEnd(waitsForLoops) } }

    func index(of consumer: any MailboxConsumer<Element>) -> Int? {
      mailboxes.indices.first { mailboxes[$0].consumer === consumer }
    }

    /// Stops the writer if a mailbox is full. Returns whether it waits.
    mutating func stopWriter() -> Bool {
      guard contains({ $0.holdsWriterBack && $0.backlog.isFull }) else { return false }
      writerWaits = true
      return true
    }

    /// Returns what can continue after elements were processed or removed.
    mutating func released() -> Released {
      var released = Released()
      if writerWaits, !contains({ $0.holdsWriterBack && !$0.backlog.hasRoom }) {
        writerWaits = false
        released.resume = resume
      }
      if proceed != nil, !isBusy { released.proceed = proceed.take() }
      return released
    }

    /// Puts an element into all open mailboxes. Returns the consumers that sleep.
    mutating func put(_ element: Element, _ weight: Int) -> [any MailboxConsumer<Element>] {
      var sleepers: [any MailboxConsumer<Element>] = []
      for index in mailboxes.indices where mailboxes[index].isOpen {
        mailboxes[index].backlog.append(element, weight: weight)
        if wakes(index) { sleepers.append(mailboxes[index].consumer) }
      }
      return sleepers
    }

    /// Adds to the weight of the last element. Each consumer was woken for it, or will ask for more.
    mutating func growLast(by weight: Int) {
      for index in mailboxes.indices where mailboxes[index].isOpen {
        mailboxes[index].backlog.growLast(by: weight)
      }
    }

    /// Returns whether the consumer of a mailbox has to be woken.
    mutating func wakes(_ index: Int) -> Bool {
      defer { mailboxes[index].sleeps = false }
      return mailboxes[index].sleeps
    }
  }

  private struct Released: Sendable {
    var resume: (@Sendable () -> Void)?
    var proceed: (@Sendable () -> Void)?

    func call() {
      resume?()
      proceed?()
    }
  }

  /// The element of a write.
  package enum Addition: Sendable {
    case whole(Element)
    /// An element that can grow.
    case growing(Element)
    /// The element before has grown.
    case grown
  }

  /// The effects of a write.
  package struct Written: Sendable {
    /// Whether the writer waits until it is resumed.
    package fileprivate(set) var pauses = false
    /// The consumers that sleep. The writer wakes them.
    package fileprivate(set) var sleepers: [any MailboxConsumer<Element>] = []

    /// Makes the effects of no write.
    package init() {}
  }

  /// The mailboxes, the writer and what waits for the consumers, for the writer and the consumers.
  private let state = Mutex(State())

  private let highMark: Int
  private let lowMark: Int

  /// Makes a fanout without consumers. If a mailbox has the weight of the high mark, the writer waits until all have at
  /// most the weight of the low mark.
  package init(highMark: Int = 1 << 20, lowMark: Int = 1 << 18) {
    self.highMark = highMark
    self.lowMark = lowMark
  }

  // MARK: The writer

  /// Sets the closure that is called, on any thread, when a writer that waits may continue.
  package func open(resume: (@Sendable () -> Void)?) { state.withLock { $0.resume = resume } }

  /// Notes that the writer has ended, and no longer waits.
  package func close() {
    state.withLock { state in
      state.resume = nil
      state.writerWaits = false
    }
  }

  /// Puts an element into all mailboxes with members. It is created only if there is such a mailbox.
  ///
  /// - Parameter make: Makes the element. Its argument is the ``Addition/growing(_:)`` element before, if no consumer
  ///   has taken it and nothing follows it.
  package func write(weight: Int, _ make: (_ last: Element?) -> Addition) -> Written {
    state.withLock { state in
      var written = Written()
      guard state.contains({ $0.isOpen }) else { return written }
      switch make(state.last) {
      case .whole(let element):
        state.last = nil
        written.sleepers = state.put(element, weight)
      case .growing(let element):
        state.last = element
        written.sleepers = state.put(element, weight)
      case .grown: state.growLast(by: weight)
      }
      written.pauses = state.stopWriter()
      return written
    }
  }

  /// Returns the weight after which a mailbox is full. If that is 0, the writer waits until it is resumed.
  package func room() -> Int {
    state.withLock { state in
      guard !state.stopWriter() else { return 0 }
      return state.mailboxes.reduce(.max) { $1.holdsWriterBack ? min($0, $1.backlog.room) : $0 }
    }
  }

  /// Whether the writer waits until it is resumed.
  package var isFull: Bool { state.withLock { $0.writerWaits } }

  /// The weight of what the slowest consumer has not taken.
  package var unreadWeight: Int { state.withLock { $0.mailboxes.map(\.backlog.unreadWeight).max() ?? 0 } }

  // MARK: The consumers

  /// Adds a consumer whose mailbox has one member. It gets what is written from now on.
  ///
  /// - Parameter highMark: The least high mark of its mailbox.
  package func add(
    _ consumer: any MailboxConsumer<Element>, for member: AnyObject, _ patience: Patience, highMark: Int = 0
  ) {
    let mailbox = Mailbox(
      consumer: consumer, patience: patience,
      backlog: Backlog(highMark: max(self.highMark, highMark), lowMark: lowMark),
      members: [ObjectIdentifier(member)])
    state.withLock { state in
      state.mailboxes.append(mailbox)
      state.last = nil
    }
  }

  /// Adds a member to the mailbox of a consumer that `fits`, or, if there is none, as the first one to the mailbox of
  /// `new`. It gets what is written from now on.
  ///
  /// - Parameter marker: Marks the position in a shared mailbox from which the member gets elements. It wakes nothing.
  package func join(
    _ member: AnyObject, _ marker: Element, new: any MailboxConsumer<Element>,
    fits: (any MailboxConsumer<Element>) -> Bool
  ) {
    let member = ObjectIdentifier(member)
    let mailbox = Mailbox(
      consumer: new, patience: .all, backlog: Backlog(highMark: highMark, lowMark: lowMark), members: [member]
    )
    state.withLock { state in
      state.last = nil
      guard let index = state.mailboxes.firstIndex(where: { fits($0.consumer) }) else {
        return state.mailboxes.append(mailbox)
      }
      state.mailboxes[index].members.append(member)
      state.mailboxes[index].backlog.append(marker, weight: 0)
    }
  }

  /// Ends the elements of a member, except for its end. Those that are there are for its consumer to drop. A mailbox
  /// without other members gets no more.
  package func mute(_ member: AnyObject) {
    let member = ObjectIdentifier(member)
    state.withLock { state in
      for index in state.mailboxes.indices
      where state.mailboxes[index].members.contains(member) && !state.mailboxes[index].muted.contains(member)
      {
        state.mailboxes[index].muted.append(member)
      }
      return state.released()
    }.call()
  }

  /// Ends the elements of a member after the current ones, and wakes the consumer for that. The second call has no
  /// effect.
  ///
  /// - Parameter marker: Marks the position in the mailbox from which the member gets no more elements. Without it,
  ///   the consumer learns of the end from ``take(_:atMost:)``.
  package func leave(_ member: AnyObject, _ marker: Element? = nil) {
    let member = ObjectIdentifier(member)
    let (sleeper, released) = state.withLock { state -> ((any MailboxConsumer<Element>)?, Released) in
      guard let index = state.mailboxes.firstIndex(where: { $0.members.contains(member) }) else {
        return (nil, Released())
      }
      state.mailboxes[index].members.removeAll { $0 == member }
      state.mailboxes[index].muted.removeAll { $0 == member }
      if let marker {
        state.mailboxes[index].backlog.append(marker, weight: 0)
      } else {
        state.mailboxes[index].owesEnd = true
      }
      state.last = nil
      let sleeper = state.wakes(index) ? state.mailboxes[index].consumer : nil
      return (sleeper, state.released())
    }
    sleeper?.wake(self)
    released.call()
  }

  /// Notes that a consumer has begun to take elements; see ``Patience/afterBeginning``.
  package func begin(_ consumer: any MailboxConsumer<Element>) {
    state.withLock { state in
      if let index = state.index(of: consumer) { state.mailboxes[index].hasBegun = true }
    }
  }

  /// Takes elements for a consumer, which has processed the earlier ones. Without any, the next element wakes it.
  ///
  /// - Returns: The elements, and whether no more follow, which is said once.
  package func take(
    _ consumer: any MailboxConsumer<Element>, atMost limit: Int
  ) -> (elements: [Element], isLast: Bool) {
    let (taken, released) = state.withLock { state -> (([Element], Bool), Released) in
      guard let index = state.index(of: consumer) else { return (([], false), Released()) }
      let elements = state.mailboxes[index].backlog.take(atMost: limit)
      state.mailboxes[index].sleeps = elements.isEmpty
      if !elements.isEmpty { state.last = nil }
      return ((elements, state.mailboxes[index].takeEnd()), state.released())
    }
    released.call()
    return taken
  }

  /// Notes that a consumer has processed what it took. Returns whether there is more to take. If not, the next element
  /// wakes it, and a mailbox without members is removed.
  package func finish(_ consumer: any MailboxConsumer<Element>) -> Bool {
    let (hasMore, released) = state.withLock { state -> (Bool, Released) in
      guard let index = state.index(of: consumer) else { return (false, Released()) }
      state.mailboxes[index].backlog.finishTaken()
      let hasMore = !state.mailboxes[index].backlog.isEmpty || state.mailboxes[index].owesEnd
      state.mailboxes[index].sleeps = !hasMore
      if !hasMore, state.mailboxes[index].members.isEmpty { state.mailboxes.remove(at: index) }
      return (hasMore, state.released())
    }
    released.call()
    return hasMore
  }

  /// Removes a consumer with all that it has not taken.
  package func remove(_ consumer: any MailboxConsumer<Element>) {
    let (removed, released) = state.withLock { state -> (Mailbox?, Released) in
      state.last = nil
      let removed = state.index(of: consumer).map { state.mailboxes.remove(at: $0) }
      return (removed, state.released())
    }
    released.call()
    // Its elements are released outside the lock, because one of them may do something then.
    _ = removed
  }

  // MARK: The end

  /// Calls `proceed` once the consumers have processed everything. Returns false, and never calls it, if that is so
  /// already.
  package func settled(_ proceed: @escaping @Sendable () -> Void) -> Bool {
    state.withLock { state in
      guard state.isBusy else { return false }
      state.proceed = proceed
      return true
    }
  }

  /// Stops the end from waiting for loops; see ``Patience/afterBeginning``.
  package func endWithoutLoops() {
    state.withLock { state in
      state.waitsForLoops = false
      return state.released()
    }.call()
  }
}

/// A consumer of a ``Fanout``.
package protocol MailboxConsumer<Element>: AnyObject, Sendable {
  associatedtype Element: Sendable

  /// Called when there is something to take, on any thread, including the engine's. Returns at once.
  func wake(_ fanout: Fanout<Element>)
}

/// Elements in order, each with a weight, between a writer that stops at a high mark and a consumer. Pure: the owner
/// holds its lock, and wakes the consumer or the writer.
///
/// An element counts until the consumer has processed it. So a slow consumer that has taken everything still holds the
/// writer back.
package struct Backlog<Element: Sendable>: Sendable {
  /// The weight at which the writer stops.
  package let highMark: Int
  /// The weight to which the consumer has to reduce its elements before the writer continues.
  package let lowMark: Int
  /// The weight of the elements that are not processed.
  package private(set) var weight = 0
  /// The weight of the elements that are not taken.
  package private(set) var unreadWeight = 0

  private var items: [(element: Element?, weight: Int)] = []
  /// The index of the first element that is not taken.
  private var head = 0

  package init(highMark: Int = 1 << 20, lowMark: Int = 1 << 18) {
    self.highMark = max(1, highMark)
    self.lowMark = min(max(0, lowMark), self.highMark)
  }

  /// Whether there is nothing to take.
  package var isEmpty: Bool { head == items.count }

  /// Whether the writer has to stop.
  package var isFull: Bool { weight >= highMark }

  /// Whether a writer that has stopped may continue.
  package var hasRoom: Bool { weight <= lowMark }

  /// The weight after which the writer has to stop.
  package var room: Int { max(0, highMark - weight) }

  package mutating func append(_ element: Element, weight: Int) {
    items.append((element, weight))
    unreadWeight += weight
    self.weight += weight
  }

  /// Adds to the weight of the last element, which is not taken.
  package mutating func growLast(by weight: Int) {
    guard head < items.count else { return }
    items[items.count - 1].weight += weight
    unreadWeight += weight
    self.weight += weight
  }

  /// Takes the first element, which counts until ``finishTaken()``.
  package mutating func takeFirst() -> Element? {
    guard head < items.count else { return nil }
    let element = items[head].element.take()
    unreadWeight -= items[head].weight
    head += 1
    if head == items.count {
      items.removeAll(keepingCapacity: head <= 64)
      head = 0
    } else if head > 64, head > items.count / 2 {
      items.removeFirst(head)
      head = 0
    }
    return element
  }

  /// Notes that the consumer has processed what it took.
  package mutating func finishTaken() { weight = unreadWeight }

  /// Takes elements for a consumer that has processed the earlier ones.
  package mutating func take(atMost limit: Int) -> [Element] {
    finishTaken()
    let count = min(limit, items.count - head)
    var taken: [Element] = []
    taken.reserveCapacity(count)
    while taken.count < count, let element = takeFirst() { taken.append(element) }
    return taken
  }
}
