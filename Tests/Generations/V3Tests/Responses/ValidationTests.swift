import AlamofireV3
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite(.timeLimit(.minutes(5))) struct ValidationTests {
  @Test("An unacceptable status is an error") func status() async throws {
    let server = try HTTPTestServer()
    let end = await Manager.isolated().request(.GET, server.url("/status/404")).validate(
      statusCode: 200..<300
    )
    .end()
    #expect(end.fault == "com.alamofire.error -6003")
    #expect(end.error?.userInfo[Alamofire.Error.UserInfoKeys.StatusCode] as? Int == 404)
    #expect(
      await Manager.isolated().request(.GET, server.url("/status/404")).validate(statusCode: [404]).end()
        .error
        == nil)
    #expect(await Manager.isolated().request(.GET, server.url("/status/404")).end().error == nil)
  }

  @Test(
    "The content type is compared with the acceptable ones",
    arguments: [
      (["application/json"], true), (["application/*"], true), (["*/json"], true), (["*/*"], true),
      (["APPLICATION/JSON; q=1"], true), (["text/html", "image/*"], false), ([], false),
    ])
  func contentType(types: [String], isAccepted: Bool) async throws {
    let server = try HTTPTestServer()
    let end = await Manager.isolated().request(.GET, server.url("/get")).validate(contentType: types).end()
    #expect(end.fault == (isAccepted ? nil : "com.alamofire.error -6002"))
    if !isAccepted {
      let type = end.error?.userInfo[Alamofire.Error.UserInfoKeys.ContentType] as? String
      #expect(type == "application/json")
    }
  }

  @Test(
    "The error contains the content type without parameters",
    arguments: [
      (["Content-Type": "Text/Plain; charset=utf-8"], "text/plain"),
      (["Content-Type": "text/plain"], "text/plain"),
      ([:], ""),
    ])
  func errorOfContentType(headers: [String: String], type: String) async throws {
    let server = try HTTPTestServer()
    server.enqueue(
      Reply(headers: headers.map { HTTPHeader(name: $0.key, value: $0.value) }, body: .bytes([1])))
    let end = await Manager.isolated().request(.GET, server.url("/")).validate(contentType: ["a/b"]).end()
    #expect(end.error?.code == -6002)
    #expect(end.error?.userInfo[Alamofire.Error.UserInfoKeys.ContentType] as? String == type)
  }

  @Test("A response without a content type is accepted by a wildcard") func missingContentType() async throws
  {
    let server = try HTTPTestServer()
    let bare = Reply(body: .bytes([1]))
    server.enqueue(bare, bare, Reply(body: .empty))
    let manager = Manager.isolated()
    #expect(
      await manager.request(.GET, server.url("/")).validate(contentType: ["a/b"]).end().error?.code == -6002)
    #expect(await manager.request(.GET, server.url("/")).validate(contentType: ["*/*"]).end().error == nil)
    #expect(await manager.request(.GET, server.url("/")).validate(contentType: ["a/b"]).end().error == nil)
  }

  @Test("An empty download and an empty stream have every content type") func emptyBodies() async throws {
    let server = try HTTPTestServer()
    let manager = Manager.isolated(starting: false)
    let folder = try Folder()
    for (body, code) in [([], nil), ([1], -6002)] as [([UInt8], Int?)] {
      server.enqueue(Reply(body: .bytes(body)), Reply(body: .bytes(body)))
      let target = try folder.file("\(body.count)")
      let download = manager.download(.GET, server.url("/")) { _, _ in target }
        .validate(contentType: ["a/b"])
      download.resume()
      #expect(await download.end().error?.code == code)
      let stream = manager.request(.GET, server.url("/")).stream { _ in }.validate(contentType: ["a/b"])
      stream.resume()
      #expect(await stream.end().error?.code == code)
    }
  }

  @Test("Plain validation reads Accept") func accept() async throws {
    let server = try HTTPTestServer()
    let manager = Manager.isolated()
    let url = server.url("/get")
    #expect(await manager.request(.GET, url).validate().end().error == nil)
    let html = ["Accept": "text/html, image/*"]
    #expect(await manager.request(.GET, url, headers: html).validate().end().error?.code == -6002)
    let json = ["Accept": "text/html, application/json;q=0.5"]
    #expect(await manager.request(.GET, url, headers: json).validate().end().error == nil)
    #expect(await manager.request(.GET, server.url("/status/500")).validate().end().error?.code == -6003)
  }

  @Test("A closure decides and the first refusal counts") func closure() async throws {
    let server = try HTTPTestServer()
    let notes = Notes()
    let refusal = NSError(domain: "own", code: 3)
    let end = await Manager.isolated().request(.GET, server.url("/get"))
      .validate { request, response in
        notes.add("\(request?.httpMethod ?? "") \(response.statusCode)")
        return .Success
      }
      .validate { _, _ in .Failure(refusal) }
      .validate { _, _ in
        notes.add("never")
        return .Success
      }.end()
    #expect(end.error === refusal)
    #expect(notes.lines == ["GET 200"])
    server.enqueue(.closeBeforeReply)
    let broken = await Manager.isolated().request(.POST, server.url("/")).validate { _, _ in .Failure(refusal)
    }
    .end()
    #expect(broken.error?.domain == NSURLErrorDomain)
  }
}
