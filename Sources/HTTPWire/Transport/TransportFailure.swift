package import FoundationEssentials

/// The reason why a transfer ended without a response that can be used.
package struct TransportFailure: Error, Sendable {
  /// The cause, in terms that a program can act on.
  package enum FailureKind: Sendable, Equatable, CaseIterable {
    /// The surrounding task was cancelled.
    case cancelled
    /// The session was released or invalidated.
    case shutDown
    case timedOut
    case badURL
    case unsupportedURL
    case cannotFindHost
    case cannotFindProxy
    case cannotConnectToProxy
    /// The proxy wants a name and a password, or others than it was given.
    case proxyAuthenticationRequired
    case cannotConnectToHost
    /// The host has private addresses only, and the options refuse them.
    case addressRefused
    /// The alternative service cannot be used: it does not speak HTTP/2, it refuses requests, or a proxy is used. It
    /// has not processed the request.
    case alternativeUnfit
    /// The machine itself has no network over which the host could be found or reached.
    case notConnected
    case connectionLost
    case badServerResponse
    case secureConnectionFailed
    case certificateUntrusted
    case certificateHasUnknownRoot
    case certificateHasBadDate
    case certificateNotYetValid
    /// The server's certificates were refused by an evaluator or a delegate; ``TransportFailure/cause`` is its error.
    case trustRefused
    /// The server's certificates have to be evaluated by code that must not run in a handshake;
    /// ``TransportFailure/chain`` holds them. Nothing of the request was sent.
    case trustUndecided
    /// The server asks for a certificate, which the delegate wants to choose. The request was not sent, or the server
    /// does not process it without the certificate.
    case identityUndecided
    case clientCertificateRejected
    case clientCertificateRequired
    case cannotDecodeContent
    case dataLengthExceedsMaximum
    case cannotReadBody
    case fileDoesNotExist
    case fileIsDirectory
    case noPermissionToReadFile
    case cannotCreateFile
    case cannotWriteFile
    /// The part of an earlier download does not fit the response, so that the download has to begin again.
    case cannotContinue
    case resourceUnavailable
    case userAuthenticationRequired
    /// The handshake of a WebSocket has a login by NTLM or Negotiate, which is not supported there.
    case unsupportedFeature
    /// An unexpected failure; the message contains the system's own.
    case unknown
  }

  /// The host that this machine could not find or connect to, if that is the failure.
  package enum UnreachedHost: Sendable, Equatable {
    /// The host of the request.
    case origin
    /// Another one, such as a proxy.
    case other(String)
    /// None: a proxy or another server has refused, or no network was used.
    case none
  }

  package let kind: FailureKind
  /// One reference, because the size of a thrown error adds to the frame of every calling task.
  private let details: Details

  private final class Details: Sendable {
    let message: String
    let metrics: TransferMetrics?
    let cause: (any Error)?
    let chain: PresentedChain?
    let partial: PartialResponse?
    let phase: TransportOptions.TimeLimits.Phase?
    let unreached: UnreachedHost

    init(
      message: String, metrics: TransferMetrics?, cause: (any Error)?,
      chain: PresentedChain?, partial: PartialResponse?, phase: TransportOptions.TimeLimits.Phase?,
      unreached: UnreachedHost
    ) {
      self.message = message
      self.metrics = metrics
      self.cause = cause
      self.chain = chain
      self.partial = partial
      self.phase = phase
      self.unreached = unreached
    }
  }

  /// The part of a response that arrived before the failure.
  package struct PartialResponse: Sendable {
    package let head: ResponseHead
    /// The decoded bytes that were collected; `nil` if there were none, or if a ``BodySink`` took them.
    package let body: Data?

    package init(head: ResponseHead, body: Data?) {
      self.head = head
      self.body = body
    }
  }

  /// The message: the failure and its remedy, in one sentence or two, without any secret of the request.
  package var message: String { details.message }
  /// The metrics until the failure, if the transfer had begun.
  package var metrics: TransferMetrics? { details.metrics }
  /// The error that the request ends with instead of this one, if there is one.
  package var cause: (any Error)? { details.cause }
  /// The certificates of the server, if they have to be evaluated.
  package var chain: PresentedChain? { details.chain }
  /// The head and the bytes that arrived before the failure; `nil` if no complete head had arrived.
  package var partial: PartialResponse? { details.partial }
  /// The phase in which the transfer timed out; `nil` for other failures, and if it is not known.
  package var phase: TransportOptions.TimeLimits.Phase? { details.phase }
  /// The host that could not be reached, which says whether the network of this machine may be the cause.
  package var unreached: UnreachedHost { details.unreached }

  package init(
    _ kind: FailureKind, _ message: String, metrics: TransferMetrics? = nil,
    cause: (any Error)? = nil, chain: PresentedChain? = nil, partial: PartialResponse? = nil,
    phase: TransportOptions.TimeLimits.Phase? = nil, unreached: UnreachedHost = .origin
  ) {
    self.kind = kind
    details = Details(
      message: message, metrics: metrics, cause: cause, chain: chain, partial: partial,
      phase: phase, unreached: unreached)
  }

  /// Returns the failure with text appended to its message.
  package func with(addition: String) -> TransportFailure {
    guard !addition.isEmpty else { return self }
    return TransportFailure(
      kind, message + addition, metrics: metrics, cause: cause, chain: chain, phase: phase,
      unreached: unreached)
  }

  /// Returns the failure with metrics.
  package func with(metrics: TransferMetrics?) -> TransportFailure {
    TransportFailure(
      kind, message, metrics: metrics, cause: cause, chain: chain, partial: partial,
      phase: phase, unreached: unreached)
  }

  /// Returns this failure with the part of the response that arrived before it.
  package func with(partial: PartialResponse) -> TransportFailure {
    TransportFailure(
      kind, message, metrics: metrics, cause: cause, chain: chain, partial: partial,
      phase: phase, unreached: unreached)
  }

  /// Returns this failure to reach a host.
  package func with(unreached: UnreachedHost) -> TransportFailure {
    TransportFailure(
      kind, message, metrics: metrics, cause: cause, chain: chain, partial: partial,
      phase: phase, unreached: unreached)
  }

  /// Returns this failure of a transfer that timed out in a phase.
  package func with(phase: TransportOptions.TimeLimits.Phase) -> TransportFailure {
    TransportFailure(
      kind, message, metrics: metrics, cause: cause, chain: chain, partial: partial,
      phase: phase, unreached: unreached)
  }
}

/// The reason why a file cannot be read whole.
package struct FileReadingFailure: Error, Sendable, Equatable {
  package let kind: TransportFailure.FailureKind
  /// The reason, for the parentheses of a sentence.
  package let reason: String

  package init(_ kind: TransportFailure.FailureKind, _ reason: String) {
    self.kind = kind
    self.reason = reason
  }
}
