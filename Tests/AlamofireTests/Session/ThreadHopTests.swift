import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

/// A request enters the loop once, because each thread hop costs more than the rest of a small request.
@Suite("Thread hops", .timeLimit(.minutes(5)))
struct ThreadHopTests {
  struct Item: Decodable, Sendable {}

  @Test("An awaited request enters the loop once") func awaitedRequest() async throws {
    let server = try HTTPTestServer()
    let session = Session.real(configuration: .isolated, eventMonitors: [])
    for _ in 0..<20 {
      let before = session.core.threadHopCount
      _ = try await session.request(server.url("/bytes/10")).serializingData().value
      #expect(session.core.threadHopCount - before == 1)
    }
  }

  @Test("Decoding and validation add no thread hop") func decodingAndValidation() async throws {
    let server = try HTTPTestServer()
    let session = Session.real(configuration: .isolated, eventMonitors: [])
    let before = session.core.threadHopCount
    _ = try await session.request(server.url("/json")).validate().serializingDecodable(Item.self).value
    _ = try await session.request(server.url("/json")).validate(statusCode: 200..<300).serializingString()
      .value
    #expect(session.core.threadHopCount - before == 2)
  }

  @Test("Redirects and challenges add no thread hop") func redirectsAndChallenges() async throws {
    let server = try HTTPTestServer()
    let session = Session.real(configuration: .isolated, eventMonitors: [])
    let before = session.core.threadHopCount
    _ = try await session.request(server.url("/redirect/5")).serializingData().value
    let basic = session.request(server.url("/basic-auth/u/p")).authenticate(username: "u", password: "p")
    _ = try await basic.validate().serializingData().value
    #expect(session.core.threadHopCount - before == 2)
    #expect(server.requestCount == 8)
  }

  @Test("A failed request enters the loop once") func failure() async throws {
    let server = try HTTPTestServer()
    server.enqueue(.reset)
    let session = Session.real(configuration: .isolated, eventMonitors: [])
    let response = await session.request(server.url("/get")).serializingData().response
    #expect(response.error != nil)
    #expect(session.core.threadHopCount == 1)
  }

  @Test("A session without a started request does not wake the loop") func unstartedRequest() {
    let session = Session()
    _ = session.request("http://127.0.0.1:1/")
    #expect(session.core.threadHopCount == 0)
  }

  @Test("The response object is created once, on first use") func responseObject() async throws {
    let server = try HTTPTestServer()
    let response = await Session.real(configuration: .isolated, eventMonitors: []).request(server.url("/get"))
      .serializingData()
      .response
    let first = try #require(response.response)
    #expect(first === response.response)
    #expect(response.metrics?.transactionMetrics.first?.response === first)
  }
}
