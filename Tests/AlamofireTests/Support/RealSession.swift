import Alamofire
import Foundation
import FoundationNetworking

extension Session {
  /// A session over the real engine that lives as long as the tests.
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
  /// The default one without a cache: what earlier runs have left in the program's must not answer tests.
  static var uncached: URLSessionConfiguration {
    let configuration = URLSessionConfiguration.af.default
    configuration.urlCache = nil
    return configuration
  }

  /// A configuration with neither a shared cache nor shared cookies.
  static var solitary: URLSessionConfiguration {
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

/// The name of the thread that calls; the engine's is `http-engine`.
func threadName() -> String {
  let name = try? String(contentsOfFile: "/proc/thread-self/comm", encoding: .utf8)
  return name?.trimmingCharacters(in: .newlines) ?? ""
}
