import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite("Time limits", .timeLimit(.minutes(5))) struct TimeLimitTests {
  private static let short = Duration.milliseconds(120)

  private func session(
    _ limits: TransportOptions.TimeLimits, idle: TimeInterval = 3600, total: TimeInterval = 3600,
    interceptor: (any RequestInterceptor)? = nil
  ) -> Session {
    let configuration = URLSessionConfiguration.uncached
    configuration.timeoutIntervalForRequest = idle
    configuration.timeoutIntervalForResource = total
    var options = TransportOptions()
    options.timeLimits = limits
    return Session.real(configuration: configuration, interceptor: interceptor, options: options)
  }

  private func urlError(_ response: AFDataResponse<Data?>) -> URLError? {
    response.error?.underlyingError as? URLError
  }

  @Test("The error names the phase, the limit and the host") func named() async throws {
    let silent = try UnresponsivePort()
    let session = session(.init(connect: Self.short))
    let response = await session.request("http://127.0.0.1:\(silent.port)/").end()
    let error = try #require(urlError(response))
    #expect(error.code == .timedOut)
    #expect(error.timedOutPhase == .connect)
    #expect(error.userInfo[URLError.timedOutPhaseKey] as? String == "connect")
    for part in ["127.0.0.1", "0.12 seconds", "timeLimits.connect"] {
      #expect(error.localizedDescription.contains(part), "\(error.localizedDescription)")
    }
    let transaction = try #require(response.metrics?.transactionMetrics.first)
    #expect(transaction.connectStartDate != nil)
    #expect(transaction.connectEndDate == nil)
  }

  @Test("Other errors have no phase") func otherErrors() async throws {
    let server = try HTTPTestServer()
    server.enqueue(.closeAfterBody(bytes: 10))
    let response = await Session.real().request(server.url("/")).end()
    let error = try #require(urlError(response))
    #expect(error.timedOutPhase == nil)
    #expect(URLError(.timedOut).timedOutPhase == nil)
  }

  @Test("The idle limit replaces timeoutIntervalForRequest") func idle() async throws {
    let server = try HTTPTestServer()
    server.enqueue(.stall)
    let short = await session(.init(idle: Self.short)).request(server.url("/")).end()
    #expect(urlError(short)?.timedOutPhase == .idle)
    #expect(urlError(short)?.localizedDescription.contains("timeLimits.idle") == true)
    server.enqueue(.text("late").delayed(by: .milliseconds(300)))
    let long = await session(.init(idle: .seconds(60)), idle: 0.05).request(server.url("/")).end()
    #expect(long.error == nil)
    server.enqueue(.stall)
    let plain = await session(.init(), idle: 0.05).request(server.url("/")).end()
    #expect(urlError(plain)?.timedOutPhase == .idle)
    #expect(urlError(plain)?.localizedDescription.contains("timeoutIntervalForRequest") == true)
  }

  @Test("The total limit replaces timeoutIntervalForResource") func total() async throws {
    let server = try HTTPTestServer()
    server.enqueue(.stall)
    let short = await session(.init(total: Self.short)).request(server.url("/")).end()
    #expect(urlError(short)?.timedOutPhase == .total)
    #expect(urlError(short)?.localizedDescription.contains("timeLimits.total") == true)
    server.enqueue(.text("late").delayed(by: .milliseconds(300)))
    let long = await session(.init(total: .seconds(60)), total: 0.05).request(server.url("/")).end()
    #expect(long.error == nil)
  }

  @Test("A request can have its own limits") func ofRequest() async throws {
    let server = try HTTPTestServer()
    server.enqueue(.stall)
    let session = Session.real()
    let request = session.request(server.url("/")).transportOptions { $0.timeLimits.firstByte = Self.short }
    #expect(urlError(await request.end())?.timedOutPhase == .firstByte)
    #expect(await session.request(server.url("/get")).end().error == nil)
  }

  @Test("The phases of each hop have the limits") func redirect() async throws {
    let silent = try HTTPTestServer()
    silent.enqueue(.stall)
    let target = silent.url("/")
    let server = try HTTPTestServer(routes: Routes.standard.adding("/away") { _, _ in .redirect(to: target) })
    let response = await session(.init(firstByte: .seconds(1))).request(server.url("/away")).end()
    #expect(urlError(response)?.timedOutPhase == .firstByte)
    #expect(response.metrics?.transactionMetrics.count == 2)
    #expect(silent.requestCount == 1)
  }

  @Test("The phases of each retry have the limits") func retry() async throws {
    let server = try HTTPTestServer()
    server.enqueue(.stall, .text("again"))
    let retrier = Retrier { _, _, error, completion in
      let phase = (error as? AFError)?.underlyingError.flatMap { ($0 as? URLError)?.timedOutPhase }
      completion(phase == .firstByte ? .retry : .doNotRetry)
    }
    let session = session(.init(firstByte: .seconds(1)), interceptor: Interceptor(retriers: [retrier]))
    let response = await session.request(server.url("/")).end()
    #expect(response.error == nil)
    #expect(response.data == Data("again".utf8))
    #expect(response.metrics?.transactionMetrics.count == 1)
  }

  @Test("Limits that are not exceeded do not end a request")
  func unexceeded() async throws {
    let server = try HTTPTestServer()
    let hour = Duration.seconds(3600)
    let limits = TransportOptions.TimeLimits(
      nameLookup: hour, connect: hour, tlsHandshake: hour, requestSend: hour, firstByte: hour, idle: hour,
      total: hour)
    let session = session(limits, idle: 0.001, total: 0.001)
    for _ in 0..<3 { #expect(await session.request(server.url("/get")).end().response?.statusCode == 200) }
    let upload = session.upload(Data(count: 3_000_000), to: server.url("/post"))
    #expect(await upload.end().response?.statusCode == 200)
    let transaction = try #require(upload.metrics?.transactionMetrics.first)
    let end = try #require(transaction.requestEndDate)
    #expect(end >= (try #require(transaction.requestStartDate)))
    #expect(end <= (try #require(transaction.responseStartDate)))
  }
}
