import Alamofire

// Samples of MonitorsAndMetrics.md; see `SampleTests`.

private func show(_ value: Any) {}

private struct AccessLog: EventMonitor {
  let queue = DispatchQueue(label: "access-log")

  func requestDidFinish(_ request: Request) {
    let seconds = request.metrics?.taskInterval.duration ?? 0
    print(request.description, String(format: "%.3f s", seconds))
  }

  func requestIsRetrying(_ request: Request) {
    print(request.description, "attempt", request.retryCount + 1)
  }
}

private func monitors() {
  let session = Session(eventMonitors: [AccessLog(), AlamofireNotifications()])
  let request = session.request("https://example.com/").eventMonitor(AccessLog())
  show((session, request))
}

private func closures() {
  let monitor = ClosureEventMonitor(queue: .global())
  monitor.requestDidCreateURLRequest = { request, urlRequest in print(urlRequest.headers) }
  let session = Session(eventMonitors: [monitor])
  show(session)
}

private func notifications() {
  let observer = NotificationCenter.default.addObserver(
    forName: Request.didFinishNotification, object: nil, queue: nil
  ) { notification in
    print(notification.request?.description ?? "")
  }
  show(observer)
}

private func metrics(session: Session) async {
  let response = await session.request("https://example.com/").serializingData().response
  print(response.metrics?.taskInterval.duration ?? 0, "seconds")
  for transaction in response.metrics?.transactionMetrics ?? [] {
    print(transaction.request.url?.absoluteString ?? "", transaction.networkProtocolName ?? "")
    print(transaction.remoteAddress ?? "", transaction.isReusedConnection)
    print(transaction.negotiatedTLSProtocolVersion?.description ?? "no TLS")
    if let start = transaction.requestEndDate, let end = transaction.responseStartDate {
      print("waited", end.timeIntervalSince(start))
    }
  }
}
