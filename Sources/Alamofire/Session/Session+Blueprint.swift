import Foundation
import FoundationNetworking
import HTTPWire

extension Session {
  /// All that a session is made from, as its initialisers hand it on. Only they can make one.
  public struct Blueprint: Sendable {
    let configuration: URLSessionConfiguration
    let engine: Engine
    let watching: SessionWatching
    let rootQueue: DispatchQueue
    let startRequestsImmediately: Bool
    let requestSetup: RequestSetup
    let requestQueue: DispatchQueue?
    let serializationQueue: DispatchQueue?
    let interceptor: (any RequestInterceptor)?
    let serverTrustManager: ServerTrustManager?
    let transportOptions: TransportOptions
  }
}
