import Alamofire
import Foundation
import FoundationNetworking

extension Session {
  /// A session over the real engine that lives as long as the tests.
  static func real(
    configuration: URLSessionConfiguration = .af.default, startRequestsImmediately: Bool = true,
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

private let realSessions = Recorder<Session>()

/// The name of the thread that calls; the engine's is `http-engine`.
func threadName() -> String {
  let name = try? String(contentsOfFile: "/proc/thread-self/comm", encoding: .utf8)
  return name?.trimmingCharacters(in: .newlines) ?? ""
}
