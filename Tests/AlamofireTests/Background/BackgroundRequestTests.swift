import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

/// The properties of a background request, which all its attempts have, in every session.
@Suite("Requests of background transfers", .timeLimit(.minutes(5))) struct BackgroundRequestTests {
  private let fixture: BackgroundFixture
  /// A storage with a cookie for the test server.
  private let storage: HTTPCookieStorage

  init() throws {
    fixture = try BackgroundFixture()
    storage = try #require(URLSessionConfiguration.af.ephemeral.httpCookieStorage)
    let cookie = HTTPCookie(properties: [.name: "own", .value: "1", .domain: "127.0.0.1", .path: "/"])
    storage.setCookie(try #require(cookie))
  }

  private func session(startRequestsImmediately: Bool = true) -> Session {
    fixture.session(startRequestsImmediately: startRequestsImmediately) {
      $0.httpCookieStorage = storage
      $0.httpCookieAcceptPolicy = .always
    }
  }

  private func request(_ url: String, handlesCookies: Bool) throws -> URLRequest {
    var request = try URLRequest(url: url, method: .get)
    request.httpShouldHandleCookies = handlesCookies
    request.mainDocumentURL = URL(string: "http://127.0.0.1/page")
    return request
  }

  /// Whether the requests had a `Cookie` field, in their order.
  private func hadCookies(_ server: HTTPTestServer) -> [Bool] {
    server.recordedRequests.map { $0.header("Cookie") != nil }
  }

  private var cookieNames: [String]? { storage.cookies?.map(\.name).sorted() }

  @Test("A repeated download handles cookies as its first attempt did", arguments: [true, false])
  func repeatedDownload(handlesCookies: Bool) async throws {
    let file = VersionedFile(size: 30_000)
    file.breakAfter(10_000)
    let server = try HTTPTestServer(
      routes: .none.adding("/file") { request, _ in
        file.reply(to: request).with(header: "Set-Cookie", value: "set=1")
      })
    let session = session()
    let request = session.download(
      try request(server.url("/file"), handlesCookies: handlesCookies), to: fixture.destination("file"))
    let response = await request.ended()
    #expect(response.error == nil)
    #expect(server.recordedRequests.map { $0.header("Range") } == [nil, "bytes=10000-"])
    #expect(hadCookies(server) == [handlesCookies, handlesCookies])
    if !handlesCookies { #expect(cookieNames == ["own"], "no response may store a cookie") }
  }

  @Test("The parts of a resumable upload handle cookies as its first request did", arguments: [true, false])
  func resumableUpload(handlesCookies: Bool) async throws {
    let uploads = try UploadFixture(.tus)
    var request = try request(uploads.url, handlesCookies: handlesCookies)
    request.method = .post
    let session = session()
    let upload = session.upload(Data(UploadFixture.content(100)), with: request)
      .resumable(uploads.options { $0.maximumPartSize = 50 })
    #expect(await upload.ended().error == nil)
    #expect(uploads.uploads.uploads.map(\.content) == [UploadFixture.content(100)])
    #expect(uploads.requests.count > 1, "the upload has to have several parts")
    #expect(hadCookies(uploads.server).allSatisfy { $0 == handlesCookies }, "\(hadCookies(uploads.server))")
  }

  @Test("A restored download has the properties of the first session's request", arguments: [true, false])
  func restoredDownload(handlesCookies: Bool) async throws {
    let file = StallingFile(size: 60_000, stallingAfter: 40_000)
    let server = try HTTPTestServer(routes: file.routes)
    func abandon() async throws {
      let session = session()
      let arrived = Latch()
      let request = session.download(
        try request(server.url("/file"), handlesCookies: handlesCookies), to: fixture.destination("file")
      ).downloadProgress(queue: .global()) { if $0.completedUnitCount >= 40_000 { arrived.open() } }
      let ending = Task { await request.ended() }
      await arrived.wait()
      withExtendedLifetime((session, ending)) {}
    }
    try await abandon()
    let session = session()
    let restored = try #require(session.restoredRequests.first as? DownloadRequest)
    #expect(restored.originalRequest?.httpShouldHandleCookies == handlesCookies)
    #expect(restored.originalRequest?.mainDocumentURL?.absoluteString == "http://127.0.0.1/page")
    #expect(await restored.ended().error == nil)
    #expect(hadCookies(server) == [handlesCookies, handlesCookies])
  }
}
