import Foundation
import HTTPWire

/// The delivery of bytes from a `URLProtocol` into memory, or into the request's sink. While the sink is full, bytes
/// are held in memory, because a class cannot be paused.
struct ProtocolDelivery {
  private let sink: (any BodySink)?
  private let limit: Int64?
  private var pending: [Data] = []
  private var next = 0
  /// The number of bytes that are held.
  private var heldCount: Int64 = 0
  private var body = Data()
  private var count = ByteCount()
  private var head: ResponseHead?
  private var isOpen = false
  /// Whether the sink is full; it will call its wake closure.
  var isFull = false
  /// Whether the body is discarded.
  var discards = false
  /// The result, once all bytes are delivered.
  var ending: Result<Void, TransportFailure>?

  init(_ request: WireRequest) {
    sink = request.sink
    limit = request.profile.options.bodySizeLimit
    if case .bytes(let data) = request.body {
      // The class gets the whole body with the request.
      count.sent = Int64(data.count)
      count.expectedToSend = count.sent
    }
  }

  var hasBytes: Bool { next < pending.count }

  mutating func append(_ data: Data) {
    guard !data.isEmpty else { return }
    pending.append(data)
    heldCount += Int64(data.count)
  }

  /// The failure of a body that is too large, including the bytes that are held; `nil` if it is not.
  var excess: TransportFailure? {
    limit.flatMap { count.received + heldCount > $0 ? .tooLarge($0) : nil }
  }

  mutating func begin(_ head: ResponseHead, wake: @escaping @Sendable () -> Void) -> TransportFailure? {
    self.head = head
    if !head.block.contains("Content-Encoding") {
      count.expectedToReceive = head.block.contentLength ?? -1
    }
    guard let sink, !discards else { return nil }
    isOpen = true
    return sink.begin(head, wake: wake)
  }

  /// Delivers bytes until the sink is full. Returns the failure, if there is one.
  mutating func run(_ observer: any TransferObserver) -> TransportFailure? {
    while hasBytes, !isFull {
      let chunk = pending[next]
      if isOpen, let sink {
        switch chunk.withUnsafeBytes({ sink.receive($0) }) {
        case .more: break
        case .pause: isFull = true
        case .failure(let failure): return failure
        }
      } else if !discards {
        body.append(chunk)
      }
      drop(chunk.count)
      observer.bytesMoved(count)
    }
    return nil
  }

  private mutating func drop(_ length: Int) {
    count.received += Int64(length)
    heldCount -= Int64(length)
    pending[next] = Data()
    next += 1
    // Not for each piece, because the others are moved.
    guard next == pending.count || next > 64 && next > pending.count / 2 else { return }
    pending.removeFirst(next)
    next = 0
  }

  mutating func finished() -> Result<WireResponse, TransportFailure> {
    if let failure = close() { return .failure(failure) }
    guard let head else { return .failure(TransportFailure(.badServerResponse, "There is no response.")) }
    return .success(WireResponse(head: head, body: body.isEmpty ? nil : body, metrics: metrics))
  }

  private var metrics: TransferMetrics {
    var values = TransferMetrics.Values()
    values.requestBodyBytes = count.sent
    values.decodedBodyBytes = discards ? 0 : count.received
    return TransferMetrics(values: values)
  }

  /// The response so far; `nil` before its head.
  var partial: TransportFailure.PartialResponse? {
    head.map { TransportFailure.PartialResponse(head: $0, body: body.isEmpty ? nil : body) }
  }

  @discardableResult
  mutating func close() -> TransportFailure? {
    pending = []
    next = 0
    heldCount = 0
    guard isOpen else { return nil }
    isOpen = false
    return sink?.finish()
  }
}

extension TransportFailure {
  static func tooLarge(_ limit: Int64) -> TransportFailure {
    TransportFailure(
      .dataLengthExceedsMaximum,
      "The body of the response is larger than \(limit) bytes; raise bodySizeLimit if that is right.")
  }
}

/// The state of a `URLProtocol`'s response, and the action for each of its calls. Pure. User code makes the calls:
/// any order has a defined action, and calls after the end are ignored.
package struct ProtocolReply: Sendable {
  package enum DeliveryState: Sendable, Equatable {
    case waiting
    /// The response, or data without one, was received; bytes may follow.
    case receiving
    case ended
  }

  package enum Event: Sendable, CaseIterable {
    case response
    case bytes
    case finish
    case failure
    case redirect
    case challenge
    /// The request was cancelled.
    case cancel
    case timeout
  }

  package enum Action: Sendable, Equatable {
    case nothing
    case deliverHead
    case deliverBytes
    /// The bytes arrive without a response. They are delivered as Foundation does.
    case deliverBytesAlone
    /// The response completes when all bytes are delivered.
    case complete
    /// The class's own error ends the response when all bytes are delivered.
    case fail
    case follow
    case answerChallenge
    case cancel
    case timeOut
    /// The class broke the rules in a way that cannot be handled.
    case refuse(Fault)
  }

  package enum Fault: Sendable, Equatable, CaseIterable {
    case endBeforeResponse

    package func message(_ name: String) -> String {
      switch self {
      case .endBeforeResponse:
        "The URLProtocol class \(name) finished without a response and without data; call urlProtocol(_:didReceive:cacheStoragePolicy:) first."
      }
    }
  }

  package private(set) var state = DeliveryState.waiting

  package init() {}

  package mutating func event(_ event: Event) -> Action {
    switch (state, event) {
    case (.ended, _): return .nothing
    case (_, .cancel): return end(.cancel)
    case (_, .timeout): return end(.timeOut)
    case (_, .failure): return end(.fail)
    case (.waiting, .response):
      state = .receiving
      return .deliverHead
    case (.waiting, .bytes):
      state = .receiving
      return .deliverBytesAlone
    case (.waiting, .finish): return end(.refuse(.endBeforeResponse))
    case (.waiting, .redirect): return end(.follow)
    case (.waiting, .challenge): return .answerChallenge
    case (.receiving, .bytes): return .deliverBytes
    case (.receiving, .finish): return end(.complete)
    // Too late: the first response is the answer, or there is none.
    case (.receiving, .response), (.receiving, .redirect), (.receiving, .challenge): return .nothing
    }
  }

  private mutating func end(_ action: Action) -> Action {
    state = .ended
    return action
  }
}
