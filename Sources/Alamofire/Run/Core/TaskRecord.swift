import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// The state of one attempt that its task shows; created on first access.
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
    weak var owner: (any RunOwner)?
    /// The final view, after the end of the attempt.
    var last: View?
  }

  /// The number of the last task.
  private static let identifiers = Atomic<Int>(0)

  /// Returns an identifier that is unique among tasks of any kind.
  static func nextIdentifier() -> Int { identifiers.wrappingAdd(1, ordering: .relaxed).newValue }

  let identifier = TaskRecord.nextIdentifier()
  /// The results that the task shows and the weak request, for any thread. It takes no other lock.
  private let state: Mutex<State>

  init(of request: any RunOwner) {
    state = Mutex(State(owner: request))
  }

  /// The request, if it was not released.
  var owner: (any RunOwner)? { state.withLock { $0.owner } }

  /// The request, unless the attempt has ended, because the request then has another task.
  var currentOwner: (any RunOwner)? { state.withLock { $0.last == nil ? $0.owner : nil } }

  var view: View {
    let (owner, last) = state.withLock { ($0.owner, $0.last) }
    return last ?? owner?.core.taskView ?? View(state: .completed)
  }

  /// Sets the final view. Only the first call has an effect.
  func end(_ view: View) {
    state.withLock { state in
      guard state.last == nil else { return }
      state.last = view
      state.last?.state = .completed
    }
  }

  var isOver: Bool { state.withLock { $0.last != nil } }
}

/// A task of Foundation's classes that shows an attempt.
protocol RecordedTask: URLSessionTask {
  var record: TaskRecord { get }
}

extension URLRequest {
  /// Makes the request that a task shows for the current hop. `nil` if it differs from the user's request in neither
  /// URL nor method, because the task shows the user's request then.
  init?(hop: WireRequest, of original: URLRequest?) {
    guard let original else { return nil }
    let text = Self.shownURL(of: hop, original)
    guard original.url?.absoluteString != text || original.httpMethod != hop.method else { return nil }
    self.init(proposing: hop, to: original)
  }

  /// Makes the request that a redirect leads to from the user's request, with the URL, method and fields of the hop.
  /// The redirect may lead back to the URL of the user's request. `nil` if Foundation cannot read the URL.
  init?(proposing hop: WireRequest, to original: URLRequest) {
    guard let url = URL(wire: Self.shownURL(of: hop, original)) else { return nil }
    self = original
    self.url = url
    httpMethod = hop.method
    allHTTPHeaderFields = nil
    for field in hop.fields { addValue(field.value, forHTTPHeaderField: field.name) }
    // A handler may have replaced the body at an earlier redirect.
    if httpBody != nil { httpBody = if case .bytes(let data) = hop.body { data } else { nil } }
  }

  /// Returns the URL of a hop, with the scheme of the user's request if that is for a WebSocket connection.
  private static func shownURL(of hop: WireRequest, _ original: URLRequest) -> String {
    let scheme = original.url?.scheme?.lowercased()
    return scheme == "ws" || scheme == "wss" ? WebSocketURL.webSocket(hop.url) : hop.url
  }

  /// Whether both are equal on the wire. Foundation's comparison ignores the fields.
  func isSent(like other: URLRequest) -> Bool {
    url == other.url && httpMethod.hasBytes(of: other.httpMethod) && httpBody == other.httpBody
      && httpBodyStream === other.httpBodyStream && hasFields(of: other)
  }

  /// Whether both have the same fields. Bytes are compared, because texts that are equal in Swift can be different ones
  /// to a server.
  private func hasFields(of other: URLRequest) -> Bool {
    let (own, others) = (allHTTPHeaderFields ?? [:], other.allHTTPHeaderFields ?? [:])
    return own.count == others.count
      && own.allSatisfy { name, value in
        guard let place = others.index(forKey: name) else { return false }
        return name.hasBytes(of: others[place].key) && value.hasBytes(of: others[place].value)
      }
  }

  /// Whether it has a field with the same name, and a value with the same bytes.
  func hasField(like field: HTTPHeader) -> Bool {
    value(forHTTPHeaderField: field.name)?.hasBytes(of: field.value) == true
  }
}
