import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// An event of a WebSocket request for its readers.
enum WebSocketNotice: Sendable {
  case connected(protocol: String?)
  case message(WebSocketMessage)
  case disconnected(WebSocketCloseCode, reason: Data?)
  /// The last event.
  case completed(RequestOutcome)
}

/// Events that a reader receives together.
enum WebSocketArrival: Sendable {
  case messages(WebSocketMessages)
  case other(WebSocketNotice)
}

/// A reader of a WebSocket request.
protocol WebSocketReader: EventSink {
  /// Takes events, on any thread, including the engine's. It must return at once.
  func receive(_ arrival: WebSocketArrival)
}

extension WebSocketReader {
  func deliver() {
    guard let outcome = runEnd.outcome else {
      preconditionFailure("a handler was served before its outcome was known")
    }
    runEnd.reach()
    receive(.other(.completed(outcome)))
  }
}

/// The messages of a WebSocket request in both directions, for all of its attempts.
final class WebSocketFlow: Sendable {
  typealias SendCompletion = @Sendable (AFError?) -> Void

  private struct Unsent: Sendable {
    let message: WebSocketMessage
    let completion: SendCompletion?
  }

  /// The place to which a message goes.
  private enum Destination {
    case channel(WebSocketChannel)
    case queue
    /// The queue has this number of bytes, and takes no more.
    case fullQueue(count: Int)
    /// The closure that was asked for comes before later messages.
    case closing
    case none
  }

  /// Guarded by the lock of this class.
  private struct State {
    /// The request, for the calls of the delegate.
    weak var request: (any RunOwner)?
    /// The channel of the current attempt, once it is open.
    var channel: WebSocketChannel?
    /// Whether the channel has received the messages of ``queued``, so that later ones need not wait.
    var isDirect = false
    /// The messages that wait for a channel, with their memory.
    var queued = Backlog<Unsent>()
    /// The closure that was asked for before the channel was direct.
    var closing: (code: WebSocketCloseCode, reason: String)?
    var readers: [any WebSocketReader] = []
    /// The delivery of the current run.
    var delivery = EventDelivery()
    var isOver = false
  }

  let options: WebSocketChannelOptions
  private let subprotocols: [String]
  /// The messages that wait for a connection, and the readers, for the loop and the threads of users.
  private let state = Mutex(State())

  init(_ options: WebSocketChannelOptions, subprotocols: [String]) {
    self.options = options
    self.subprotocols = subprotocols
  }

  deinit { end(with: .explicitlyCancelled) }

  func serve(_ request: any RunOwner) { state.withLock { $0.request = request } }

  /// Returns the transport of an attempt that begins at an origin; `nil` if the engine has no streams of bytes.
  func transport(of services: Services, from initialOrigin: Origin) -> WebSocketTransport? {
    services.byteStreams.map {
      WebSocketTransport(
        $0, options, subprotocols: subprotocols, initialOrigin: initialOrigin, observer: self,
        executor: services.executor, enqueue: services.enqueue)
    }
  }

  // MARK: Sending

  /// Sends a message, as soon as there is a connection.
  ///
  /// - Parameter isLimited: Whether the message is refused if too many bytes are not sent yet.
  /// - Returns: The error of a refused message, whose completion is not called.
  func send(_ message: WebSocketMessage, isLimited: Bool, _ completion: SendCompletion?) -> AFError? {
    let limit = isLimited ? options.unsentLimit : .max
    let destination = state.withLock { state -> Destination in
      if state.isOver { return state.channel.map { .channel($0) } ?? .none }
      // Also if the channel is direct, because it receives the closure a moment later.
      guard state.closing == nil else { return .closing }
      if state.isDirect { return state.channel.map { .channel($0) } ?? .none }
      let count = state.queued.unreadWeight
      guard count < limit else { return .fullQueue(count: count) }
      state.queued.append(Unsent(message: message, completion: completion), weight: message.memorySize)
      return .queue
    }
    switch destination {
    case .channel(let channel): return Self.send(message, over: channel, limit, completion)
    case .fullQueue(let count): return AFError(WebSocketSendError.outputFull(count: count).failure, url: "")
    // As an open channel answers: the result does not depend on the time at which the connection opens.
    case .closing: completion?(AFError(WebSocketSendError.notOpen.failure, url: ""))
    case .none: completion?(Self.notConnected)
    case .queue: break
    }
    return nil
  }

  private static func send(
    _ message: WebSocketMessage, over channel: WebSocketChannel, _ limit: Int, _ completion: SendCompletion?
  ) -> AFError? {
    let onWritten = completion.map { completion in
      { @Sendable (failure: TransportFailure?) in completion(failure.map { AFError($0, url: "") }) }
    }
    return channel.send(message, limit: limit, onWritten).map { AFError($0, url: "") }
  }

  /// Begins the closing handshake, as soon as there is a connection.
  func close(_ code: WebSocketCloseCode, reason: String) {
    let channel = state.withLock { state -> WebSocketChannel? in
      // The channel receives the first closure when it opens.
      guard state.closing == nil else { return nil }
      if !state.isDirect { state.closing = (code, reason) }
      return state.isDirect ? state.channel : nil
    }
    channel?.close(code, reason: reason)
  }

  /// Sends a ping. Returns false if there is no connection.
  func ping(_ completion: @escaping WebSocketChannel.PingCompletion) -> Bool {
    guard let channel = state.withLock({ $0.channel }) else { return false }
    channel.ping(completion)
    return true
  }

  // MARK: Readers

  /// Adds a reader, which receives the events from now on.
  func add(_ reader: any WebSocketReader) {
    state.withLock { state in if !state.isOver { state.readers.append(reader) } }
  }

  /// The delivery of the current run.
  var delivery: EventDelivery { state.withLock { $0.delivery } }

  /// Drops the events that readers have not received yet, except for the completion.
  func endDelivery() { delivery.end() }

  func remove(_ reader: any WebSocketReader) {
    let removed = state.withLock { state in
      let removed = state.readers.filter { $0 === reader }
      state.readers.removeAll { $0 === reader }
      return removed
    }
    // Released outside the lock.
    _ = removed
  }

  /// Begins another run, because the finished request is sent again. It has its own readers.
  func beginAgain() {
    state.withLock { state in
      state.isOver = false
      state.closing = nil
      state.delivery = EventDelivery()
    }
  }

  /// Ends the run, which neither receives nor sends any more. The second call has no effect.
  func end(with error: AFError?) {
    let (queued, readers) = state.withLock { state in
      defer {
        state.isOver = true
        state.readers = []
        state.channel = nil
        state.isDirect = false
      }
      return (state.queued.take(atMost: .max), state.readers)
    }
    for item in queued { item.completion?(error ?? Self.notConnected) }
    // Released outside the lock.
    _ = readers
  }

  private func notifyReaders(_ arrival: WebSocketArrival) {
    for reader in state.withLock({ $0.readers }) { reader.receive(arrival) }
  }

  private static var notConnected: AFError {
    .sessionTaskFailed(
      error: URLError(
        .networkConnectionLost, "The WebSocket request has ended. Nothing more can be sent.", url: nil))
  }
}

extension WebSocketFlow: WebSocketChannelObserver {
  nonisolated(nonsending) func validate(_ head: ResponseHead) async throws(TransportFailure) {
    guard let core = state.withLock({ $0.request })?.core else { return }
    // Before the validators, which may read the response.
    core.connected(head)
    guard core.hasValidators else { return }
    // Validators are the caller's code, which must not run on the loop's thread.
    let failure = await withTaskExecutorPreference(globalConcurrentExecutor) { await core.handshakeFailure() }
    guard let failure else { return }
    throw TransportFailure(.cancelled, "The response to the handshake was rejected.", cause: failure)
  }

  func channelOpened(_ channel: WebSocketChannel, subprotocol: String?) {
    // Before the event, because its handlers may send a ping.
    state.withLock { $0.channel = channel }
    notify(.webSocketOpened(protocol: subprotocol))
    notifyReaders(.other(.connected(protocol: subprotocol)))
    // Later messages are queued as well, until the earlier ones were sent.
    while true {
      let queued = state.withLock { state in
        if state.queued.isEmpty { state.isDirect = true }
        return state.queued.take(atMost: .max)
      }
      if queued.isEmpty { break }
      for item in queued { _ = Self.send(item.message, over: channel, .max, item.completion) }
    }
    if let closing = state.withLock({ $0.closing }) { channel.close(closing.code, reason: closing.reason) }
  }

  func messagesReceived(_ messages: WebSocketMessages) { notifyReaders(.messages(messages)) }

  func channelClosed(_ code: WebSocketCloseCode, reason: String) {
    let reason = reason.isEmpty ? nil : Data(reason.utf8)
    notify(.webSocketClosed(code, reason: reason))
    notifyReaders(.other(.disconnected(code, reason: reason)))
  }

  func channelEnded() {
    state.withLock { state in
      state.channel = nil
      state.isDirect = false
    }
  }

  private func notify(_ notice: RunNotice) { state.withLock { $0.request }?.notify(notice) }
}
