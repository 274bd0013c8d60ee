import Foundation
import HTTPWire
import Synchronization

/// The sink of a data request with observers or chunk readers. It keeps the body in memory and shows each chunk to the
/// observers. Once there is a chunk reader, it passes the chunks on in place of keeping them. Written on the loop's thread.
final class ObservedBody: BodySink {
  private struct State {
    var data = Data()
    var isShown = false
    /// Whether it is kept although it could be handed out, while it is small.
    var isHeld = false
    /// What makes the transport go on.
    var wake: (@Sendable () -> Void)?
  }

  /// What is kept of a response that may be asked for again.
  private static let mostHeld = 1 << 20

  private weak let core: RequestCore?
  private let state = Mutex(State())

  init(of core: RequestCore) {
    self.core = core
  }

  func begin(_ head: ResponseHead, wake: @escaping @Sendable () -> Void) -> TransportFailure? {
    // A page that says "look elsewhere" is shown only if nobody goes there.
    let isShown = core?.isShown(head) ?? false
    // A failure that a retrier may want to undo is handed out when nobody wants that.
    let isHeld = !(200..<300).contains(head.status) && core?.isIntercepted == true
    state.withLock { $0 = State(isShown: isShown, isHeld: isHeld, wake: wake) }
    return isShown ? core?.pieces?.begin() : nil
  }

  func receive(_ bytes: UnsafeRawBufferPointer) -> BodyReception {
    guard !bytes.isEmpty else { return .taken }
    let isShown = state.withLock { $0.isShown }
    if isShown, let pieces = core?.pieces {
      let reception = pass(bytes, to: pieces)
      guard case .taken = reception else { return reception }
    } else {
      state.withLock { $0.data.append(contentsOf: bytes) }
    }
    if isShown, core?.isWatched == true { core?.tellData(Data(bytes)) }
    return .taken
  }

  private func pass(_ bytes: UnsafeRawBufferPointer, to pieces: ResponseChunks) -> BodyReception {
    let (kept, wake) = state.withLock { state in
      if state.isHeld, state.data.count + bytes.count <= Self.mostHeld {
        state.data.append(contentsOf: bytes)
        return (nil as Data?, nil as (@Sendable () -> Void)?)
      }
      state.isHeld = false
      defer { state.wake = nil }
      return (state.data, state.wake)
    }
    guard let kept else { return .taken }
    if let wake { pieces.flow.open(wake: wake) }
    if !kept.isEmpty {
      // What was kept until somebody came goes first.
      let reception = kept.withUnsafeBytes { pieces.receive($0) }
      guard case .taken = reception else { return reception }
      state.withLock { $0.data = Data() }
    }
    return pieces.receive(bytes)
  }

  func finish() -> TransportFailure? {
    state.withLock { $0.wake = nil }
    return core?.pieces?.flow.finish()
  }

  /// All that has come and was kept; `nil` when that is nothing.
  var data: Data? { state.withLock { $0.data.isEmpty ? nil : $0.data } }

  /// Takes all that has come and was kept, and whether it has been shown.
  func take() -> (data: Data?, isShown: Bool) {
    state.withLock { state in
      defer { state = State() }
      return (state.data.isEmpty ? nil : state.data, state.isShown)
    }
  }
}

extension RequestCore {
  /// What takes the body of a response, if somebody wants to see its pieces.
  var observedBody: ObservedBody? {
    // Of requests that are made at once, what takes the body may be chained when they run already.
    let isWanted =
      session.watching.wants(.transfers) || session.eventMonitor.hearsBodies || hasOwnMonitors
      || has(.body) || session.makesRequestsAtOnce
    return isWanted ? ObservedBody(of: self) : nil
  }

  private var hasOwnMonitors: Bool {
    has(.events) && state.withLock { !$0.extras.transferMonitors.isEmpty }
  }

  /// The body of the response for the user, as far as it was kept, told to whoever watches and has not seen it yet.
  func shown(_ body: Data?, of request: WireRequest, isKept: Bool) -> Data? {
    let (data, isShown) = (request.sink as? ObservedBody)?.take() ?? (nil, false)
    let all = data ?? body
    if isWatched, isKept, !isShown, let all, !all.isEmpty, download == nil, stream == nil { tellData(all) }
    return all
  }
}
