import Alamofire

#if IMPORTS_FOUNDATION
  import Foundation
#endif
#if IMPORTS_FOUNDATION_NETWORKING
  import FoundationNetworking
#endif

// Reachability, and requests that wait for a network.

private let url = "http://localhost"

private func listening() {
  guard let manager = NetworkReachabilityManager() else { return }
  _ = NetworkReachabilityManager(host: "localhost")
  let shared: NetworkReachabilityManager? = NetworkReachabilityManager.default
  let isListening: Bool = manager.startListening { status in
    switch status {
    case .unknown: break
    case .notReachable: break
    case .reachable(.ethernetOrWiFi): break
    case .reachable(.cellular): break
    }
  }
  manager.startListening(onQueue: .global(), onUpdatePerforming: { status in print(status) })
  let listener: NetworkReachabilityManager.Listener = { print($0) }
  manager.startListening(onUpdatePerforming: listener)
  manager.stopListening()
  print(shared as Any, isListening, manager.isReachable, manager.isReachableOnCellular)
  print(manager.isReachableOnEthernetOrWiFi, manager.reachabilityQueue, manager.flags as Any)
  let status: NetworkReachabilityManager.NetworkReachabilityStatus = manager.status
  let type: NetworkReachabilityManager.NetworkReachabilityStatus.ConnectionType = .ethernetOrWiFi
  if status == .reachable(type) || status != .notReachable { print(status) }
}

/// A subclass of the manager.
private final class Watcher: NetworkReachabilityManager, @unchecked Sendable {
  override func startListening(
    onQueue queue: DispatchQueue = .main, onUpdatePerforming listener: @escaping Listener
  ) -> Bool {
    super.startListening(onQueue: queue, onUpdatePerforming: listener)
  }

  override func stopListening() { super.stopListening() }
}

private func retriers() {
  _ = OfflineRetrier()
  _ = OfflineRetrier(maximumWait: .seconds(1))
  _ = OfflineRetrier(maximumWait: OfflineRetrier.defaultWait, isOfflineError: { $0 is URLError })
  _ = OfflineRetrier(requiredInterfaceType: .wifi)
  _ = OfflineRetrier(
    requiredInterfaceType: .wiredEthernet, maximumWait: .milliseconds(1),
    isOfflineError: OfflineRetrier.defaultIsOfflineError)
  _ = OfflineRetrier(prohibitedInterfaceTypes: [.cellular])
  _ = OfflineRetrier(prohibitedInterfaceTypes: [.loopback, .other], maximumWait: .seconds(1)) { _ in true }
  AF.request(url, interceptor: .offlineRetrier).response { _ in }
  AF.request(url, interceptor: .offlineRetrier()).response { _ in }
  AF.request(url, interceptor: .offlineRetrier(maximumWait: .seconds(1))).response { _ in }
  AF.request(url, interceptor: .offlineRetrier(requiredInterfaceType: .wifi)).response { _ in }
  AF.request(url, interceptor: .offlineRetrier(prohibitedInterfaceTypes: [.cellular])).response { _ in }
  print(OfflineRetrier.defaultURLErrorOfflineCodes.contains(.notConnectedToInternet))
}

/// A stub of responses for tests of users.
private final class Stub: URLProtocol {
  override class func canInit(with request: URLRequest) -> Bool { request.url?.host == "stub" }
  override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }
  override func startLoading() {
    guard let url = request.url,
      let response = HTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: nil)
    else { return }
    client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
    client?.urlProtocol(self, didLoad: Data("stubbed".utf8))
    client?.urlProtocolDidFinishLoading(self)
  }
  override func stopLoading() {}
}

private func stubs() {
  let configuration = URLSessionConfiguration.af.default
  configuration.protocolClasses = [Stub.self] + (configuration.protocolClasses ?? [])
  _ = Session(configuration: configuration).request("http://stub/").response { _ in }
}
