import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// The connections of an event source: reads the events of each response, and decides about the next connection.
///
/// The body of a response arrives on the engine's thread, one connection after the other. The events in each part of it
/// are passed on together, through a ``StreamFlow``.
final class EventSource: EventReading {
  /// The response of the current connection, as far as its head shows.
  private enum Reading: Sendable {
    /// No head has been received, or it has no body to read.
    case nothing
    case events(EventStreamReader)
    /// A response that is not an event stream, with the beginning of its body.
    case refused(ResponseRefusal)
  }

  /// The settings, as `EventSourceRequest.Configuration` has them.
  struct Settings: Sendable {
    let lastEventID: String
    let policy: EventStreamReconnection.Policy
    let limits: EventStreamReader.Limits
    /// Whether another connection follows; `nil` if the method decides.
    let reconnects: Bool?
    /// The number of connections without an event after which none follows.
    let maximumFailureCount: Int?
  }

  private struct State: Sendable {
    var reconnection: EventStreamReconnection
    var reading = Reading.nothing
    /// The number of connections in a row without an event.
    var failureCount = 0
    /// Whether the current connection has had an event.
    var hasEvent = false
    /// Whether a connection has begun whose end was not counted yet.
    var isUnderway = false
    /// Whether another connection follows. Known with the first request.
    var reconnects = false

    /// Counts the end of a connection.
    mutating func countConnection() {
      if !hasEvent { failureCount += 1 }
      isUnderway = false
    }

    /// Takes over the last event ID and the delay of the server. Returns the delay before the next connection.
    mutating func endConnection(isClean: Bool, random: Double) -> Duration {
      var reader: EventStreamReader?
      if case .events(let current) = reading { reader = current }
      reading = .nothing
      hasEvent = false
      return reconnection.connectionEnded(reader, isClean: isClean, random: random)
    }
  }

  /// The largest number of bytes of a refused response that are stored. A response with more is not read any further.
  private static let largestRefusedBody = 65_536

  let configuration: Settings
  /// The event that has begun, the refused body and the next connection. It is never held together with the lock of
  /// the `StreamFlow`.
  private let state: Mutex<State>

  init(_ configuration: Settings) {
    self.configuration = configuration
    state = Mutex(
      State(
        reconnection: EventStreamReconnection(
          lastEventID: configuration.lastEventID, policy: configuration.policy)))
  }

  var lastEventID: String {
    state.withLock { state in
      if case .events(let reader) = state.reading { return reader.lastEventID }
      return state.reconnection.lastEventID
    }
  }

  /// Whether the response of the current connection is an event stream.
  var isReadingEvents: Bool {
    state.withLock { state in
      if case .events = state.reading { true } else { false }
    }
  }

  /// The response of the current connection, if it was refused.
  var refusal: ResponseRefusal? {
    state.withLock { state in
      if case .refused(let refusal) = state.reading { refusal } else { nil }
    }
  }

  /// The beginning of the body of a refused response; `nil` without one.
  var refusedBody: Data? { refusal.flatMap { $0.body.isEmpty ? nil : $0.body } }

  /// Whether another connection follows.
  var reconnects: Bool { state.withLock { $0.reconnects } }

  // MARK: A connection

  /// Begins a connection, and returns the fields of its request.
  func fields(for request: URLRequest) -> [HTTPHeader] {
    state.withLock { state in
      if state.isUnderway { state.countConnection() }
      state.isUnderway = true
      state.reconnects = configuration.reconnects ?? Invalidation.isSafe(request.httpMethod ?? "GET")
      // One of the caller's retriers asked for this connection without a delay of ours.
      if case .events = state.reading { _ = state.endConnection(isClean: true, random: 0) }
      state.reading = .nothing
      state.hasEvent = false
      return state.reconnection.fields
    }
  }

  /// Whether the request must not have the caller's `Last-Event-ID`, because the server has reset the ID.
  var hasResetID: Bool { state.withLock { $0.reconnection.hasResetID } }

  /// Returns the URL of a connection: where permanent redirects of earlier ones led, or `requested`.
  func target(of requested: String) -> String {
    state.withLock { $0.reconnection.target(of: requested) }
  }

  /// Takes note that the current connection is redirected.
  func redirected(by plan: RedirectPlan, from method: String, status: Int) {
    state.withLock { $0.reconnection.redirected(by: plan, from: method, status: status) }
  }

  /// Begins to read a response after redirects and challenges.
  func begin(_ head: ResponseHead) {
    state.withLock { state in
      switch state.reconnection.decision(about: head) {
      case .read:
        state.reading = .events(
          EventStreamReader(limits: configuration.limits, lastEventID: state.reconnection.lastEventID))
      case .stop: state.reading = .nothing
      case .fail:
        let contentType = head.block.values(of: "Content-Type").last
        state.reading = .refused(Self.refusal(status: head.status, contentType: contentType))
      }
    }
  }

  /// Returns the refusal of a response that is not an event stream.
  static func refusal(status: Int, contentType: String?) -> ResponseRefusal {
    let accepted = ["text/event-stream"]
    let reason =
      ValidationRules.statusCode(status, in: [200])
      ?? ValidationRules.contentType(contentType, in: accepted, isBodyEmpty: false)
      ?? .missingContentType(acceptableContentTypes: accepted)
    return ResponseRefusal(reason, body: Data(), contentType: contentType)
  }

  /// Reads bytes of the response. Returns the events that they complete, and the failure that ends the response.
  func read(_ bytes: UnsafeRawBufferPointer) -> (events: [ServerSentEvent], failure: TransportFailure?) {
    state.withLock { state in
      switch state.reading {
      case .nothing: return ([], nil)
      case .events(var reader):
        // Moved rather than copied, because it holds the beginning of an event.
        state.reading = .nothing
        defer { state.reading = .events(reader) }
        let (events, failure) = Self.events(in: bytes, &reader)
        if !events.isEmpty {
          state.failureCount = 0
          state.hasEvent = true
          state.reconnection.eventReceived()
        }
        return (events, failure)
      case .refused(var refusal):
        state.reading = .nothing
        defer { state.reading = .refused(refusal) }
        let isWhole = refusal.body.count + bytes.count <= Self.largestRefusedBody
        refusal.body.append(contentsOf: bytes.prefix(Self.largestRefusedBody - refusal.body.count))
        return ([], isWhole ? nil : refusal.failure)
      }
    }
  }

  private static func events(
    in bytes: UnsafeRawBufferPointer, _ reader: inout EventStreamReader
  ) -> ([ServerSentEvent], TransportFailure?) {
    var events: [ServerSentEvent] = []
    var position = 0
    do throws(EventStreamError) {
      while let event = try reader.read(bytes, from: &position) { events.append(event) }
      return (events, nil)
    } catch {
      return (events, TransportFailure(.dataLengthExceedsMaximum, error.message))
    }
  }
}

// MARK: The next connection

extension EventSource {
  /// Returns the delay before the next connection; `nil` if there is none, because too many failed in a row.
  ///
  /// - Parameter isClean: Whether the server has ended the stream.
  func delay(isClean: Bool, random: Double) -> Duration? {
    state.withLock { state -> Duration? in
      state.countConnection()
      if let limit = configuration.maximumFailureCount, state.failureCount > limit { return nil }
      return state.endConnection(isClean: isClean, random: random)
    }
  }

  /// Begins another run of the request, for which earlier failures do not count.
  func beginAgain() {
    state.withLock { state in
      state.failureCount = 0
      state.isUnderway = false
      state.reconnection.beginAgain()
    }
  }
}

/// The error of a connection that ended after an event stream.
struct EventStreamEnd: LocalizedError {
  var errorDescription: String? { "The server has ended the event stream." }
}

extension EventSource {
  /// Validates the end of a connection, after all other validators. The end of an event stream is a failure if another
  /// connection follows, so that retriers are asked.
  var validationOfEnd: Result<Void, any (Error & Sendable)> {
    isReadingEvents && reconnects ? .failure(EventStreamEnd()) : .success(())
  }

  /// Validates the response of a connection.
  func validation(_ response: HTTPURLResponse) -> Result<Void, any (Error & Sendable)> {
    if isReadingEvents { return .success(()) }
    if refusal == nil, response.statusCode == 204 { return .success(()) }
    let contentType = response.value(forHTTPHeaderField: "Content-Type")
    // A response without a body, such as a redirect that a handler has declined, may have had no head to read.
    let refusal =
      refusal ?? Self.refusal(status: response.statusCode, contentType: contentType)
    return .failure(refusal.ofValidation)
  }
}
