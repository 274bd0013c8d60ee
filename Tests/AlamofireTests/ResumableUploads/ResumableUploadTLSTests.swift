import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

/// Resumable uploads that begin over TLS, and lead to a server without it.
@Suite("Resumable uploads over TLS", .timeLimit(.minutes(5)))
struct ResumableUploadTLSTests {
  private static let dialects = ResumableUploadTests.dialects
  private static let bytes = UploadFixture.content(100)
  private static let referer = "https://a.test/private"

  /// Returns the response to the request that creates the upload.
  private static func created(_ location: String) -> FakeReply {
    .status(201, headers: [("Location", location), ("Tus-Resumable", "1.0.0"), ("Upload-Complete", "?0")])
  }

  /// The response to the request that sends all bytes.
  private static var stored: FakeReply {
    .status(204, headers: [("Tus-Resumable", "1.0.0"), ("Upload-Offset", "100"), ("Upload-Complete", "?1")])
  }

  private func upload(
    _ dialect: UploadEndpoint.Dialect, through fake: FakeTransport,
    interceptor: (any RequestInterceptor)? = nil
  ) -> UploadRequest {
    var options = UploadFixture.options(dialect == .draft ? .draft : .tus)
    options.createsWithContent = false
    return Session.retained(fake: fake).upload(
      Data(Self.bytes), to: "https://a.test/files",
      headers: ["Authorization": "secret", "Referer": Self.referer], interceptor: interceptor
    ).resumable(options)
  }

  @Test("An upload whose creation was redirected away from TLS is refused", arguments: dialects)
  func redirected(dialect: UploadEndpoint.Dialect) async {
    let fake = FakeTransport(
      .redirect(307, to: "http://b.test/files"), Self.created("/u/1"), responder: { _, _ in Self.stored })
    let response = await upload(dialect, through: fake).response()
    #expect(response.error?.uploadError == .unusableUploadURL)
    #expect(fake.urls == ["https://a.test/files", "http://b.test/files"])
    #expect(fake.requests.map { $0.value("Referer") } == [Self.referer, nil])
  }

  @Test("An upload continues over TLS although its creation was redirected away", arguments: dialects)
  func redirectedAndBack(dialect: UploadEndpoint.Dialect) async {
    let fake = FakeTransport(
      .redirect(307, to: "http://b.test/files"), Self.created("https://c.test/u/1"),
      responder: { _, _ in Self.stored })
    let response = await upload(dialect, through: fake).response()
    #expect(response.error == nil)
    #expect(fake.urls == ["https://a.test/files", "http://b.test/files", "https://c.test/u/1"])
  }

  @Test(
    "An adapter that leads a part of the upload away from TLS does not take the Referer along",
    arguments: dialects, ["https", "http"])
  func adapted(dialect: UploadEndpoint.Dialect, scheme: String) async {
    let adapter = SpyInterceptor(adapt: { request, _ in
      var request = request
      if request.httpMethod == "PATCH" { request.url = URL(string: "\(scheme)://a.test/u/1") }
      return .success(request)
    })
    let fake = FakeTransport(Self.created("/u/1"), responder: { _, _ in Self.stored })
    let response = await upload(dialect, through: fake, interceptor: adapter).response()
    #expect(response.error == nil)
    #expect(fake.urls == ["https://a.test/files", "\(scheme)://a.test/u/1"])
    let isKept = scheme == "https"
    #expect(fake.requests.map { $0.value("Referer") } == [Self.referer, isKept ? Self.referer : nil])
    #expect(fake.requests.map { $0.value("Authorization") } == ["secret", isKept ? "secret" : nil])
  }
}
