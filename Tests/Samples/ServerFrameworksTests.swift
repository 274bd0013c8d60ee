import Alamofire
import HTTPTestServer
import Testing

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
    let session = Session(configuration: .af.ephemeral, interceptor: ServerFrameworksSamples.TracingAdapter())
    let spans = Mutexed<[Span.Attributes]>([])
    let weather = try await Span.$finished.withValue(spans) {
      try await session.request(server.url("/today")).validate().traced(ServerFrameworksSamples.Weather.self)
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
    let session = ServerFrameworksSamples().makeSession()
    let request = session.request(server.url("/"))
    let response = Task { await request.serializingData().response }
    await gate.waitUntilReached()
    let service = ServerFrameworksSamples.SessionService(session: session)
    try await service.run()
    #expect(await response.value.error?.isExplicitlyCancelledError == true)
    gate.open()
  }

  @Test("The storage of an application ends its session") func storage() async throws {
    let application = Application()
    await ServerFrameworksSamples().configure(application)
    try await application.storage.shutDown()
  }
}
