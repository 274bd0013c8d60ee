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
