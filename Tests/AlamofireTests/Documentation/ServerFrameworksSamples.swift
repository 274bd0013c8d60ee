import Alamofire
import HTTPTestServer
import Testing

// Samples of ServerFrameworks.md; see `SampleTests`. The types of other packages are in `ServerPackageShapes.swift`.

private struct Weather: Codable, Sendable {
  var sky: String
}

private func makeSession() -> Session { Session(configuration: .af.ephemeral) }

/// The samples are run with a server of the tests.
@Suite("Guide to server frameworks", .timeLimit(.minutes(1))) struct ServerFrameworksGuideTests {
  @Test("A log writes to a logger what its level asks for") func logs() async throws {
    let server = try HTTPTestServer()
    for (level, count) in [(Logger.Level.info, 1), (.debug, 3), (.error, 0)] {
      var logger = Logger(label: "weather")
      logger.logLevel = level
      let log = RequestLog(to: logger)
      let session = Session(configuration: .af.ephemeral, eventMonitors: [log])
      _ = await session.request(server.url("/get")).serializingData().response
      session.eventMonitor.queue.sync {}
      log.queue.sync {}
      let lines = logger.lines.all.withLock { $0 }
      #expect(lines.count == count, "\(level): \(lines)")
      #expect(lines.allSatisfy { $0.hasSuffix("[http.request.id]") })
    }
  }

  @Test("A request within a span carries its context, and the span its status") func traces() async throws {
    let server = try HTTPTestServer()
    server.enqueue(.json(#"{"sky": "clear"}"#))
    let session = Session(configuration: .af.ephemeral, interceptor: TracingAdapter())
    let spans = Mutexed<[Span.Attributes]>([])
    let weather = try await Span.$finished.withValue(spans) {
      try await session.request(server.url("/today")).validate().traced(Weather.self)
    }
    #expect(weather.sky == "clear")
    #expect(try await server.takeRequest().header("traceparent") == "00-1-12-01")
    let attributes = try #require(spans.with { $0 }.first)
    #expect(attributes["http.response.status_code"] == 200)
    #expect(attributes["http.request.resend_count"] == 0)
  }

  @Test("A session that ends cancels the requests that are left") func end() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.text("late").held(by: gate))
    let session = makeSession()
    let request = session.request(server.url("/"))
    let response = Task { await request.serializingData().response }
    await gate.waitUntilReached()
    let service = SessionService(session: session)
    try await service.run()
    #expect(await response.value.error?.isExplicitlyCancelledError == true)
    gate.open()
  }

  @Test("The storage of an application ends its session") func storage() async throws {
    let application = Application()
    await configure(application)
    try await application.storage.shutDown()
  }
}

private func addRoutes(to router: Router, session: Alamofire.Session) {
  router.get("/weather") { request, context in
    try await session.request("https://weather.example.com/today")
      .validate()
      .serializingDecodable(Weather.self)
      .value
  }
}

struct WeatherSession: StorageKey {
  typealias Value = Alamofire.Session
}

func configure(_ app: Application) async {
  await app.storage.setWithAsyncShutdown(WeatherSession.self, to: makeSession()) { session in
    await session.end()
  }
}

extension Alamofire.Session {
  /// Cancels the requests that are left, and returns after their handlers were called.
  func end() async {
    await withCheckedContinuation { continuation in
      cancelAllRequests(completingOnQueue: .global()) { continuation.resume() }
    }
  }
}

struct SessionService: Service {
  let session: Alamofire.Session

  func run() async throws {
    try await gracefulShutdown()
    await session.end()
  }
}

extension RequestLog {
  /// Makes a log that writes to a logger, without what the logger's own level leaves out.
  convenience init(to logger: Logger) {
    self.init(level: logger.logLevel <= .debug ? .debug : .info) { entry in
      logger.log(
        level: Logger.Level(rawValue: entry.level.rawValue) ?? .info, "\(entry.message)",
        metadata: ["http.request.id": "\(entry.requestID)"])
    }
  }
}

private func loggedSession() {
  let session = Session(eventMonitors: [RequestLog(to: Logger(label: "weather"))])
  _ = session
}

private func loggedRequest(session: Session, context: RouterContext) async throws {
  let data = try await session.request("https://weather.example.com/today")
    .eventMonitor(RequestLog(to: context.logger))
    .serializingData().value
  _ = data
}

struct TracingAdapter: RequestInterceptor {
  func adapt(
    _ urlRequest: URLRequest, for session: Alamofire.Session,
    completion: @escaping @Sendable (Result<URLRequest, any Error>) -> Void
  ) {
    var urlRequest = urlRequest
    if let context = ServiceContext.current {
      InstrumentationSystem.instrument.inject(context, into: &urlRequest, using: URLRequestInjector())
    }
    completion(.success(urlRequest))
  }
}

struct URLRequestInjector: Injector {
  func inject(_ value: String, forKey key: String, into request: inout URLRequest) {
    request.setValue(value, forHTTPHeaderField: key)
  }
}

extension DataRequest {
  func traced<Value: Decodable & Sendable>(_ type: Value.Type) async throws -> Value {
    try await withSpan("HTTP request", ofKind: .client) { span in
      let response = await serializingDecodable(type).response
      if let status = response.response?.statusCode {
        span.attributes["http.response.status_code"] = status
      }
      span.attributes["http.request.resend_count"] = retryCount
      return try response.result.get()
    }
  }
}

private func tracedRequest() async throws {
  let session = Session(interceptor: TracingAdapter())
  let weather = try await session.request("https://weather.example.com/today").validate()
    .traced(Weather.self)
  _ = weather
}
