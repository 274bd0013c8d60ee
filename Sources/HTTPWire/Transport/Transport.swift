package import FoundationEssentials
import Synchronization

// The boundary between the attempts of requests and the engine. One exchange:
//
//  1. The attempt has a request that is ready to be sent: adapted, validated, with its credentials and cookies. The
//     attempt passes the request to the transport as a ``WireRequest``.
//  2. The transport queues the request until its host may take one more, connects or reuses a connection, and sends
//     the request once. The transport follows no redirect, answers no challenge, retries nothing.
//  3. The transport reports the moved bytes to the ``TransferObserver``, and the head of the response before the
//     first byte of the body. The observer may hold the body back there. The bytes of the body are collected, or
//     given to the ``BodySink`` of the request; sent bytes are in memory, or come from a ``BodySource``. Either may
//     let the transport wait.
//  4. The owner of the request may suspend and resume the transfer by its ``TransferControl``.
//  5. The transfer ends exactly once: with a ``WireResponse``, whatever its status, or with a ``TransportFailure``.
//     If the transfer is cancelled by its control, the failure is `.cancelled`.
//
// The implementations are the engine, the fakes of tests, and the user's `URLProtocol` classes.

/// Sends one request once: follows nothing, retries nothing, validates nothing.
package protocol Transport: Sendable {
  /// Sends a request. Returns at once, and may be called on any thread.
  ///
  /// - Parameters:
  ///   - observer: Observes the transfer, which only its ``TransferControl`` cancels.
  ///   - completion: Receives the outcome, perhaps before this returns.
  func send(_ request: WireRequest, observer: any TransferObserver, completion: any TransferCompletion)
}

/// The completion of a transfer.
package protocol TransferCompletion: AnyObject, Sendable {
  /// Receives the outcome. Called exactly once, on any thread, often the transport's; must return at once.
  func transferEnded(_ outcome: consuming Result<WireResponse, TransportFailure>)
}

/// Work for the thread of an engine.
package protocol LoopWork: AnyObject, Sendable {
  /// Runs the work. Must return at once, because every transfer waits for it.
  func runOnLoop()
}

/// Observes one transfer. The transport calls the methods of an observer on any thread, one at a time. The methods
/// must return at once, because they run between two reads of a socket that other transfers share.
package protocol TransferObserver: AnyObject, Sendable {
  /// Called when the transport has accepted the request. `control` works until ``transferEnded()``, and does nothing
  /// afterwards. A transport that looks something up before the transfer begins and ends twice, each time with a
  /// separate control.
  func transferBegan(_ control: any TransferControl) -> TransferStart
  /// Called with the head of an informational response (1xx), before the head of the final response. Ignored by
  /// default.
  func informationalHeadReceived(_ head: ResponseHead)
  /// Called with the head of a response of the server that only continues a login (NTLM, Negotiate). Its body is
  /// dropped, and another head follows. Ignored by default.
  func loginHeadReceived(_ head: ResponseHead)
  /// Called with the head of the final response.
  func headReceived(_ head: ResponseHead) -> HeadDisposition
  /// Called when bytes have moved, counted over the whole transfer.
  func bytesMoved(_ count: ByteCount)
  /// Called when the transfer has ended.
  func transferEnded()
}

extension TransferObserver {
  package func informationalHeadReceived(_ head: ResponseHead) {}
  package func loginHeadReceived(_ head: ResponseHead) {}
}

/// The answer of an observer to the beginning of a transfer.
package enum TransferStart: Sendable, Equatable {
  case go
  /// The transfer waits for ``TransferControl/resume()``.
  case hold
  /// The transfer ends as cancelled.
  case refuse
}

/// The answer of an observer to the head of a response.
package enum HeadDisposition: Sendable, Equatable {
  case proceed
  /// The body is not read before ``TransferControl/resume()``.
  case hold
  /// The body is discarded: the response is complete with its head. See `DroppedBody`.
  case discard
}

/// Controls one transfer, from any thread.
package protocol TransferControl: Sendable {
  /// Stops reading and writing.
  func suspend()
  func resume()
  /// Ends the transfer as cancelled.
  func cancel()
  /// Changes the queue position of a transfer that waits for its host. Without effect on others.
  func setPriority(_ priority: Float)
}

extension TransferControl {
  package func setPriority(_ priority: Float) {}
}

/// The progress of a transfer.
package struct ByteCount: Sendable, Equatable {
  package var sent: Int64 = 0
  /// The length of the request's body; −1 when it is not known.
  package var expectedToSend: Int64 = -1
  package var received: Int64 = 0
  /// The length of the response's body; −1 when it is not known or the body is encoded.
  package var expectedToReceive: Int64 = -1

  package init() {}
}

/// The metrics of one transfer. Times are microseconds since ``start``; −1 means that the phase did not happen (a
/// reused connection has no look-up, no connection and no handshake).
package final class TransferMetrics: Sendable {
  /// Plain numbers, filled in one go where the transfer ends.
  package struct Values: Sendable {
    /// The time at which the transport began: seconds since 1970.
    package var start: Double = 0
    /// The time at which the transfer left its queue.
    package var queueEnd: Int64 = 0
    package var lookupEnd: Int64 = -1
    package var connectEnd: Int64 = -1
    package var secureEnd: Int64 = -1
    package var requestStart: Int64 = -1
    package var requestEnd: Int64 = -1
    package var responseStart: Int64 = -1
    package var end: Int64 = -1
    package var requestHeaderBytes: Int64 = 0
    package var requestBodyBytes: Int64 = 0
    package var responseHeaderBytes: Int64 = 0
    /// The body as received, before decoding.
    package var responseBodyBytes: Int64 = 0
    package var decodedBodyBytes: Int64 = 0
    /// Whether an earlier attempt of the transfer was sent, and may have arrived.
    package var mayHaveArrived = false
    /// Whether the transfer ended while its host was being connected to.
    package var isConnecting = false
    package var isReusedConnection = false
    package var isProxyConnection = false
    package var localPort: Int32 = 0
    package var remotePort: Int32 = 0

    package init() {}
  }

  package let values: Values
  package let version: HTTPVersion
  /// The facts that the transfers of one connection share.
  package let connection: ConnectionDetails
  /// The head of the request as sent, if its bytes were observed.
  package let requestHead: String?

  package init(
    values: Values = Values(), version: HTTPVersion = .http1_1, connection: ConnectionDetails = .unknown,
    requestHead: String? = nil
  ) {
    self.values = values
    self.version = version
    self.connection = connection
    self.requestHead = requestHead
  }

  package var localAddress: String { connection.localAddress }
  package var remoteAddress: String { connection.remoteAddress }
  package var tlsVersion: String? { connection.tlsVersion }
  package var tlsCipher: UInt16? { connection.tlsCipher }
}

/// The facts about one connection, which all of its transfers share.
package final class ConnectionDetails: Sendable {
  /// The facts about an unknown connection, or about no connection.
  package static let unknown = ConnectionDetails()

  package let localAddress: String
  package let remoteAddress: String
  /// The version of TLS as OpenSSL names it (`TLSv1.3`), or `nil` without TLS.
  package let tlsVersion: String?
  /// The number of the cipher suite in a handshake (0x1302), or `nil` without TLS.
  package let tlsCipher: UInt16?

  package init(
    localAddress: String = "", remoteAddress: String = "", tlsVersion: String? = nil,
    tlsCipher: UInt16? = nil
  ) {
    self.localAddress = localAddress
    self.remoteAddress = remoteAddress
    self.tlsVersion = tlsVersion
    self.tlsCipher = tlsCipher
  }
}

/// The response of one hop.
package struct WireResponse: Sendable {
  package let head: ResponseHead
  /// The decoded body; `nil` when there was none or it was empty.
  package let body: Data?
  /// The trailer fields (RFC 9110 §6.5); `nil` without any.
  package let trailers: FieldBlock?
  package let metrics: TransferMetrics
  /// Whether the observer of the transfer discarded the body, so that ``body`` says nothing about it.
  package let isBodyDiscarded: Bool

  package init(
    head: ResponseHead, body: Data?, trailers: FieldBlock? = nil, metrics: TransferMetrics,
    isBodyDiscarded: Bool = false
  ) {
    self.head = head
    self.body = body
    self.trailers = trailers
    self.metrics = metrics
    self.isBodyDiscarded = isBodyDiscarded
  }
}

/// Observes the bytes of one request on its connection, decrypted: of each hop, and of each attempt to send it.
///
/// The transport calls the methods of an observer on its own thread. The methods must return at once, because other
/// transfers wait until it returns.
package protocol WireObserver: AnyObject, Sendable {
  /// Called when bytes were sent or received. The buffer is valid during the call only.
  func bytesMoved(_ part: WirePart, _ bytes: UnsafeRawBufferPointer)
  /// Called when the transfer has ended.
  func wireEnded()
}

/// A part of an exchange on a connection.
package enum WirePart: Sendable, CaseIterable {
  /// The head of the request, in one or several pieces. A head of HTTP/2 is written as lines of HTTP/1.1.
  case requestHead
  case requestBody
  /// A line of the head of a response, informational ones included, or a trailer.
  case responseHead
  /// Bytes of the response's body as received: encoded, and with the framing of chunks.
  case responseBody
}

/// Passes the bytes of one request to several observers.
package final class WireObservers: WireObserver {
  private let observers: [any WireObserver]

  package init(_ observers: [any WireObserver]) {
    self.observers = observers
  }

  package func bytesMoved(_ part: WirePart, _ bytes: UnsafeRawBufferPointer) {
    for observer in observers { observer.bytesMoved(part, bytes) }
  }

  package func wireEnded() {
    for observer in observers { observer.wireEnded() }
  }
}

extension Transport {
  /// Sends a request and awaits its outcome. The cancellation of the current task cancels the transfer.
  nonisolated(nonsending) package func send(
    _ request: WireRequest, observer: any TransferObserver
  ) async throws(TransportFailure) -> WireResponse {
    let transfer = AwaitedTransfer(observer)
    let outcome = await withTaskCancellationHandler {
      await transfer.outcome { send(request, observer: transfer, completion: transfer) }
    } onCancel: {
      transfer.cancel()
    }
    return try outcome.get()
  }
}

/// A transport that runs each transfer in a task, because it waits for the caller's code, a disk or another transfer.
package protocol AsyncTransport: Transport {
  /// Sends a request. Called in a task on the pool, which is never cancelled.
  func response(
    to request: WireRequest, observer: any TransferObserver
  ) async throws(TransportFailure) -> WireResponse
}

extension AsyncTransport {
  package func send(
    _ request: WireRequest, observer: any TransferObserver, completion: any TransferCompletion
  ) {
    // Detached, because the current task, if any, may belong to another request.
    Task.detached(priority: Task.currentPriority) {
      let outcome: Result<WireResponse, TransportFailure>
      do throws(TransportFailure) {
        outcome = .success(try await response(to: request, observer: observer))
      } catch {
        outcome = .failure(error)
      }
      completion.transferEnded(outcome)
    }
  }
}

/// A transfer that a task awaits. Cancelling the task cancels the transfer.
private final class AwaitedTransfer: TransferObserver, TransferCompletion {
  private struct State {
    var control: (any TransferControl)?
    var isCancelled = false
    var waiter: CheckedContinuation<Result<WireResponse, TransportFailure>, Never>?
  }

  private let observer: any TransferObserver
  /// The control of the transfer, and the task that awaits it, for any thread.
  private let state = Mutex(State())

  init(_ observer: any TransferObserver) { self.observer = observer }

  /// Begins the transfer by calling `send`, and waits for its outcome.
  nonisolated(nonsending) func outcome(
    of send: () -> Void
  ) async -> Result<WireResponse, TransportFailure> {
    let outcome = await withCheckedContinuation { continuation in
      state.withLock { $0.waiter = continuation }
      send()
    }
    // ThreadSanitizer sees no order of the threads if a continuation is resumed before it is awaited.
    state.withLock { _ in }
    return outcome
  }

  func cancel() {
    let control = state.withLock { state in
      state.isCancelled = true
      return state.control
    }
    control?.cancel()
  }

  func transferBegan(_ control: any TransferControl) -> TransferStart {
    let isCancelled = state.withLock { state in
      state.control = control
      return state.isCancelled
    }
    let start = observer.transferBegan(control)
    return isCancelled ? .refuse : start
  }

  func informationalHeadReceived(_ head: ResponseHead) { observer.informationalHeadReceived(head) }
  func headReceived(_ head: ResponseHead) -> HeadDisposition { observer.headReceived(head) }
  func bytesMoved(_ count: ByteCount) { observer.bytesMoved(count) }
  func transferEnded() { observer.transferEnded() }

  func transferEnded(_ outcome: consuming Result<WireResponse, TransportFailure>) {
    state.withLock { state in
      state.control = nil
      return state.waiter.take()
    }?.resume(returning: outcome)
  }
}
