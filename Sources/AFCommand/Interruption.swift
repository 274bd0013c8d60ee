import Foundation
import Glibc

/// SIGINT and SIGTERM while a request is sent. The first one cancels the request, so that what came is kept: sessions,
/// cookies and the HTTP archive. A second one ends the process at once.
package final class Interruption: Sendable {
  private struct State {
    var sources: [any DispatchSourceSignal] = []
    var cancel: (@Sendable () -> Void)?
    var signal: Int32?
  }

  private let isProcess: Bool
  private let state = Mutex(State())

  /// Makes an observer.
  ///
  /// - Parameter isProcess: Whether the signals of this process are observed; tests call ``interrupt(_:)``.
  package init(isProcess: Bool = false) { self.isProcess = isProcess }

  /// The signal that has ended the request.
  package var signal: Int32? { state.withLock { $0.signal } }

  /// The exit status of a request that a signal has ended.
  var exitCode: ExitCode? {
    switch signal {
    case nil: nil
    case SIGTERM: .terminated
    default: .interrupted
    }
  }

  /// Observes the signals from now on.
  func onSignal(cancel: @escaping @Sendable () -> Void) {
    let isLate = state.withLock { state in
      state.cancel = cancel
      if isProcess, state.sources.isEmpty { state.sources = [SIGINT, SIGTERM].compactMap { source($0) } }
      return state.signal != nil
    }
    if isLate { cancel() }
  }

  /// Called when the request has ended. Its session is released with it.
  func requestEnded() { state.withLock { $0.cancel = nil } }

  /// Makes the source of a signal. A signal that is ignored, such as that of a job in the background, stays ignored.
  private func source(_ number: Int32) -> (any DispatchSourceSignal)? {
    var action = sigaction()
    sigaction(number, nil, &action)
    if unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == Self.ignored { return nil }
    Glibc.signal(number, SIG_IGN)
    // A queue of its own, because the main queue waits for the response.
    let source = DispatchSource.makeSignalSource(signal: number, queue: DispatchQueue(label: "af.signals"))
    source.setEventHandler { [weak self] in self?.interrupt(number) }
    let isRegistered = DispatchSemaphore(value: 0)
    source.setRegistrationHandler { isRegistered.signal() }
    source.resume()
    // Until then a signal would be ignored.
    isRegistered.wait()
    return source
  }

  private static let ignored = unsafeBitCast(SIG_IGN, to: Int.self)

  /// Cancels the request as a signal does.
  package func interrupt(_ number: Int32) {
    let (isFirst, cancel) = state.withLock { state in
      defer { state.signal = state.signal ?? number }
      return (state.signal == nil, state.cancel)
    }
    guard isFirst else { return end(number) }
    cancel?()
  }

  /// Ends the process by the signal, as shells expect it: a loop ends with the program that Ctrl-C has ended.
  package func end(_ number: Int32) {
    Glibc.signal(number, SIG_DFL)
    // Sent to this thread, so that it ends here. Sent to the process, the signal may be taken by another thread, and
    // this one could end the process with a status first.
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, number)
    pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    raise(number)
  }
}
