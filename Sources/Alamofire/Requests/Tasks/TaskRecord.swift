import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// What one attempt of a request has come to: what its task shows. Made when somebody looks.
final class TaskRecord: Sendable {
  /// What a task shows.
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
    /// Once the attempt is over nothing changes any more.
    var last: View?
  }

  private static let identifiers = Atomic<Int>(0)

  /// For a task of any kind.
  static func nextIdentifier() -> Int { identifiers.wrappingAdd(1, ordering: .relaxed).newValue }

  let identifier = TaskRecord.nextIdentifier()
  private let state: Mutex<State>

  init(of request: Request) {
    state = Mutex(State(request: request))
  }

  /// The request, as long as somebody holds it.
  var request: Request? { state.withLock { $0.request } }

  var view: View {
    let (request, last) = state.withLock { ($0.request, $0.last) }
    return last ?? request?.core.taskView ?? View(state: .completed)
  }

  /// The attempt is over.
  func end(_ view: View) {
    state.withLock { state in
      guard state.last == nil else { return }
      state.last = view
      state.last?.state = .completed
    }
  }

  /// How far the response has come.
  var progress: Progress { request?.downloadProgress ?? Progress(totalUnitCount: 0) }

  var isOver: Bool { state.withLock { $0.last != nil } }

  /// Does something to the request, unless the attempt is over: its task is not the request's any more.
  func withRequest(_ body: (Request) -> Void) {
    let request = state.withLock { state in state.last == nil ? state.request : nil }
    if let request { body(request) }
  }
}

/// A task of Foundation's that shows an attempt of a request of ours.
protocol RecordedTask: URLSessionTask {
  var record: TaskRecord { get }
}

extension URLRequest {
  /// The request that goes over the wire at present, as a user sees it: the user's own, led elsewhere.
  init?(hop: WireRequest, of original: URLRequest?) {
    guard let original, original.url?.absoluteString != hop.url || original.httpMethod != hop.method else {
      return nil
    }
    guard let url = URL(string: hop.url) else { return nil }
    self = original
    self.url = url
    httpMethod = hop.method
    allHTTPHeaderFields = nil
    for field in hop.fields { addValue(field.value, forHTTPHeaderField: field.name) }
    if !hop.body.isPresent { httpBody = nil }
  }

  /// Whether both are the same on the wire: Foundation's comparison does not look at the fields.
  func isSent(like other: URLRequest) -> Bool {
    url == other.url && httpMethod == other.httpMethod && httpBody == other.httpBody
      && allHTTPHeaderFields == other.allHTTPHeaderFields
  }
}
