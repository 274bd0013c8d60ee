import Foundation
import HTTPTestServer
import Testing

@testable import Alamofire

/// Requests that call the caller's code before the transfer. Their task ends then, and the loop continues.
@Suite("Tasks that end before the transfer", .timeLimit(.minutes(2))) struct EndedTaskTests {
  private struct Order: Encodable, Sendable { let number = 7 }

  private let gate = Gate()
  /// The task of a request with monitors lasts until the response. Notification monitors become active while any test
  /// observes one.
  private let session = Session.real(configuration: .isolated, eventMonitors: [])
  private let adapter = Adapter { request, _, completion in
    var request = request
    request.headers.add(.authorization(bearerToken: "token"))
    completion(.success(request))
  }

  /// Expects that the task of a request ends while its server holds the response, and returns the response.
  private func response(
    to server: HTTPTestServer, _ make: (String) -> DataRequest
  ) async throws -> DataResponse<Data, AFError> {
    server.enqueue(.text("ok").held(by: gate))
    let request = make(server.url("/"))
    let response = request.serializingData()
    try await #require(request.core.state.withLock { $0.run.task }).value
    #expect(request.isResumed && !request.isFinished)
    gate.open()
    return await response.response
  }

  @Test("An adapter") func adapter() async throws {
    let server = try HTTPTestServer(routes: .none)
    let response = try await response(to: server) { session.request($0, interceptor: adapter) }
    #expect(response.value == Data("ok".utf8))
    #expect(server.recordedRequests.first?.header("Authorization") == "Bearer token")
  }

  @Test("The encoding of a value") func encoding() async throws {
    let server = try HTTPTestServer(routes: .none)
    let response = try await response(to: server) {
      session.request($0, method: .post, parameters: Order(), encoder: .json)
    }
    #expect(response.value == Data("ok".utf8))
    #expect(server.recordedRequests.first?.bodyText == #"{"number":7}"#)
  }

  @Test("A request that is cancelled after its task has ended") func cancellation() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.text("ok").held(by: gate))
    let request = session.request(server.url("/"), interceptor: adapter)
    let response = request.serializingData()
    try await #require(request.core.state.withLock { $0.run.task }).value
    request.cancel()
    #expect(await response.response.error?.isExplicitlyCancelledError == true)
    gate.open()
  }

  enum Trace {
    @TaskLocal static var id: String?
  }

  private struct Router: URLRequestConvertible {
    let url: String

    func asURLRequest() throws -> URLRequest {
      try URLRequest(url: url, method: .get, headers: ["X-Trace": Trace.id ?? "none"])
    }
  }

  @Test("The conversion of each attempt sees the task-local values if there is a policy for retries")
  func retriedConversion() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.status(503), .text("ok"))
    let policy = RetryPolicy(retryLimit: 1, exponentialBackoffScale: 0)
    let value = try await Trace.$id.withValue("4bf92f35") {
      try await session.request(Router(url: server.url("/")), interceptor: policy).validate()
        .serializingData()
        .value
    }
    #expect(value == Data("ok".utf8))
    #expect(server.recordedRequests.map { $0.header("X-Trace") } == ["4bf92f35", "4bf92f35"])
  }

  @Test("A redirect and a failed validation are handled without the task") func redirect() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.redirect(to: "/next"), .status(503))
    let request = session.request(server.url("/"), interceptor: adapter).validate { _, response, _ in
      response.statusCode == 503 ? .failure(URLError(.badServerResponse)) : .success(())
    }
    let error = await request.serializingData().response.error
    #expect((error?.underlyingError as? URLError)?.code == .badServerResponse)
    #expect(server.requestCount == 2)
  }
}
