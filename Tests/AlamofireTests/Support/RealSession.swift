import Alamofire
import Foundation
import FoundationNetworking

extension Session {
  /// Returns a session with the engine. It is never released, because its release would end its requests.
  static func real(
    configuration: URLSessionConfiguration = .uncached, startRequestsImmediately: Bool = true,
    requestSetup: RequestSetup = .lazy, interceptor: (any RequestInterceptor)? = nil,
    eventMonitors: [any EventMonitor] = [AlamofireNotifications.onDemand],
    options: TransportOptions = TransportOptions()
  ) -> Session {
    let session = Session(
      configuration: configuration, startRequestsImmediately: startRequestsImmediately,
      requestSetup: requestSetup, interceptor: interceptor,
      eventMonitors: eventMonitors, transportOptions: options)
    realSessions.add(session)
    return session
  }
}

extension URLSessionConfiguration {
  /// The default configuration without a cache, because stored responses of earlier runs must not be used.
  static var uncached: URLSessionConfiguration {
    let configuration = URLSessionConfiguration.af.default
    configuration.urlCache = nil
    return configuration
  }

  /// A configuration without a cache and with its own cookies.
  static var isolated: URLSessionConfiguration {
    let configuration = URLSessionConfiguration.af.ephemeral
    configuration.urlCache = nil
    return configuration
  }

  static func cached(by cache: URLCache?, _ policy: URLRequest.CachePolicy = .useProtocolCachePolicy)
    -> URLSessionConfiguration
  {
    let configuration = URLSessionConfiguration.af.default
    configuration.urlCache = cache
    configuration.requestCachePolicy = policy
    return configuration
  }
}

private let realSessions = Recorder<Session>()

/// Returns the name of the current thread. The engine's is `http-engine`.
func threadName() -> String {
  let name = try? String(contentsOfFile: "/proc/thread-self/comm", encoding: .utf8)
  return name?.trimmingCharacters(in: .newlines) ?? ""
}
