package import HTTPWire

/// The reason for which the engine gives up a transfer, where libcurl only knows that a callback refused or that the
/// connection failed. Pure.
package enum AbortReason: Sendable {
  /// An address of the host was refused because it is not public.
  case privateAddress
  /// The server asked for a client certificate that is still to be chosen.
  case identityRequested
  case failure(TransportFailure)

  /// The end of a transfer, as libcurl reports it.
  package enum Ending: Equatable, Sendable { case completed, cannotConnect, failed }

  /// The highest reason counts.
  private var rank: Int {
    switch self {
    case .privateAddress: 0
    case .identityRequested: 1
    case .failure: 2
    }
  }

  package var failure: TransportFailure? {
    if case .failure(let failure) = self { failure } else { nil }
  }

  /// Whether the request must not be sent. Another address of the host may be public.
  package var forbidsRequest: Bool {
    switch self {
    case .privateAddress: false
    case .identityRequested, .failure: true
    }
  }

  /// Returns the reason that counts after `next` was found: the higher one, or the later one of two of the same rank.
  package static func highest(_ previous: AbortReason?, _ next: AbortReason) -> AbortReason {
    guard let previous, previous.rank > next.rank else { return next }
    return previous
  }

  /// Whether this is the cause of an end.
  package func isCause(of ending: Ending) -> Bool {
    switch self {
    // libcurl tries the other addresses, and one of them may have answered.
    case .privateAddress: ending == .cannotConnect
    // Some servers proceed without a certificate. Others end the handshake, with various alerts.
    case .identityRequested: ending != .completed
    case .failure: true
    }
  }
}
