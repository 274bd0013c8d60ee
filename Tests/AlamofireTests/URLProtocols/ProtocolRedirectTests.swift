import Alamofire
import Foundation
import FoundationNetworking
import Testing

/// Redirects by `URLProtocol` classes, and the fields of their responses.
@Suite(.timeLimit(.minutes(5))) struct ProtocolRedirectTests {
  /// Responds with the method and the body of the request.
  private static let echo: ProtocolScript.Step = { loader, client in
    var body = loader.request.httpBody ?? Data()
    if let stream = loader.request.httpBodyStream {
      stream.open()
      var buffer = [UInt8](repeating: 0, count: 100)
      while case let count = stream.read(&buffer, maxLength: buffer.count), count > 0 {
        body.append(contentsOf: buffer[..<count])
      }
      stream.close()
    }
    loader.respond(client)
    loader.load(client, "\(loader.request.httpMethod ?? "-") \(String(decoding: body, as: UTF8.self))")
    loader.finish(client)
  }

  /// Redirects to `target`.
  private static func redirecting(
    to target: String, status: Int, method: String, fields: [String: String] = [:]
  ) -> ProtocolScript {
    ProtocolScript { loader, client in
      guard let from = loader.request.url, let url = URL(string: target),
        let response = HTTPURLResponse(
          url: from, statusCode: status, httpVersion: "HTTP/1.1", headerFields: fields)
      else { return }
      var request = URLRequest(url: url)
      request.httpMethod = method
      client.urlProtocol(loader, wasRedirectedTo: request, redirectResponse: response)
    }
  }

  @Test(
    "A redirected request has the method that the class chose, and its body if the method is the same",
    arguments: [
      ("POST", 301, "GET", "GET "), ("POST", 302, "GET", "GET "), ("POST", 303, "GET", "GET "),
      ("POST", 307, "GET", "GET "), ("POST", 308, "GET", "GET "), ("POST", 200, "GET", "GET "),
      ("POST", 301, "POST", "POST abc"), ("POST", 302, "POST", "POST abc"), ("POST", 303, "POST", "POST abc"),
      ("POST", 307, "POST", "POST abc"), ("POST", 308, "POST", "POST abc"), ("POST", 200, "POST", "POST abc"),
      ("PUT", 302, "PUT", "PUT abc"), ("DELETE", 303, "DELETE", "DELETE abc"), ("PUT", 308, "GET", "GET "),
    ])
  func methodAndBody(method: String, status: Int, chosen: String, expected: String) async {
    let target = ProtocolScript(Self.echo)
    let first = Self.redirecting(to: target.url, status: status, method: chosen)
    let response = await Session.scripted()
      .upload(Data("abc".utf8), to: first.url, method: HTTPMethod(rawValue: method))
      .serializingString().response
    #expect(response.value == expected)
    #expect(target.started.values.map(\.httpMethod) == [chosen])
    #expect(first.started.count == 1)
  }

  @Test(
    "A class that serves the target of a redirect does not see the body that the redirect drops",
    arguments: [false, true])
  func droppedBody(isStream: Bool) async throws {
    let target = ProtocolScript(Self.echo)
    var request = try URLRequest(url: "http://a.test/", method: .post)
    let body = Data("abc".utf8)
    if isStream { request.httpBodyStream = InputStream(data: body) } else { request.httpBody = body }
    let session = Session.scripted(fake: FakeTransport(.redirect(303, to: target.url)))
    #expect(await session.request(request).serializingString().response.value == "GET ")
    let seen = target.calls.values + target.started.values
    #expect(seen.count == 2 && seen.allSatisfy { $0.httpBody == nil && $0.httpBodyStream == nil })
  }

  /// Responds to requests of another scheme than HTTP.
  private static func responding(
    length: Int = -1, type: String? = nil, encoding: String? = nil, _ body: [UInt8]
  ) -> ProtocolScript {
    ProtocolScript { loader, client in
      guard let url = loader.request.url else { return }
      let response = URLResponse(
        url: url, mimeType: type, expectedContentLength: length, textEncodingName: encoding)
      client.urlProtocol(loader, didReceive: response, cacheStoragePolicy: .notAllowed)
      client.urlProtocol(loader, didLoad: Data(body))
      loader.finish(client)
    }
  }

  @Test(
    "The length of a response that is not one of HTTP is the total of its progress, also a length of zero",
    arguments: [(-1, -1), (0, 0), (3, 3)] as [(Int, Int64)])
  func announcedLength(length: Int, total: Int64) async {
    let script = Self.responding(length: length, Array("abc".utf8))
    let request = Session.scripted().request("app://\(script.host)/")
    let totals = Recorder<Int64>()
    request.downloadProgress(queue: .global()) { totals.add($0.totalUnitCount) }
    #expect(await request.end().data == Data("abc".utf8))
    #expect(await totals.wait(for: 1).first == total)
  }

  @Test("A response that is not one of HTTP names the encoding of its text") func namedEncoding() async {
    let script = Self.responding(type: "text/plain", encoding: "iso-8859-1", [0xE4])
    let request = Session.scripted().request("app://\(script.host)/")
    #expect(await request.serializingString().response.value == "ä")
  }

  @Test("Line breaks in a field value add no field")
  func lineBreaks() async {
    let end = ProtocolScript(Self.echo)
    let script = Self.redirecting(
      to: end.url, status: 302, method: "GET",
      fields: ["A": "b\r\nLocation: https://elsewhere.test/\r\nC: d"])
    let heads = Recorder<HTTPHeaders>()
    let redirector = Redirector(
      behavior: .modify { _, request, response in
        heads.add(response.headers)
        return request
      })
    let response = await Session.scripted().request(script.url).redirect(using: redirector)
      .serializingString().response
    #expect(response.value == "GET ")
    #expect(end.started.count == 1)
    #expect(heads.values.count == 1)
    #expect(heads.values.first?.value(for: "Location") == end.url)
    #expect(heads.values.first?.value(for: "C") == nil)
    #expect(heads.values.first?.value(for: "A") == "b  Location: https://elsewhere.test/  C: d")
  }
}
