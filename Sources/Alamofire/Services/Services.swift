import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire

/// The services of a session that its hops use. They name neither the session nor its requests.
final class Services: Sendable {
  let settings: SessionSettings
  /// The cookies of the configuration's storage; `nil` without one.
  let cookies: SessionCookies?
  let cache: SessionCache
  let sharedTransfers = SharedTransfers()
  /// Decides about servers; `nil` for the trust store.
  let trust: TrustService?
  let authentication: AuthenticationService
  /// The credentials that servers have accepted.
  let credentials = CredentialMemory()
  /// Whether requests wait for a network instead of failing, as requests of background sessions always do.
  let waitsForConnectivity: Bool
  let engine: Engine

  /// Makes the services of a session. The configuration shows the cache that the session uses from now on.
  init(
    of configuration: URLSessionConfiguration, isBackground: Bool, options: TransportOptions,
    trust: TrustService?, engine: Engine
  ) {
    self.engine = engine
    self.trust = trust
    settings = SessionSettings(configuration, options: options, trust: trust)
    let (settings, turn) = (settings, engine.turn)
    cookies = configuration.httpCookieStorage.map {
      SessionCookies($0, areSent: settings.sendsCookies, policy: settings.cookiePolicy, turn: turn)
    }
    if let cache = SessionCache.inPlace(of: configuration.urlCache) { configuration.urlCache = cache }
    cache = SessionCache(configuration)
    authentication = AuthenticationService(storage: configuration.urlCredentialStorage)
    waitsForConnectivity = settings.waitsForConnectivity || isBackground
  }

  var transport: any Transport { engine.transport }
  var network: any NetworkSource { engine.network }
  /// Runs tasks on the thread of the engine; `nil` is the pool.
  var executor: (any TaskExecutor)? { engine.executor }
  /// Runs work on the thread of the engine; `nil` if there is none.
  var enqueue: (@Sendable (any LoopWork) -> Void)? { engine.enqueue }
  var byteStreams: (any ByteStreamTransport)? { engine.byteStreams }
}
