import Alamofire

/// Requests that are started at once.
enum Batch {
  /// Starts `count` requests, then waits for all.
  static func run(
    _ count: Int, _ make: (Int) -> DataRequest
  ) async -> [DataResponse<Data, AFError>] {
    let tasks = (0..<count).map { make($0).validate().serializingData() }
    var responses: [DataResponse<Data, AFError>] = []
    for task in tasks { responses.append(await task.response) }
    return responses
  }
}

extension Sequence where Element == DataResponse<Data, AFError> {
  /// The errors, each kind once.
  var failures: Set<String> { Set(compactMap { $0.error.map { "\($0)" } }) }
}

extension DataResponse {
  /// The duration of the last transfer, in seconds.
  var duration: TimeInterval {
    guard let start = transaction?.fetchStartDate, let end = transaction?.responseEndDate else { return 0 }
    return end.timeIntervalSince(start)
  }

  /// The metrics of the last transfer.
  var transaction: URLSessionTaskTransactionMetrics? { metrics?.transactionMetrics.last }
}
