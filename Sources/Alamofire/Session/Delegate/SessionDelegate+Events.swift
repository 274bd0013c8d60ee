import Synchronization

extension SessionDelegate {
  /// The events for which a delegate is called.
  ///
  /// Each event costs a call on the session's ``Session/rootQueue``; the request waits for the calls that decide.
  /// Some events need further objects: heads, metrics, proposed responses. A delegate that limits its events leaves
  /// the others as fast as without a delegate.
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

    /// Makes a set of events.
    ///
    /// - Parameter rawValue: One bit for each event.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Challenges of connections: a server presents its certificates, or requests a client certificate.
    public static let trust = Events(rawValue: 1)
    /// Challenges of responses: a server requires credentials.
    public static let authentication = Events(rawValue: 2)
    /// Redirects that are about to be followed.
    public static let redirects = Events(rawValue: 4)
    /// Responses that are about to be stored.
    public static let caching = Events(rawValue: 8)
    /// All other events of tasks: received heads and bodies, sent bytes, requested body streams, downloaded files,
    /// metrics, waiting for a network, the end.
    public static let transfers = Events(rawValue: 16)
    /// Everything.
    public static let all: Events = [.trust, .authentication, .redirects, .caching, .transfers]
  }

  /// The events for which the methods of this delegate have to be called. Default: ``Events/all`` in a subclass.
  ///
  /// The delegate may be called for more events, in particular if the session has monitors, because the base class
  /// calls these. The end of the session is always reported. The property may be changed at any time, on any thread; a
  /// request mostly uses its value at the time of the event. Earlier decisions about servers, and open connections, are
  /// kept. The property has no effect unless the delegate is a subclass.
  public final var wantedEvents: Events {
    get { Events(rawValue: wanted.load(ordering: .relaxed)) }
    set { wanted.store(newValue.rawValue, ordering: .relaxed) }
  }
}
