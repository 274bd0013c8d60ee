import AlamofireV3
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite(.timeLimit(.minutes(5))) struct DescriptionTests {
  @Test("The description contains the response once there is one") func description() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.ok.held(by: gate))
    let request = Manager.isolated().request(.GET, server.url("/ip"))
    #expect(request.description == "GET \(server.url("/ip"))")
    gate.open()
    _ = await request.end()
    #expect("\(request)" == "GET \(server.url("/ip")) (200)")
    #expect(Manager.isolated().request(.GET, "").description == "")
  }

  @Test("The debug description of a response leaves out secrets") func secrets() async throws {
    let url = try #require(URL(string: "http://ann:pw@a.test/get?token=T&q=1"))
    let answer = HTTPURLResponse(
      url: url, statusCode: 404, httpVersion: nil,
      headerFields: ["Set-Cookie": "s=C; Path=/", "X-Count": "4"])
    let response = Response<Int, NSError>(
      request: URLRequest(url: url), response: answer, data: nil, result: .Success(4))
    let lines = response.debugDescription.split(separator: "\n")
    #expect(lines[0] == "[Request]: GET http://redacted@a.test/get?token=redacted&q=1")
    #expect(
      lines[1] == "[Response]: 404 http://redacted@a.test/get?token=redacted&q=1 "
        + "{ Set-Cookie: s=<redacted>; Path=/, X-Count: 4 }")
    let port = try HTTPTestServer.refusedPort()
    let refused = await Manager.isolated().request(.GET, "http://ann:pw@127.0.0.1:\(port)/?token=T").outcome {
      $0.responseData(completionHandler: $1)
    }
    let text = refused.debugDescription
    #expect(text.contains("[Result]: FAILURE") && !text.contains("pw@") && !text.contains("token=T"))
    let invalid = await Manager.isolated().request(.GET, "http://ann:pw@[a.test/").end()
    #expect(invalid.fault == "NSURLErrorDomain \(NSURLErrorBadURL)")
    let reason = invalid.error?.localizedFailureReason ?? ""
    #expect(reason.contains("a.test") && !reason.contains("pw"))
  }

  @Test("The cURL command of a GET has no method") func curl() throws {
    let manager = Manager.isolated(starting: false)
    let get = manager.request(.GET, "http://127.0.0.1/get", parameters: ["foo": "bar"], headers: ["X-A": "1"])
    let text = get.debugDescription
    #expect(text.hasPrefix("$ curl -i \\\n\t"))
    #expect(!text.contains("-X"))
    #expect(text.contains("-H \"X-A: 1\""))
    #expect(text.hasSuffix("\"http://127.0.0.1/get?foo=bar\""))
    let post = manager.request(.POST, "http://127.0.0.1/post", parameters: ["a": "b"], encoding: .JSON)
      .authenticate(user: "ann", password: "secret")
    #expect(post.debugDescription.hasPrefix("$ curl -i \\\n\t-X POST \\\n\t-u ann:secret \\\n\t"))
    #expect(post.debugDescription.contains(#"-d "{\"a\":\"b\"}""#))
    #expect(manager.request(.GET, "").debugDescription == "$ curl command could not be created")
  }
}
