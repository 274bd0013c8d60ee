import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

@testable import Alamofire

/// Framing fields of the user. With a wrong length, the server would wait, or read the rest of the body as another
/// request.
@Suite(.timeLimit(.minutes(5))) struct FramingFieldTests {
  private static let fields: [HTTPHeader] = [
    HTTPHeader(name: "Content-Length", value: "1"), HTTPHeader(name: "content-length", value: "99"),
    HTTPHeader(name: "Transfer-Encoding", value: "chunked"),
    HTTPHeader(name: "Transfer-Encoding", value: "gzip"),
  ]

  private func check(_ server: HTTPTestServer, _ body: String) {
    let seen = server.recordedRequests.last
    #expect(server.recordedRequests.count == 1)
    #expect(seen?.bodyText == body)
    #expect(seen?.headers(named: "Content-Length") == (body.isEmpty ? [] : ["\(body.utf8.count)"]))
    #expect(seen?.headers(named: "Transfer-Encoding") == [])
  }

  @Test("The framing follows from the body", arguments: fields, ["", "ten bytes."])
  func framing(field: HTTPHeader, body: String) async throws {
    let server = try HTTPTestServer()
    var request = try URLRequest(url: server.url("/anything"), method: body.isEmpty ? .get : .post)
    request.headers.add(field)
    if !body.isEmpty { request.httpBody = Data(body.utf8) }
    #expect(await Session.real().request(request).end().response?.statusCode == 200)
    check(server, body)
  }

  @Test("Framing fields of the session are ignored", arguments: fields)
  func sessionFields(field: HTTPHeader) async throws {
    let server = try HTTPTestServer()
    let configuration = URLSessionConfiguration.af.default
    configuration.headers.add(field)
    let session = Session.real(configuration: configuration)
    #expect(await session.upload(Data("ten bytes.".utf8), to: server.url("/anything")).end().error == nil)
    check(server, "ten bytes.")
  }

  @Test("Framing fields of a redirect handler are ignored", arguments: fields)
  func redirectHandlerFields(field: HTTPHeader) async throws {
    let server = try HTTPTestServer()
    let request = Session.real().request(server.url("/redirect-to?url=/anything"))
      .redirect(
        using: .modify { _, request, _ in
          var request = request
          request.headers.add(field)
          return request
        })
    #expect(await request.end().response?.statusCode == 200)
    server.recordedRequests.first.map { #expect($0.target.contains("redirect")) }
    #expect(server.recordedRequests.count == 2)
    #expect(server.recordedRequests.last?.header("Content-Length") == nil)
    #expect(server.recordedRequests.last?.header("Transfer-Encoding") == nil)
  }

  @Test("The length that the caller announces for a stream counts, however the field is spelt")
  func announcedLength() {
    for name in ["Content-Length", "content-length", "CONTENT-LENGTH"] {
      #expect(WireRequest.contentLength(["X-Own": "5", name: "4"]) == 4, "\(name)")
    }
    for fields in [nil, [:], ["Content-Length": "-4"], ["Content-Length": "4 "]] as [[String: String]?] {
      #expect(WireRequest.contentLength(fields) == -1)
    }
  }
}
