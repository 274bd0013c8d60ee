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

  @Test("A response created by the caller has no version, and sorted fields")
  func ownResponse() throws {
    let url = try #require(URL(string: "http://example.com"))
    let response = try #require(
      HTTPURLResponse(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: ["b": "1", "a": "2"]))
    #expect(response.af.httpVersion == nil)
    #expect(response.af.headerFields.map { $0.name.lowercased() } == ["a", "b"])
  }

  @Test("The range of a part is read strictly, from the server and from the caller")
  func ranges() async throws {
    let server = try HTTPTestServer()
    let session = Session(configuration: .af.ephemeral)
    let url = try #require(URL(string: "http://example.com"))
    for (values, bounds, total) in [
      (["bytes 2-3/10"], 2..<4, 10), (["bytes 2-3/*"], 2..<4, nil), (["bytes */10"], nil, 10),
      (["bytes 1-1/-9223372036854775808"], nil, nil), (["bytes 2-3/10", "bytes 2-3/10"], nil, nil),
      ([], nil, nil),
    ] as [([String], Range<Int64>?, Int64?)] {
      var reply = Reply.status(200)
      reply.headers += values.map { HTTPHeader(name: "Content-Range", value: $0) }
      server.enqueue(reply)
      let received = await session.request(server.url("/")).serializingData(emptyResponseCodes: [200])
        .response
      let fields = values.isEmpty ? [:] : ["Content-Range": values.joined(separator: ", ")]
      let own = HTTPURLResponse(url: url, statusCode: 206, httpVersion: nil, headerFields: fields)
      for response in [received.response, own] {
        let range = try #require(response).af.contentRange
        #expect(range?.bounds == bounds && range?.total == total, "\(values)")
        #expect((range == nil) == (bounds == nil && total == nil), "\(values)")
      }
    }
  }

  @Test("A strong validator is a strong tag, or without a tag a date that is older than the response")
  func validators() throws {
    let url = try #require(URL(string: "http://example.com"))
    let (first, second) = ("Mon, 01 Jan 2024 10:00:00 GMT", "Mon, 01 Jan 2024 10:00:01 GMT")
    for (fields, expected) in [
      (["ETag": "\"a\""], "ETag: \"a\""), (["ETag": "W/\"a\""], nil), (["ETag": "a"], nil),
      (["ETag": "\"a"], nil),
      (["Last-Modified": first, "Date": second], "Last-Modified: \(first)"),
      (["Last-Modified": first, "Date": first], nil), (["Last-Modified": first], nil),
      (["Last-Modified": "soon", "Date": second], nil),
      (["ETag": "W/\"a\"", "Last-Modified": first, "Date": second], nil),
      (["ETag": "\"a\"", "Last-Modified": first, "Date": second], "ETag: \"a\""), ([:], nil),
    ] as [([String: String], String?)] {
      let response = HTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: fields)
      #expect(try #require(response).af.strongValidator?.description == expected, "\(fields)")
    }
  }
}
