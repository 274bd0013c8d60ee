import Alamofire

/// An upload that the server answers without reading it.
enum EarlyAnswer {
  struct Report: Codable {
    var status: Int?
    var code: Int?
    var message: String?
    var seconds: Double
    /// The seconds after the end in which the process should be idle.
    var secondsAfter: Double
    /// The processor time of these seconds, in milliseconds.
    var processorTimeAfter: Double
    /// Whether a later request of the session succeeds.
    var goesOn: Bool
  }

  /// Sends an upload that the server answers early, and measures the time and the idleness afterwards.
  ///
  /// - Parameter clock: A URL with a response that takes a second. Requests to it replace sleeps.
  static func run(
    _ url: String, _ options: TransportOptions, bytes: Int, clock: String
  ) async throws -> Report {
    let session = Session(transportOptions: options)
    defer { withExtendedLifetime(session) {} }
    // The first request finds out the version of HTTP, as in a program that has run for a while.
    _ = await session.request(url).serializingData().response
    var request = try URLRequest(url: url, method: .post)
    request.httpBody = Data(repeating: 0x61, count: bytes)
    let start = ContinuousClock.now
    let response = await session.request(request).serializingData().response
    let duration = ContinuousClock.now - start

    let other = Session(transportOptions: options)
    let end = ContinuousClock.now
    let used = ProcessFigures.processorTime
    _ = try await other.request(clock).validate().serializingData().value
    let after = ProcessFigures.processorTime - used
    let durationAfter = ContinuousClock.now - end
    let next = await session.request(url).serializingData().response
    return Report(
      status: response.response?.statusCode,
      code: (response.error?.underlyingError as? URLError)?.code.rawValue,
      message: response.error?.errorDescription, seconds: duration / .seconds(1),
      secondsAfter: durationAfter / .seconds(1), processorTimeAfter: after / .milliseconds(1),
      goesOn: next.response != nil)
  }
}
