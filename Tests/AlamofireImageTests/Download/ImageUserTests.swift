import Alamofire
import AlamofireImage
import Foundation
import FoundationNetworking
import HTTPTestServer
import Scenarios
import Testing

/// Downloads by one user after another.
@Suite("Images of several users", .timeLimit(.minutes(2)))
struct ImageUserTests {
  /// Returns routes that answer each user with an image as wide as the name of the user.
  private static var routes: Routes {
    Routes.none.adding("/avatar") { request, _ in
      let field = request.header("Authorization")?.dropFirst("Basic ".count)
      guard let field, let decoded = Data(base64Encoded: String(field)),
        let user = String(decoding: decoded, as: UTF8.self).split(separator: ":").first,
        let file = try? Drawing(gradientOf: user.count, 1).file(.png)
      else { return Reply.status(401).with(header: "WWW-Authenticate", value: #"Basic realm="r""#) }
      return .image(file)
    }
  }

  @Test("An image of one user is not given to the next one", arguments: [nil, "avatar"])
  func nextUser(cacheKey: String?) async throws {
    let server = try HTTPTestServer(routes: Self.routes)
    let downloader = ImageDownloader.isolated()
    let request = try URLRequest(url: server.url("/avatar").asURL())
    func width() async throws -> Int {
      try await downloader.image(for: request, cacheKey: cacheKey).pixelWidth
    }
    downloader.addAuthentication(user: "ann", password: "secret")
    #expect(try await width() == 3)
    let count = server.requestCount
    downloader.addAuthentication(user: "ann", password: "secret")
    #expect(try await width() == 3)
    #expect(server.requestCount == count, "the credential is the same")
    downloader.addAuthentication(user: "robert", password: "secret")
    #expect(try await width() == 6)
    #expect(try await width() == 6)
  }

  @Test("An image that arrives after the user has changed is not given to the next one", .steps)
  func lateImage() async throws {
    let images = try ImageServer()
    let downloader = ImageDownloader.isolated()
    let gate = Gate()
    images.server.enqueue(.image(try Drawing(gradientOf: 3, 1).file(.png)).held(by: gate))
    images.server.enqueue(.image(try Drawing(gradientOf: 6, 1).file(.png)))
    let request = try images.request("/image/x")
    downloader.addAuthentication(user: "ann", password: "secret")
    step("ask as ann")
    async let first = downloader.image(for: request)
    await gate.waitUntilReached()
    downloader.addAuthentication(user: "robert", password: "secret")
    gate.open()
    #expect(try await first.pixelWidth == 3)
    step("ask as robert")
    #expect(try await downloader.image(for: request).pixelWidth == 6)
  }
}
