import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// The connections of an event source: reads the events of each response, and decides about the next connection.
///
/// The body of a response arrives on the engine's thread, one connection after the other. Each complete event is passed
/// on as one chunk of a ``StreamFlow``, so that no reader sees a part of one.
final class EventSource: Sendable {
  /// The response of the current connection, as far as its head tells.
  fileprivate enum Reading: Sendable {
    /// No head has come.
    case nothing
    case events(EventStreamReader)
    /// The body of a response that is no event stream. Its bytes are counted and dropped.
    case other(byteCount: Int)
  }

  fileprivate struct State: Sendable {
    /// `nil` until the URL is known.
    var reconnection: EventStreamReconnection?
    var reading = Reading.nothing
    /// An event for which the flow had no room.
    var pending: Data?
    /// The number of bytes that were read before the transport offers them again.
    var skipped = 0
    /// The number of connections in a row without an event.
    var failureCount = 0
    /// Whether another connection follows. Known with the first request.
    var reconnects = false
  }

  /// The largest body of another response that is read, so that the connection can be used again.
  fileprivate static let largestOtherBody = 65_536

  let configuration: EventSourceRequest.Configuration
  private let state = Mutex(State())

  init(_ configuration: EventSourceRequest.Configuration) { self.configuration = configuration }

  var lastEventID: String {
    state.withLock { state in
      if case .events(let reader) = state.reading { return reader.lastEventID }
      return state.reconnection?.lastEventID ?? configuration.lastEventID
    }
  }

  /// Whether the response of the current connection is an event stream.
  var isReadingEvents: Bool {
    state.withLock { state in
      if case .events = state.reading { true } else { false }
    }
  }

  /// Whether another connection follows.
  var reconnects: Bool { state.withLock { $0.reconnects } }

  // MARK: A connection

  /// Returns the fields of the next request.
  func fields(for request: URLRequest) -> [HTTPHeader] {
    state.withLock { state in
      if state.reconnection == nil {
        state.reconnection = EventStreamReconnection(
          url: request.url?.absoluteString ?? "", lastEventID: configuration.lastEventID,
          policy: configuration.policy)
      }
      state.reconnects = configuration.reconnects ?? Invalidation.isSafe(request.httpMethod ?? "GET")
      // A retrier of the caller asked for this connection without a delay of ours.
      if case .events = state.reading { _ = state.endConnection(random: 0) }
      return state.reconnection?.fields ?? []
    }
  }

  /// Begins to read a response behind redirects and challenges.
  func begin(_ head: ResponseHead) {
    state.withLock { state in
      state.pending = nil
      state.skipped = 0
      if case .read = state.reconnection?.decision(about: head) {
        state.reading = .events(
          EventStreamReader(limits: configuration.limits, lastEventID: state.reconnection?.lastEventID ?? ""))
      } else {
        state.reading = .other(byteCount: 0)
      }
    }
  }

  /// Reads bytes and passes complete events on. If `pass` has no room for one, the transport offers the same bytes
  /// again, perhaps in other chunks.
  func receive(
    _ bytes: UnsafeRawBufferPointer, passingTo pass: (UnsafeRawBufferPointer) -> BodyReception
  ) -> BodyReception {
    var position: Int?
    while true {
      switch state.withLock({ $0.next(in: bytes, &position) }) {
      case .none: return .taken
      case .failed(let message): return .failure(TransportFailure(.dataLengthExceedsMaximum, message))
      case .event(let event):
        let reception = event.withUnsafeBytes { pass($0) }
        if case .taken = reception { continue }
        state.withLock { state in
          state.pending = event
          if let position { state.skipped = position }
        }
        return reception
      }
    }
  }

  fileprivate enum Step {
    case none
    case event(Data)
    case failed(String)
  }
}

extension EventSource.State {
  /// Returns the next step in the bytes of the response.
  ///
  /// - Parameter position: `nil` until the bytes that were read before are skipped.
  fileprivate mutating func next(
    in bytes: UnsafeRawBufferPointer, _ position: inout Int?
  ) -> EventSource.Step {
    if let event = pending.take() { return .event(event) }
    if position == nil {
      position = min(skipped, bytes.count)
      skipped -= position ?? 0
    }
    switch reading {
    case .nothing: return .none
    case .other(let count):
      reading = .other(byteCount: count + bytes.count)
      return count + bytes.count <= EventSource.largestOtherBody
        ? .none : .failed("The response is no event stream, and its body is larger than 64 KiB.")
    case .events(var reader):
      // Moved rather than copied, because it holds the beginning of an event.
      reading = .nothing
      defer { reading = .events(reader) }
      do throws(EventStreamError) {
        var end = position ?? 0
        defer { position = end }
        guard let event = try reader.read(bytes, from: &end) else { return .none }
        failureCount = 0
        reconnection?.eventReceived()
        return .event(event.encoded)
      } catch {
        return .failed(error.message)
      }
    }
  }

  /// Takes over the last event ID and the delay of the server. Returns the delay before the next connection.
  fileprivate mutating func endConnection(random: Double) -> Duration? {
    var reader: EventStreamReader?
    if case .events(let current) = reading { reader = current }
    reading = .nothing
    pending = nil
    skipped = 0
    return reconnection?.connectionEnded(reader, random: random)
  }
}

// MARK: The next connection

extension EventSource {
  /// Returns the delay before the next connection; `nil` if there is none, because too many failed in a row.
  func delay(random: Double) -> Duration? {
    state.withLock { state -> Duration? in
      state.failureCount += 1
      if let limit = configuration.maximumFailureCount, state.failureCount > limit { return nil }
      return state.endConnection(random: random)
    }
  }
}
