import Alamofire

// Samples of Sessions.md; see `SampleTests`.

private func show(_ value: Any) {}

private final class API: Sendable {
  let session: Session

  init() {
    let configuration = URLSessionConfiguration.af.default
    configuration.timeoutIntervalForRequest = 10  // seconds without a byte
    configuration.timeoutIntervalForResource = 60  // seconds in all
    configuration.headers.add(.userAgent("Weather/2.0"))

    var options = TransportOptions()
    options.bodySizeLimit = 10_000_000
    options.connectTimeout = .seconds(3)

    session = Session(configuration: configuration, transportOptions: options)
  }
}

private func options(session: Session) {
  let request = session.request("https://example.com/report")
    .transportOptions {
      $0.bodySizeLimit = 100_000_000
      $0.timeLimits.total = .seconds(300)
    }
  show(request)
}

private func versions() {
  var options = TransportOptions()
  options.httpVersions = .http1Only
  let session = Session(transportOptions: options)
  show(session)
}

private func all(session: Session) async {
  session.withAllRequests { requests in print(requests.count) }
  session.cancelAllRequests(completingOnQueue: .global()) { print("cancelled") }
  print(await session.transportSnapshot())
}

private func reachability(queue: DispatchQueue) {
  let manager = NetworkReachabilityManager(host: "example.com")
  manager?.startListening(onQueue: queue) { status in
    switch status {
    case .reachable(let connection): print("reachable by \(connection)")
    case .notReachable: print("no route")
    case .unknown: print("unknown")
    }
  }
}
