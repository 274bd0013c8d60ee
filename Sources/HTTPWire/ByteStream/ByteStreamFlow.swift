/// The operations of a stream of bytes and their order: reads after reads, writes after writes, TLS between both
/// sides. Pure: the owner of the socket performs the effects.
///
/// ```
/// idle ── connecting ── open ── over
///                       │  ▲
///                     securing
/// ```
///
/// Each side of an open stream closes separately; if both are closed, the stream is over. Later events have no
/// effect. After a failed write, what the peer had sent before can still be read, and then the stream fails.
package struct ByteStreamFlow: Sendable {
  /// The number of an operation; chosen by the owner.
  package typealias Number = UInt64

  /// The number of bytes that are read without a read operation after a failed write, so that its end is found.
  private static let readAhead = 65_536

  package enum StreamPhase: Sendable, Equatable { case idle, connecting, open, securing, over }

  /// The reason why an operation is not done, or why a stream is over.
  package enum Reason: Sendable, Equatable {
    /// Both sides were closed on request.
    case closed
    case cancelled
    case timedOut
    /// TLS has begun, or is about to.
    case alreadySecure
    /// Bytes that came in the clear were not read before the stream was to be secured: an attacker could have sent
    /// them.
    case cleartextLeft
    /// A side was closed before TLS, which needs both.
    case halfClosed
    /// A withdrawn write was sent in part, or could not be withdrawn any more; or TLS was withdrawn.
    case cutOff
    /// The failure that the owner has reported.
    case failure
  }

  package enum Effect: Sendable, Equatable {
    case connect
    case secure
    /// A read receives this many of the buffered bytes.
    case answer(Number, count: Int, isAtEnd: Bool)
    /// A write was sent, or the TLS handshake has succeeded.
    case complete(Number)
    case fail(Number, Reason)
    case shutReading
    /// The stream is over; the last effect there is.
    case close(Reason)
  }

  fileprivate enum Incoming: Sendable, Equatable {
    case read(Number, least: Int, most: Int)
    case secure(Number)
    case shut
  }

  fileprivate enum Outgoing: Sendable, Equatable {
    case write(Number, left: Int)
    case secure(Number)
    case shut
  }

  package private(set) var phase = StreamPhase.idle
  package private(set) var isSuspended = false
  package private(set) var isSecure = false
  /// Whether the other side has finished sending.
  package private(set) var isAtEnd = false
  package private(set) var isReadShut = false
  package private(set) var isWriteShut = false
  /// The number of received bytes that have not been read yet.
  package private(set) var buffered = 0
  private var incoming = PendingOperations<Incoming>()
  private var outgoing = PendingOperations<Outgoing>()
  /// Whether a side is closed after its pending operations, or was closed.
  private var closesReading = false
  private var closesWriting = false
  /// Whether a write has failed, so that the stream fails once all bytes of the peer are read.
  private var hasFailedToWrite = false
  /// Whether a read has failed after that, while bytes were left that no operation had read.
  private var hasFailedToRead = false
  /// Whether bytes of the first write were sent, or may have been.
  private var hasSentPart = false
  private var reasonOfEnd = Reason.closed

  /// Makes the flow of an idle stream.
  ///
  /// - Parameter secure: Names the securing that comes before everything else, if there is one.
  package init(secure: Number? = nil) {
    guard let secure else { return }
    incoming.append(.secure(secure))
    outgoing.append(.secure(secure))
  }

  // MARK: Limits of the owner

  /// The steps that the connection may take, asked for at once, because each question copies the flow of its owner.
  package struct Movements: Sendable {
    package let isSecuring: Bool
    package let room: Int
    package let discards: Bool
    package let writing: Number?
    package let shutsWriting: Bool
  }

  package var movements: Movements {
    Movements(
      isSecuring: isSecuring, room: room, discards: discards, writing: writing, shutsWriting: shutsWriting)
  }

  /// The number of bytes that may be read; 0 without a read operation, unless a write has failed.
  package var room: Int {
    guard isMoving, !isAtEnd, !isReadShut, !hasFailedToRead else { return 0 }
    switch incoming.first {
    case .read(_, _, let most): return most - buffered
    case nil where hasFailedToWrite: return max(0, Self.readAhead - buffered)
    case .secure, .shut, nil: return 0
    }
  }

  /// Whether bytes that arrive are read and dropped, because the reading side is closed.
  package var discards: Bool { isMoving && isReadShut && !isAtEnd }

  /// The write that may send its bytes.
  package var writing: Number? {
    guard isMoving, case .write(let number, _)? = outgoing.first else { return nil }
    return number
  }

  /// Whether the owner has to close the writing side; it then calls ``writingWasShut()``.
  package var shutsWriting: Bool { isMoving && outgoing.first == .shut }

  package var isSecuring: Bool { phase == .securing && !isSuspended }

  private var isMoving: Bool { phase == .open && !isSuspended }

  // MARK: What is asked for

  /// Begins to connect, or continues after ``suspend()``.
  package mutating func resume() -> [Effect] {
    isSuspended = false
    return begin() + settle()
  }

  /// Stops all reading and writing until ``resume()``. A connection that is being established is completed.
  package mutating func suspend() {
    if phase != .over { isSuspended = true }
  }

  /// Reads at least one byte, unless the other side has finished sending.
  package mutating func read(_ number: Number, least: Int, most: Int) -> [Effect] {
    let isKnownEnd = isAtEnd && !isReadShut && buffered == 0
    guard phase != .over else {
      return isKnownEnd && reasonOfEnd == .closed
        ? [.answer(number, count: 0, isAtEnd: true)] : [.fail(number, reasonOfEnd)]
    }
    guard !closesReading else { return [.fail(number, .closed)] }
    let least = max(1, least)
    incoming.append(.read(number, least: least, most: max(least, most)))
    return begin() + settle()
  }

  package mutating func write(_ number: Number, count: Int) -> [Effect] {
    guard phase != .over else { return [.fail(number, reasonOfEnd)] }
    guard !closesWriting else { return [.fail(number, reasonOfShutWriting)] }
    outgoing.append(.write(number, left: max(0, count)))
    return begin() + settle()
  }

  /// Begins TLS after all pending operations. If it cannot begin although reads or writes are still possible, the
  /// stream ends, because later ones would be performed in the clear.
  package mutating func secure(_ number: Number) -> [Effect] {
    guard phase != .over else { return [.fail(number, reasonOfEnd)] }
    guard !isSecure, !incoming.all.contains(where: \.isSecuring) else {
      return [.fail(number, .alreadySecure)]
    }
    guard !closesReading || !closesWriting else { return [.fail(number, reasonOfShutWriting)] }
    guard !closesReading, !closesWriting else {
      let reason = hasFailedToWrite ? Reason.failure : .halfClosed
      return [.fail(number, reason)] + finish(reason)
    }
    incoming.append(.secure(number))
    outgoing.append(.secure(number))
    return begin() + settle()
  }

  /// Closes the reading side after all pending reads.
  package mutating func closeReading() -> [Effect] {
    guard phase != .over, !closesReading else { return [] }
    closesReading = true
    incoming.append(.shut)
    return settleClosing()
  }

  /// Closes the writing side after all pending writes.
  package mutating func closeWriting() -> [Effect] {
    guard phase != .over, !closesWriting else { return [] }
    closesWriting = true
    outgoing.append(.shut)
    return settleClosing()
  }

  /// Closes both sides; reads are given up, writes go out.
  package mutating func close() -> [Effect] {
    guard phase != .over else { return [] }
    let mayWait = phase != .idle && (phase != .connecting || outgoing.all.contains { $0.isWriting })
    guard mayWait else { return finish(.closed) }
    var effects: [Effect] = []
    incoming.removeAll { item in
      guard case .read(let number, _, _) = item else { return false }
      effects.append(.fail(number, .closed))
      return true
    }
    // Suspension does not delay closing.
    isSuspended = false
    // Both sides may be closed already, and have waited for the reads only.
    effects += closeReading() + closeWriting()
    return effects + settle()
  }

  package mutating func cancel() -> [Effect] { finish(.cancelled) }

  /// Gives up an operation. Withdrawing a read loses no bytes; withdrawing a write that has begun fails the stream, and
  /// so does withdrawing TLS.
  package mutating func withdraw(_ number: Number, _ reason: Reason) -> [Effect] {
    guard phase != .over else { return [] }
    if let index = incoming.all.firstIndex(where: { $0.number == number }) {
      // The operations after it, and those that other threads are about to ask for, would be performed in the clear.
      guard !incoming.all[index].isSecuring else {
        return [.fail(number, reason)] + finish(.cutOff, but: number)
      }
      incoming.remove(at: index)
      return [.fail(number, reason)] + settle()
    }
    guard let index = outgoing.all.firstIndex(where: { $0.number == number }) else { return [] }
    guard index > outgoing.all.startIndex || !hasSentPart else {
      return [.fail(number, reason)] + finish(.cutOff, but: number)
    }
    outgoing.remove(at: index)
    return [.fail(number, reason)] + settle()
  }

  // MARK: What has happened

  package mutating func connected() -> [Effect] {
    guard phase == .connecting else { return [] }
    phase = .open
    return settle()
  }

  package mutating func secured() -> [Effect] {
    guard phase == .securing, case .secure(let number)? = incoming.first else { return [] }
    incoming.removeFirst()
    outgoing.removeFirst()
    isSecure = true
    phase = .open
    return [.complete(number)] + settle()
  }

  package mutating func received(_ count: Int) -> [Effect] {
    guard phase == .open else { return [] }
    buffered += count
    return settle()
  }

  package mutating func ended() -> [Effect] {
    guard phase == .open else { return [] }
    isAtEnd = true
    return settle()
  }

  package mutating func sent(_ count: Int) -> [Effect] {
    guard phase == .open, case .write(let number, let left)? = outgoing.first else { return [] }
    outgoing.replaceFirst(with: .write(number, left: max(0, left - count)))
    hasSentPart = hasSentPart || count > 0
    return settle()
  }

  /// Called when bytes of the write at the front may be on their way although none of them counts as sent.
  package mutating func sendingBegan() {
    if writing != nil { hasSentPart = true }
  }

  package mutating func writingWasShut() -> [Effect] {
    guard phase == .open, outgoing.first == .shut else { return [] }
    outgoing.removeFirst()
    isWriteShut = true
    return settle()
  }

  /// Called when a write has failed. All writes fail, and TLS with all reads behind it. Without TLS, the peer's bytes
  /// can be read up to the end.
  package mutating func writingFailed() -> [Effect] {
    guard phase == .open, !isWriteShut else { return [] }
    hasFailedToWrite = true
    hasSentPart = false
    closesWriting = true
    isWriteShut = true
    var numbers = outgoing.all.compactMap(\.number)
    outgoing.removeAll { _ in true }
    // Reads that wait for TLS fail with it, because they would return bytes that came in the clear. So would those that
    // other threads are about to ask for.
    var isBehindTLS = false
    incoming.removeAll { item in
      if item.isSecuring {
        isBehindTLS = true
        return true
      }
      guard isBehindTLS, let number = item.number else { return false }
      numbers.append(number)
      return true
    }
    if isBehindTLS, !closesReading {
      closesReading = true
      incoming.append(.shut)
    }
    return numbers.map { .fail($0, .failure) } + settle()
  }

  /// Called when a read has failed. Bytes that were read ahead can still be read.
  package mutating func readingFailed() -> [Effect] {
    guard phase == .open, hasFailedToWrite, buffered > 0, incoming.isEmpty else { return finish(.failure) }
    hasFailedToRead = true
    return []
  }

  package mutating func failed() -> [Effect] { finish(.failure) }

  // MARK: Inside

  private mutating func begin() -> [Effect] {
    guard phase == .idle else { return [] }
    phase = .connecting
    return [.connect]
  }

  private var reasonOfShutWriting: Reason { hasFailedToWrite ? .failure : .closed }

  /// Ends a stream that has not connected, if both sides are closed. No operation of it will ever connect.
  private mutating func settleClosing() -> [Effect] {
    phase == .idle && closesReading && closesWriting ? finish(.closed) : settle()
  }

  /// Takes all steps that are possible without another byte.
  private mutating func settle() -> [Effect] {
    var effects: [Effect] = []
    while isMoving, let next = step() { effects += next }
    return effects
  }

  private mutating func step() -> [Effect]? {
    switch incoming.first {
    case .read(let number, let least, let most) where buffered >= least || isAtEnd:
      incoming.removeFirst()
      let count = min(buffered, most)
      buffered -= count
      return [.answer(number, count: count, isAtEnd: isAtEnd && buffered == 0)]
    case .read where hasFailedToRead: return finish(.failure)
    case .shut:
      incoming.removeFirst()
      isReadShut = true
      return [.shutReading]
    case .read, .secure, nil: break
    }
    if case .write(let number, 0)? = outgoing.first {
      outgoing.removeFirst()
      hasSentPart = false
      return [.complete(number)]
    }
    if case .secure(let number)? = incoming.first, outgoing.first == .secure(number) {
      guard buffered == 0 else { return finish(.cleartextLeft) }
      guard !isAtEnd else { return finish(.halfClosed) }
      phase = .securing
      return [.secure]
    }
    let hasRead = isReadShut || ((isAtEnd || hasFailedToRead) && buffered == 0)
    guard isWriteShut, hasRead, incoming.isEmpty, outgoing.isEmpty else { return nil }
    return finish(reasonOfShutWriting)
  }

  /// Ends the stream and fails all operations, except for `told`, which knows already.
  private mutating func finish(_ reason: Reason, but told: Number? = nil) -> [Effect] {
    guard phase != .over else { return [] }
    phase = .over
    isSuspended = false
    reasonOfEnd = reason
    // TLS is an operation of both sides, and fails once.
    let numbers =
      incoming.all.compactMap(\.number) + outgoing.all.compactMap { $0.isSecuring ? nil : $0.number }
    incoming.removeAll { _ in true }
    outgoing.removeAll { _ in true }
    return numbers.filter { $0 != told }.map { .fail($0, reason) } + [.close(reason)]
  }
}

/// The operations of one side in their order. The first one is removed without moving the others.
private struct PendingOperations<Operation: Sendable>: Sendable {
  private var items: [Operation] = []
  /// The index of the first operation; earlier ones were removed.
  private var head = 0

  var all: ArraySlice<Operation> { items[head...] }
  var isEmpty: Bool { head == items.count }
  var first: Operation? { isEmpty ? nil : items[head] }

  mutating func append(_ operation: Operation) { items.append(operation) }

  mutating func replaceFirst(with operation: Operation) { if !isEmpty { items[head] = operation } }

  mutating func removeFirst() {
    guard !isEmpty else { return }
    head += 1
    guard isEmpty || head > 64 && head > items.count / 2 else { return }
    items.removeFirst(head)
    head = 0
  }

  /// Removes the operation at an index of ``all``.
  mutating func remove(at index: Int) {
    if index == head { removeFirst() } else { items.remove(at: index) }
  }

  mutating func removeAll(where isRemoved: (Operation) -> Bool) {
    items = all.filter { !isRemoved($0) }
    head = 0
  }
}

extension ByteStreamFlow.Incoming {
  fileprivate var number: ByteStreamFlow.Number? {
    switch self {
    case .read(let number, _, _), .secure(let number): number
    case .shut: nil
    }
  }

  fileprivate var isSecuring: Bool {
    if case .secure = self { true } else { false }
  }
}

extension ByteStreamFlow.Outgoing {
  fileprivate var number: ByteStreamFlow.Number? {
    switch self {
    case .write(let number, _), .secure(let number): number
    case .shut: nil
    }
  }

  fileprivate var isSecuring: Bool {
    if case .secure = self { true } else { false }
  }

  fileprivate var isWriting: Bool {
    if case .write = self { true } else { false }
  }
}
