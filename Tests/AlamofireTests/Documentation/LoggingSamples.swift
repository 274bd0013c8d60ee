import Alamofire
import Foundation

// Samples of the comments and the guide on logging; see `SampleTests`.

private func redactionSample() {
  let redaction = Redaction(additionalNames: ["X-Customer", "iban"])
  print(redaction.url("https://example.com/pay?iban=DE02&amount=5"))
}

private func readableTextSample() {
  print(ReadableText.line("price\u{1B}[2J"))
}

private func readableStreamSample(chunks: AsyncStream<Data>) async {
  var stream = ReadableStream()
  for await chunk in chunks { FileHandle.standardOutput.write(stream.add(chunk)) }
  FileHandle.standardOutput.write(stream.finish())
}

private func logSample() {
  let session = Session(eventMonitors: [RequestLog()])
  _ = session
}

private func loggerSample(logger: Logger) {
  let log = RequestLog(level: .debug, bodyLimit: 200) { entry in
    logger.log(
      level: Logger.Level(rawValue: entry.level.rawValue) ?? .info, "\(entry.message)",
      metadata: ["request": "\(entry.requestID)"])
  }
  _ = log
}

private func recorderSample() async throws {
  let recorder = RequestRecorder()
  let session = Session(eventMonitors: [recorder])
  _ = await session.request("https://example.com/").serializingData().response
  try recorder.har().write(to: URL(fileURLWithPath: "requests.har"))
  try Data(recorder.timeline().utf8).write(to: URL(fileURLWithPath: "requests.html"))
}

private func fieldsSample(response: AFDataResponse<Data>) {
  for transaction in response.metrics?.transactionMetrics ?? [] {
    for field in transaction.responseFields { print("\(field.name): \(field.value)") }
  }
}

private func fileLogSample() throws {
  let file = try FileHandle(forWritingTo: URL(fileURLWithPath: "/var/log/requests.log"))
  let log = RequestLog(level: .warning) { entry in
    try? file.write(contentsOf: Data("\(entry)\n".utf8))
  }
  let session = Session(eventMonitors: [log])
  _ = session
}

private func singleRequestSample(session: Session) async {
  let log = RequestLog(level: .debug, bodyLimit: 1_000)
  _ = await session.request("https://example.com/users").eventMonitor(log).serializingData().response
}

private enum TracingSample {
  enum Trace {
    @TaskLocal static var id: String?
  }

  struct TraceHeader: RequestInterceptor {
    func adapt(
      _ urlRequest: URLRequest, for session: Session,
      completion: @escaping @Sendable (Result<URLRequest, any Error>) -> Void
    ) {
      var request = urlRequest
      if let id = Trace.id { request.setValue(id, forHTTPHeaderField: "X-Trace-ID") }
      completion(.success(request))
    }
  }

  static func run(session: Session) async throws {
    let data = try await Trace.$id.withValue("4bf92f35") {
      try await session.request("https://example.com/", interceptor: TraceHeader()).serializingData().value
    }
    print(data.count)
  }
}

private func failureSample(url: String) async {
  let response = await AF.request(url).validate().serializingDecodable([String: Int].self).response
  if let error = response.error {
    print(error)
    print(response)
    debugPrint(response)
  }
}

private func protectedSample(session: Session) {
  let request = session.request("https://example.com/")
    .transportOptions { $0.protectedHeaders = ["X-Customer"] }
  _ = request
}

private func wireSample() {
  let session = Session(eventMonitors: [WireLog()])
  _ = session
}
