import Foundation
import HTTPSystem
import HTTPWire
import Synchronization

/// The observer of a channel. Its methods are called one at a time. All but the first are also called on the thread of
/// the engine. They must return at once, and must not run the caller's code.
protocol WebSocketChannelObserver: AnyObject, Sendable {
  /// Decides whether a channel is opened after a handshake. May wait, and may run the caller's code.
  nonisolated(nonsending) func validate(_ head: ResponseHead) async throws(TransportFailure)
  /// Called when the channel is open.
  func channelOpened(_ channel: WebSocketChannel, subprotocol: String?)
  /// Called when messages were received.
  func messagesReceived(_ messages: WebSocketMessages)
  /// Called when both sides have sent a Close frame.
  func channelClosed(_ code: WebSocketCloseCode, reason: String)
  /// Called last.
  func channelEnded()
}

/// The parameters of a channel.
struct WebSocketChannelOptions: Sendable {
  var maximumMessageSize = 1_048_576
  var pingInterval: Duration?
  /// The number of unsent bytes from which on a message is refused, unless its sender waits.
  var unsentLimit = 16_777_216
  /// Whether permessage-deflate is offered.
  var compresses = false
  /// The time for the Close frame of the server, from the time at which the own one was written.
  var closeTimeout = Duration.seconds(10)
  /// The time for each write before a Close frame or a ping whose answer is awaited.
  var writeTimeout = Duration.seconds(60)
  /// The time in which the server ends the connection after both Close frames.
  var endTimeout = Duration.seconds(2)
  /// The number of bytes of messages that are not processed yet, above which the channel does not read.
  var heldLimit = 1_048_576
  /// The number of bytes of large messages in one write.
  var writeSize = 262_144
}

/// A WebSocket connection after its handshake: it moves bytes between a ``WebSocketConnection`` and a stream of bytes.
///
/// - One write is under way at a time. Other frames gather, so that compressed messages keep their order.
/// - The channel does not read while more than ``WebSocketChannelOptions/heldLimit`` bytes of messages are not
///   processed.
final class WebSocketChannel: Sendable {
  typealias SendCompletion = @Sendable (TransportFailure?) -> Void
  typealias PingCompletion = @Sendable (Result<WebSocketPong, TransportFailure>) -> Void
  typealias End = @Sendable (TransportFailure?) -> Void

  /// Guarded by the lock of this class.
  struct ChannelState: ~Copyable {
    var connection: WebSocketConnection
    /// The received bytes, and the number of those that were read.
    var input: Data
    var position = 0
    var isReading = false
    var isWriting = false
    /// The failure of a write, after which the messages that the server sent before it left are still read.
    var writeFailure: TransportFailure?
    /// Whether a thread delivers events.
    var isDelivering = false
    /// The completions of messages that are not written yet.
    var sends: [PendingSend] = []
    var pings: [PendingPing] = []
    var pingCount: UInt64 = 0
    /// The number of bytes of the connection after which the Close frame or the last automatic ping is written; `nil`
    /// once it is.
    var awaitedEnd: UInt64?
    /// The number of reads that have brought bytes, and the one at which the timer was set.
    var arrivalCount: UInt64 = 0
    var arrivalCountOfTimer: UInt64 = 0
    /// The number of bytes of messages that are not processed yet.
    var held = 0
    var isSuspended = false
    /// The server sends no more.
    var isAtEnd = false
    /// The closure that the caller asked for.
    var ownClosure: OwnClosure?
    var isClosed = false
    var failure: TransportFailure?
    /// The outcome of the stream, once it has ended.
    var streamEnd: StreamEnd?
    var end: End?
    var timer: (any DispatchSourceTimer)?
    var timerPurpose: TimerPurpose?
    var timerNumber = 0
  }

  struct StreamEnd: Sendable { let failure: TransportFailure? }

  struct OwnClosure: Sendable {
    let closure: WebSocketClosure
    /// The number of bytes of the connection after which the Close frame is written.
    let end: UInt64
  }

  enum TimerPurpose: Sendable, Equatable { case ping, pong, closing, ending }

  struct PendingSend: Sendable {
    /// The number of bytes of the connection after which the message is written.
    let end: UInt64
    let completion: SendCompletion
  }

  struct PendingPing: Sendable {
    let number: UInt64
    let start: Date
    let instant: ContinuousClock.Instant
    /// `nil` for an automatic ping.
    let completion: PingCompletion?
  }

  let stream: any ByteStream
  let options: WebSocketChannelOptions
  let host: String
  private let observer: any WebSocketChannelObserver
  /// The largest number of bytes of one read. Compressed messages can have 1,032 times as many, and a read is processed
  /// in one turn of the loop.
  private let readSize: Int
  /// The connection and its timer, for the loop and the threads of users. Messages are masked under the lock, because
  /// they are sent in this order. Events are delivered outside of it, by one thread at a time.
  let state: Mutex<ChannelState>

  /// Makes a channel on a connection that was upgraded.
  ///
  /// - Parameter input: The bytes that arrived after the handshake.
  init(
    _ stream: any ByteStream, host: String, _ options: WebSocketChannelOptions, deflate: WebSocketDeflate?,
    input: Data, observer: any WebSocketChannelObserver
  ) {
    self.stream = stream
    self.host = host
    self.options = options
    self.observer = observer
    readSize = deflate == nil ? 65_536 : 4_096
    var wire = WebSocketOptions(role: .client, deflate: deflate)
    wire.maximumMessageSize = options.maximumMessageSize
    let keys = MaskingKeys()
    state = Mutex(
      ChannelState(
        connection: WebSocketConnection(
          wire, compression: deflate == nil ? nil : ZlibMessageCompression()
        ) { keys.next() }, input: input))
  }

  /// Delivers events until the end, which is called once: without a failure after a closing handshake.
  func start(subprotocol: String?, _ end: @escaping End) {
    state.withLock { $0.end = end }
    observer.channelOpened(self, subprotocol: subprotocol)
    schedulePing()
    pump()
  }

  // MARK: Reading

  fileprivate enum Step: Sendable {
    case deliver([Delivery])
    case read
    case wait
    case end
  }

  fileprivate enum Delivery: Sendable {
    /// Messages that arrived together, and the sum of their sizes.
    case messages([WebSocketMessage], size: Int)
    case pong(Data)
    case closed(WebSocketClosure)
    case failed
  }

  /// Delivers the events of the received bytes, and continues to read. One thread delivers at a time, so that events
  /// keep their order.
  func pump() {
    while true {
      let step = state.withLock { $0.step(limit: options.heldLimit) }
      flush()
      switch step {
      case .deliver(let events):
        for event in events { deliver(event) }
        state.withLock { $0.isDelivering = false }
      case .read: return read()
      case .wait: return endIfLost()
      case .end: return finish()
      }
    }
  }

  private func read() {
    stream.read(least: 1, most: readSize, timeout: nil) { [self] result in
      state.withLock { state in
        state.isReading = false
        guard case .success(let bytes) = result else { return }
        state.input = bytes.data
        state.position = 0
        if !bytes.data.isEmpty { state.arrivalCount += 1 }
        state.isAtEnd = bytes.isAtEnd
      }
      if case .success = result { pump() }
    }
  }

  private func deliver(_ event: Delivery) {
    switch event {
    case .messages(let messages, let size):
      observer.messagesReceived(WebSocketMessages(messages, WebSocketReceipt(self, size)))
    case .pong(let payload): answerPings(payload)
    case .closed(let closure): closed(closure)
    case .failed: setTimer(.ending, after: options.endTimeout)
    }
  }

  /// Releases the bytes of processed messages. If reading waited for that, it continues.
  fileprivate func release(_ size: Int) {
    let limit = options.heldLimit
    let mayContinue = state.withLock { state in
      let wasFull = state.held >= limit
      state.held -= size
      return wasFull && state.held < limit
    }
    if mayContinue { pump() }
  }

  // MARK: The end

  private func closed(_ closure: WebSocketClosure) {
    let shown = state.withLock { state in
      state.isClosed = true
      // The first Close frame counts. The own one may still wait behind messages, which the server does not take.
      guard let own = state.ownClosure, own.end <= state.connection.takenByteCount else { return closure }
      return own.closure
    }
    setTimer(.ending, after: options.endTimeout)
    observer.channelClosed(shown.code, reason: shown.reason)
  }

  /// Ends the connection after a while if the server has ended it without a Close frame. A write that waits for the
  /// server may never be complete.
  private func endIfLost() {
    let isLost = state.withLock { state in
      state.isAtEnd && state.position == state.input.count && !state.isClosed && state.failure == nil
        && state.streamEnd == nil && state.timerPurpose != .ending
    }
    if isLost { setTimer(.ending, after: options.endTimeout) }
  }

  /// Called once when the stream has ended, on the thread of the engine.
  func streamEnded(_ failure: TransportFailure?) {
    state.withLock { state in
      state.streamEnd = StreamEnd(failure: failure)
      // No more events are delivered after a cancellation.
      guard failure?.kind == .cancelled else { return }
      state.input = Data()
      state.position = 0
    }
    pump()
  }

  private func finish() {
    let (end, failure, sends, pings) = state.withLock { state in
      defer {
        state.end = nil
        state.sends = []
        state.pings = []
      }
      state.timer?.cancel()
      state.timer = nil
      state.timerPurpose = nil
      _ = state.connection.transportEnded()
      return (state.end, state.outcome(host), state.sends, state.pings)
    }
    let lost = failure ?? Self.notOpen
    for send in sends { send.completion(lost) }
    for ping in pings { ping.completion?(.failure(lost)) }
    observer.channelEnded()
    end?(failure)
  }

  static var notOpen: TransportFailure {
    TransportFailure(.connectionLost, WebSocketSendError.notOpen.message)
  }
}

/// Messages that arrived together, and are not read yet.
struct WebSocketMessages: Sendable {
  /// The last message is the first one, so that each is taken without a copy.
  private var reversed: [WebSocketMessage]
  /// Its release means that the messages were processed.
  let receipt: WebSocketReceipt

  fileprivate init(_ messages: consuming [WebSocketMessage], _ receipt: WebSocketReceipt) {
    messages.reverse()
    reversed = messages
    self.receipt = receipt
  }

  /// Whether all messages were taken.
  var isEmpty: Bool { reversed.isEmpty }

  /// Takes the first message.
  mutating func takeFirst() -> WebSocketMessage? { reversed.popLast() }
}

/// Counts the bytes of messages until all their readers have released it.
final class WebSocketReceipt: Sendable {
  private let channel: WebSocketChannel
  private let size: Int

  fileprivate init(_ channel: WebSocketChannel, _ size: Int) {
    self.channel = channel
    self.size = size
  }

  deinit { channel.release(size) }
}

/// Events in their order. Messages without another event between them are one delivery, because each delivery can wake
/// one of the caller's threads.
private struct WebSocketDeliveries {
  private(set) var all: [WebSocketChannel.Delivery] = []
  private var messages: [WebSocketMessage] = []
  private var size = 0

  mutating func append(_ message: WebSocketMessage) {
    messages.append(message)
    size += message.memorySize
  }

  mutating func append(_ event: WebSocketChannel.Delivery) {
    endMessages()
    all.append(event)
  }

  mutating func endMessages() {
    guard !messages.isEmpty else { return }
    all.append(.messages(messages, size: size))
    (messages, size) = ([], 0)
  }
}

extension WebSocketChannel.ChannelState {
  fileprivate mutating func step(limit: Int) -> WebSocketChannel.Step {
    guard !isDelivering, end != nil else { return .wait }
    let events = events(limit: streamEnd == nil ? limit : .max)
    if !events.isEmpty {
      isDelivering = true
      return .deliver(events)
    }
    if streamEnd != nil {
      // Only one thread ends the channel.
      isDelivering = true
      return .end
    }
    guard !isFull(limit), position == input.count, !isReading, !isAtEnd else { return .wait }
    isReading = true
    return .read
  }

  /// Whether the channel stops reading until messages have been processed.
  func isFull(_ limit: Int) -> Bool { held >= limit && !connection.skipsMessages }

  /// Reads events until a limit of bytes is reached.
  private mutating func events(limit: Int) -> [WebSocketChannel.Delivery] {
    let input = input
    return input.withUnsafeBytes { bytes in
      var events = WebSocketDeliveries()
      while !isFull(limit), let event = connection.receive(bytes, from: &position) { add(event, to: &events) }
      events.endMessages()
      return events.all
    }
  }

  private mutating func add(_ event: consuming WebSocketEvent, to events: inout WebSocketDeliveries) {
    switch consume event {
    case .message(let message):
      held += message.memorySize
      events.append(message)
    case .ping: events.endMessages()
    case .pong(let payload): events.append(.pong(payload))
    case .closed(let closure):
      events.endMessages()
      if closure.isClean { events.append(.closed(closure)) }
    case .failed(let violation):
      fail(violation)
      events.append(.failed)
    }
  }

  private mutating func fail(_ violation: WebSocketViolation) {
    guard failure == nil else { return }
    var kind = TransportFailure.FailureKind.badServerResponse
    if case .messageTooLarge = violation { kind = .dataLengthExceedsMaximum }
    failure = TransportFailure(kind, violation.message)
  }

  /// Returns the failure with which the channel ends; `nil` after a closing handshake.
  fileprivate func outcome(_ host: String) -> TransportFailure? {
    if let failure { return failure }
    if isClosed { return nil }
    return streamEnd?.failure ?? Self.withoutClosure(host)
  }

  static func withoutClosure(_ host: String) -> TransportFailure {
    TransportFailure(
      .connectionLost, "\(host) ended the WebSocket connection without a Close frame (RFC 6455 §7.1.5).")
  }
}

extension WebSocketMessage {
  /// The memory of a message in addition to its bytes, so that many empty messages are limited as well.
  static let overhead = 64

  /// The memory that a message takes while it waits.
  var memorySize: Int {
    switch self {
    case .text(let text): text.utf8.count + Self.overhead
    case .binary(let data): data.count + Self.overhead
    }
  }
}

/// Masking keys that cannot be predicted (RFC 6455 §5.3). Keys are drawn in blocks, because a draw for each frame would
/// cost as much as the masking of a small one. The first blocks are small, because many connections send little. Used
/// under the lock of its channel.
final class MaskingKeys {
  private static let largestBlock = 64

  @exclusivity(unchecked) private var words: [UInt32] = []
  @exclusivity(unchecked) private var blockSize = 4

  func next() -> UInt32 {
    if words.isEmpty {
      words = OpenSSLRandom.words(blockSize) ?? []
      blockSize = min(Self.largestBlock, blockSize * 4)
    }
    return words.popLast() ?? UInt32.random(in: .min ... .max)
  }
}
