import Alamofire

// Samples of ServerSide.md; see `SampleTests`.

private func show(_ value: Any) {}

private func makeSession() -> Session {
  let configuration = URLSessionConfiguration.af.ephemeral
  configuration.urlCache = nil  // several users must not share responses
  configuration.httpCookieStorage = nil
  configuration.timeoutIntervalForRequest = 10
  configuration.timeoutIntervalForResource = 30
  configuration.httpMaximumConnectionsPerHost = 32

  var options = TransportOptions()
  options.connectTimeout = .seconds(3)
  options.bodySizeLimit = 10_000_000
  options.redirectLimit = 5
  return Session(configuration: configuration, transportOptions: options)
}

private func guarded() {
  var options = TransportOptions()
  options.allowedSchemes = ["http", "https"]  // no file: and no data:
  options.refusesPrivateAddresses = true
  options.bodySizeLimit = 1_000_000
  options.decodingRatioLimit = 100  // against decompression bombs
  options.redirectLimit = 3
  options.timeLimits.total = .seconds(10)
  options.proxy = .none
  let session = Session(transportOptions: options)
  show(session)
}

private func shutdown(session: Session) async {
  await withCheckedContinuation { continuation in
    session.cancelAllRequests(completingOnQueue: .global()) { continuation.resume() }
  }
}
