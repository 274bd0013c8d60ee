import Alamofire

// Samples of the comments on limits and of LimitsAndTimeouts.md; see `SampleTests`.

private func ofSession() -> Session {
  var options = TransportOptions()
  options.timeLimits.nameLookup = .seconds(2)
  options.timeLimits.connect = .seconds(3)
  options.timeLimits.firstByte = .seconds(10)
  let session = Session(transportOptions: options)
  return session
}

private func ofRequest(_ session: Session, _ url: URL) {
  let request = session.request(url).transportOptions { $0.timeLimits.total = .seconds(30) }
  request.resume()
}

private func phase(_ session: Session, _ url: URL) async {
  let response = await session.request(url).serializingData().response
  if let error = response.error?.underlyingError as? URLError, error.timedOutPhase == .connect {
    print("no connection in time: \(error.localizedDescription)")
  }
}

private func requests() -> Session {
  var options = TransportOptions()
  options.requestLimits.perHost = 4
  options.requestLimits.perSession = 20
  options.requestLimits.ratePerHost = .init(perSecond: 10, burst: 5)
  let session = Session(transportOptions: options)
  return session
}

private func priority(_ session: Session) {
  let request = session.download("https://example.com/archive.zip")
  request.priority = URLSessionTask.lowPriority
}

private func bandwidth() -> Session {
  var options = TransportOptions()
  options.sessionBandwidth = .init(download: 1_000_000, upload: 250_000)
  let session = Session(transportOptions: options)
  return session
}

private func snapshot(_ session: Session) async {
  print(await session.transportSnapshot())
}

private func hosts(_ session: Session) async {
  for host in await session.transportSnapshot().hosts {
    print(host.origin, host.openConnections, host.idleConnections)
    for request in host.waiting { print(request.url, request.priority, request.reason) }
    for request in host.running { print(request.url, request.bytesReceived, request.isThrottled) }
  }
}
