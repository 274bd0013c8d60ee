import Alamofire

// Samples of the comments on reachability; see `SampleTests`.

private func show(_ value: Any) {}

private func reachability() {
  let manager = NetworkReachabilityManager(host: "example.com")
  manager?.startListening { status in
    switch status {
    case .reachable(.ethernetOrWiFi): print("on a network")
    case .reachable(.cellular): print("on a mobile network")
    case .notReachable: print("offline")
    case .unknown: print("not known yet")
    }
  }
}

private func offline() {
  let session = Session(interceptor: .offlineRetrier(maximumWait: .seconds(30)))
  show(session)
}

private func interfaces() {
  let session = Session(interceptor: .offlineRetrier(prohibitedInterfaceTypes: [.cellular]))
  show(session)
}

private func managed() {
  let retrier = OfflineRetrier(
    monitor: NetworkReachabilityManager(host: "10.0.0.7"), maximumWait: .seconds(30))
  show(retrier)
}

private func waiting() {
  let configuration = URLSessionConfiguration.af.default
  configuration.waitsForConnectivity = true
  let session = Session(configuration: configuration)
  show(session)
}
