import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// The state of one attempt that its task shows; made on first access.
final class TaskRecord: Sendable {
  /// The properties that a task shows.
  struct View: Sendable {
    var originalRequest: URLRequest?
    var currentRequest: URLRequest?
    var response: URLResponse?
    var error: (any Error)?
    var state = URLSessionTask.State.suspended
    var count = ByteCount()
  }

  private struct State {
    weak var request: Request?
    /// The final view, after the end of the attempt.
    var last: View?
  }

  private static let identifiers = Atomic<Int>(0)

  /// Returns an identifier that is unique among tasks of any kind.
  static func nextIdentifier() -> Int { identifiers.wrappingAdd(1, ordering: .relaxed).newValue }

  let identifier = TaskRecord.nextIdentifier()
  private let state: Mutex<State>

  init(of request: Request) {
    state = Mutex(State(request: request))
  }

  /// The request, if it was not released.
  var request: Request? { state.withLock { $0.request } }

  var view: View {
    let (request, last) = state.withLock { ($0.request, $0.last) }
    return last ?? request?.core.taskView ?? View(state: .completed)
  }

  /// Sets the final view. Only the first call has an effect.
  func end(_ view: View) {
    state.withLock { state in
      guard state.last == nil else { return }
      state.last = view
      state.last?.state = .completed
    }
  }

  /// The progress of the response body.
  var progress: Progress { request?.downloadProgress ?? Progress(totalUnitCount: 0) }

  var isOver: Bool { state.withLock { $0.last != nil } }

  /// Calls `body` with the request, unless the attempt has ended, because the request then has another task.
  func withRequest(_ body: (Request) -> Void) {
    let request = state.withLock { state in state.last == nil ? state.request : nil }
    if let request { body(request) }
  }
}

/// A task of Foundation's classes that shows an attempt.
protocol RecordedTask: URLSessionTask {
  var record: TaskRecord { get }
}

extension URLRequest {
  /// Makes the request of the current hop from the user's request: URL, method and fields are those of the hop.
  init?(hop: WireRequest, of original: URLRequest?) {
    guard let original, original.url?.absoluteString != hop.url || original.httpMethod != hop.method else {
      return nil
    }
    let scheme = original.url?.scheme?.lowercased()
    let text = scheme == "ws" || scheme == "wss" ? WebSocketURL.webSocket(hop.url) : hop.url
    guard original.url?.absoluteString != text || original.httpMethod != hop.method,
      let url = URL(wire: text)
    else { return nil }
    self = original
    self.url = url
    httpMethod = hop.method
    allHTTPHeaderFields = nil
    for field in hop.fields { addValue(field.value, forHTTPHeaderField: field.name) }
    if !hop.body.isPresent { httpBody = nil }
  }

  /// Whether both are equal on the wire. Foundation's comparison ignores the fields.
  func isSent(like other: URLRequest) -> Bool {
    url == other.url && httpMethod == other.httpMethod && httpBody == other.httpBody
      && allHTTPHeaderFields == other.allHTTPHeaderFields
  }
}
