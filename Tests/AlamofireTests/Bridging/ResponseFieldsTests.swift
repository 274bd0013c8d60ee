import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

/// The head of a response beyond what Foundation's class holds.
@Suite(.timeLimit(.minutes(5))) struct ResponseFieldsTests {
  @Test("Fields keep their order, their spelling and their number, and the version is known with the head")
  func fields() async throws {
    let server = try HTTPTestServer()
    server.enqueue(
      .raw("HTTP/1.0 200 OK\r\nz-last: 1\r\nSet-Cookie: a=1\r\nA-first: 2\r\nSet-Cookie: b=2\r\n\r\n"))
    let session = Session(configuration: .af.ephemeral)
    let received = await session.request(server.url("/")).serializingData(emptyResponseCodes: [200]).response
    let response = try #require(received.response)
    #expect(response.af.httpVersion == "HTTP/1.0")
    #expect(
      response.af.headerFields.map(\.description) == [
        "z-last: 1", "Set-Cookie: a=1", "A-first: 2", "Set-Cookie: b=2",
      ])
  }

  @Test("A response of the caller has no version, and sorted fields")
  func ownResponse() throws {
    let url = try #require(URL(string: "http://example.com"))
    let response = try #require(
      HTTPURLResponse(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: ["b": "1", "a": "2"]))
    #expect(response.af.httpVersion == nil)
    #expect(response.af.headerFields.map { $0.name.lowercased() } == ["a", "b"])
  }
}
