import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

/// Resumable uploads whose content is hashed for Digest (`auth-int`) before it is sent.
@Suite("Resumable uploads with signed content", .timeLimit(.minutes(5))) struct SignedUploadTests {
  private static let bytes = Data(UploadFixture.content(100))

  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// Returns a session to which the server has shown its challenge, so that it signs each request before it is sent.
  private func session(_ fake: FakeTransport) async -> Session {
    let session = Session.retained(fake: fake)
    let response = await session.request("http://a.test/")
      .authenticate(username: "user", password: "pass").end()
    #expect(response.response?.statusCode == 200)
    return session
  }

  private func upload(
    by session: Session, isFile: Bool, _ scheme: ResumableUpload.Scheme
  ) async throws -> AFDataResponse<Data?> {
    let url = "http://a.test/files"
    let request =
      isFile
      ? session.upload(try folder.file("upload", Self.bytes), to: url) : session.upload(Self.bytes, to: url)
    return await request.resumable(UploadFixture.options(scheme))
      .authenticate(username: "user", password: "pass").response()
  }

  private static var challenge: FakeReply {
    .challenge(#"Digest realm="r", nonce="n1", qop="auth-int""#)
  }

  @Test("A last part that was hashed and not sent does not count as received", arguments: [true, false])
  func lostUpload(isFile: Bool) async throws {
    func created(_ number: Int) -> FakeReply {
      .status(201, headers: [("Tus-Resumable", "1.0.0"), ("Location", "/files/\(number)")])
    }
    let fake = FakeTransport(
      Self.challenge, .text("in"), created(1), .failure(.cannotConnectToHost),
      .status(404, headers: [("Tus-Resumable", "1.0.0")]), created(2),
      .status(204, headers: [("Tus-Resumable", "1.0.0"), ("Upload-Offset", "100")]))
    let response = try await upload(by: await session(fake), isFile: isFile, .tus)
    #expect(response.error == nil)
    #expect(fake.requests.map(\.method) == ["GET", "GET", "POST", "PATCH", "HEAD", "POST", "PATCH"])
    #expect(fake.requests.dropFirst().allSatisfy { $0.value("Authorization") != nil })
    #expect(fake.urls.last == "http://a.test/files/2")
  }

  @Test("A creation that was hashed and not sent is tried again", arguments: [true, false])
  func unsentCreation(isFile: Bool) async throws {
    let fake = FakeTransport(
      Self.challenge, .text("in"), .failure(.cannotConnectToHost), .text("stored"))
    let response = try await upload(by: await session(fake), isFile: isFile, .draft)
    #expect(response.error == nil)
    #expect(fake.requests.map(\.method) == ["GET", "GET", "POST", "POST"])
    #expect(fake.requests.dropFirst().allSatisfy { $0.value("Authorization") != nil })
  }
}
