import Synchronization

extension SessionDelegate {
  /// What a delegate is called for.
  ///
  /// Each event costs a call on the session's ``Session/rootQueue``, for which the request waits where the delegate has
  /// to decide, and some have to be made first: heads, metrics, proposed responses. A delegate that says which it wants
  /// leaves everything else as fast as without a delegate.
  ///
  /// ```swift
  /// final class Gatekeeper: SessionDelegate, @unchecked Sendable {
  ///   init() {
  ///     super.init()
  ///     wantedEvents = .trust
  ///   }
  ///
  ///   override func urlSession(
  ///     _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
  ///     completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ///   ) {
  ///     completionHandler(.performDefaultHandling, nil)
  ///   }
  /// }
  /// ```
  public struct Events: OptionSet, Sendable {
    /// One bit for each event.
    public let rawValue: UInt8

    /// - Parameter rawValue: One bit for each event.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Challenges of connections: a server shows its certificates, or wants one of the client.
    public static let trust = Events(rawValue: 1)
    /// Challenges of responses: a server wants a name and a password.
    public static let authentication = Events(rawValue: 2)
    /// Redirects that are about to be followed.
    public static let redirects = Events(rawValue: 4)
    /// Responses that are about to be stored.
    public static let caching = Events(rawValue: 8)
    /// What happens to tasks otherwise: heads and bodies as they come, what was sent, streams that are needed, files
    /// that are there, metrics, waiting for a network, the end.
    public static let transfers = Events(rawValue: 16)
    /// Everything.
    public static let all: Events = [.trust, .authentication, .redirects, .caching, .transfers]
  }

  /// What the methods of this delegate have to be called for. Default: ``Events/all`` in a subclass.
  ///
  /// The delegate may be called for more, above all when the session has monitors, which hear of everything through it;
  /// the end of the session is always told. May be changed at any time, from any thread; what counts for a request is
  /// mostly what is wanted when the event comes. Servers that were judged, and connections that are open, stay as they
  /// are. Without effect on a delegate that is no subclass.
  public final var wantedEvents: Events {
    get { Events(rawValue: wanted.load(ordering: .relaxed)) }
    set { wanted.store(newValue.rawValue, ordering: .relaxed) }
  }
}
