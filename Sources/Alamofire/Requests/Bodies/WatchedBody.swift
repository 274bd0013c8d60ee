import Foundation
import HTTPWire
import Synchronization

/// The body of a data request's response that somebody watches: kept in memory as that of any other, and shown
/// piece by piece as it comes. Written on the engine's thread.
final class WatchedBody: BodySink {
  private struct State {
    var data = Data()
    var isShown = false
  }

  private weak let core: RequestCore?
  private let state = Mutex(State())

  init(of core: RequestCore) {
    self.core = core
  }

  func begin(_ head: ResponseHead, wake: @escaping @Sendable () -> Void) -> TransportFailure? {
    // A page that says "look elsewhere" is shown only if nobody goes there.
    let isShown = core?.isShown(head) ?? false
    state.withLock { $0 = State(isShown: isShown) }
    return nil
  }

  func receive(_ bytes: UnsafeRawBufferPointer) -> BodyReception {
    guard !bytes.isEmpty else { return .taken }
    let isShown = state.withLock { state in
      state.data.append(contentsOf: bytes)
      return state.isShown
    }
    if isShown { core?.tellData(Data(bytes)) }
    return .taken
  }

  func finish() -> TransportFailure? { nil }

  /// All that has come; `nil` when that is nothing.
  var data: Data? { state.withLock { $0.data.isEmpty ? nil : $0.data } }

  /// Takes all that has come, and whether it has been shown.
  func take() -> (data: Data?, isShown: Bool) {
    state.withLock { state in
      defer { state = State() }
      return (state.data.isEmpty ? nil : state.data, state.isShown)
    }
  }
}

extension RequestCore {
  /// What collects the body of a response, if somebody wants to see its pieces.
  var watchedBody: WatchedBody? {
    session.watching.wants(.transfers) || session.eventMonitor.hearsBodies || hasOwnMonitors
      ? WatchedBody(of: self) : nil
  }

  private var hasOwnMonitors: Bool {
    isWatchedItself.load(ordering: .relaxed) && state.withLock { !$0.monitors.isEmpty }
  }

  /// The body of the response for the user, told to whoever has not seen it yet.
  func shown(_ body: Data?, of request: WireRequest, isKept: Bool) -> Data? {
    let (data, isShown) = (request.sink as? WatchedBody)?.take() ?? (nil, false)
    let all = data ?? body
    if isKept, !isShown, let all, !all.isEmpty, download == nil, stream == nil { tellData(all) }
    return all
  }
}
