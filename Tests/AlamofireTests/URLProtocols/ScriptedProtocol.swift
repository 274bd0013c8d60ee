import Alamofire
import Foundation
import FoundationNetworking
import Synchronization

/// The script of a ``ScriptedProtocol``, and a record of its calls.
final class ProtocolScript: Sendable {
  typealias Step = @Sendable (ScriptedProtocol, any URLProtocolClient) -> Void

  let host = "h\(UUID().uuidString.lowercased()).test"
  let calls = Recorder<URLRequest>()
  let started = Recorder<URLRequest>()
  let stopped = Recorder<Int>()
  let released = Recorder<Int>()
  let start: Step
  /// Called before the class accepts a request.
  let accept: @Sendable () -> Void

  init(accept: @escaping @Sendable () -> Void = {}, _ start: @escaping Step) {
    self.start = start
    self.accept = accept
    scripts.withLock { $0[host] = self }
  }

  var url: String { "https://\(host)/people" }

  fileprivate static func script(for request: URLRequest) -> ProtocolScript? {
    scripts.withLock { $0[request.url?.host ?? ""] }
  }
}

private let scripts = Mutex<[String: ProtocolScript]>([:])

/// A `URLProtocol` that performs the script of the host of its request. It accepts no other requests.
final class ScriptedProtocol: URLProtocol {
  override class func canInit(with request: URLRequest) -> Bool {
    guard let script = ProtocolScript.script(for: request) else { return false }
    script.calls.add(request)
    script.accept()
    return true
  }

  deinit { ProtocolScript.script(for: request)?.released.add(1) }

  override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

  override func startLoading() {
    guard let script = ProtocolScript.script(for: request), let client else { return }
    script.started.add(request)
    script.start(self, client)
  }

  override func stopLoading() {
    ProtocolScript.script(for: request)?.stopped.add(1)
  }

  func respond(_ client: any URLProtocolClient, _ status: Int = 200, _ fields: [String: String] = [:]) {
    guard let url = request.url,
      let response = HTTPURLResponse(
        url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: fields)
    else { return }
    client.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
  }

  func load(_ client: any URLProtocolClient, _ text: String) {
    client.urlProtocol(self, didLoad: Data(text.utf8))
  }

  func finish(_ client: any URLProtocolClient) {
    client.urlProtocolDidFinishLoading(self)
  }
}

extension Session {
  /// Returns a session with ``ScriptedProtocol``. Other requests are sent to the fake, or to the engine.
  static func scripted(
    fake: FakeTransport? = nil, timeout: TimeInterval = 60, interceptor: (any RequestInterceptor)? = nil,
    startRequestsImmediately: Bool = true, options: TransportOptions = TransportOptions()
  ) -> Session {
    let configuration = URLSessionConfiguration.af.default
    configuration.protocolClasses = [ScriptedProtocol.self] + (configuration.protocolClasses ?? [])
    configuration.timeoutIntervalForRequest = timeout
    let session =
      if let fake {
        Session(
          configuration: configuration, engine: Engine(transport: fake),
          startRequestsImmediately: startRequestsImmediately, interceptor: interceptor,
          transportOptions: options)
      } else {
        Session(
          configuration: configuration, startRequestsImmediately: startRequestsImmediately,
          interceptor: interceptor, transportOptions: options)
      }
    scriptedSessions.add(session)
    return session
  }
}

private let scriptedSessions = Recorder<Session>()
