import Alamofire

let metrics = Step("Where the time goes") { stage in
  var options = TransportOptions()
  options.trustStore = .pem(stage.authority)
  let session = Session(transportOptions: options)
  let response = await session.request(stage.secureServer.url("/redirect-to?url=/delay/0.02"))
    .serializingData().response
  guard let metrics = response.metrics else { throw Surprise("There are no metrics.") }

  let waterfall = Waterfall(interval: metrics.taskInterval)
  for transaction in metrics.transactionMetrics {
    stage.say("\(transaction.request.httpMethod ?? "") \(transaction.request.url?.absoluteString ?? "")")
    let phases = [
      ("look-up", transaction.domainLookupStartDate, transaction.domainLookupEndDate),
      (
        "connection", transaction.connectStartDate,
        transaction.secureConnectionStartDate ?? transaction.connectEndDate
      ),
      ("TLS handshake", transaction.secureConnectionStartDate, transaction.secureConnectionEndDate),
      ("waiting", transaction.requestStartDate, transaction.responseStartDate),
      ("response", transaction.responseStartDate, transaction.responseEndDate),
    ]
    for (name, start, end) in phases {
      if let start, let end { stage.say(waterfall.line(name, start, end)) }
    }
  }
}

/// Bars that show when the phases begin and end.
private struct Waterfall {
  private static let width = 40
  let interval: DateInterval

  func line(_ name: String, _ start: Date, _ end: Date) -> String {
    let first = min(Self.width - 1, cell(start))
    let bar = String(repeating: " ", count: first) + String(repeating: "█", count: max(1, cell(end) - first))
    let time = String(format: "%7.1f ms", end.timeIntervalSince(start) * 1000)
    return "  " + name.padding(toLength: 15, withPad: " ", startingAt: 0) + time + "  " + bar
  }

  private func cell(_ date: Date) -> Int {
    guard interval.duration > 0 else { return 0 }
    let share = date.timeIntervalSince(interval.start) / interval.duration
    return Int(share * Double(Self.width))
  }
}
