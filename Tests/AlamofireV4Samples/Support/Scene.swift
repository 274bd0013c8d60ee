import AlamofireV4
import Foundation
import HTTPTestServer
import Testing

/// The samples, one after the other: they share what they print to and the default manager.
@Suite(.serialized, .timeLimit(.minutes(2))) enum Samples {}

/// Where the samples play: one server stands for every host that they name, and the default manager is led to it.
final class Scene: @unchecked Sendable {
  // Unchecked: everything is constant.
  static let hosts = [
    "httpbin.org", "example.com", "some.domain-behind-oauth2.com", "test.example.com",
    "insecure.expired-apis.com",
  ]

  private static let shared = Result<Scene> { try Scene() }

  let server: HTTPTestServer
  /// Other tests may have requests under way with it.
  private let earlier: SessionManager

  /// The scene, as it is when the play begins.
  static func set() throws -> Scene {
    let scene = try shared.unwrap()
    scene.server.forgetRequests()
    Output.shared.clear()
    return scene
  }

  private init() throws {
    earlier = SessionManager.default
    let identity = try TestIdentity(
      .init(commonName: "samples", dnsNames: Scene.hosts, issuer: .localhostAuthority))
    let routes = Routes.standard
      .adding("/users/mattt") { _, _ in .json(#"{"name":"Mattt Thompson"}"#) }
      .adding("/users/mattt/") { _, _ in .json(#"{"name":"Mattt Thompson"}"#) }
      .adding("/users") { _, _ in .json(#"[{"name":"Ada"},{"name":"Grace"}]"#) }
      .adding("/search") { _, _ in .json("[]") }
    server = try HTTPTestServer(.tls(identity), routes: routes)
    var options = TransportOptions()
    options.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8))
    options.hostOverrides = Scene.hosts.map { .init(host: $0, target: "127.0.0.1", targetPort: server.port) }
    // Managers that the samples make take these.
    SessionManager.defaultTransportOptions = options
    let configuration = URLSessionConfiguration.default
    configuration.urlCache = nil
    configuration.httpAdditionalHeaders = SessionManager.defaultHTTPHeaders
    SessionManager.default = SessionManager(configuration: configuration)
  }

  /// The next requests that the server gets, or has got.
  func requests(_ count: Int) async throws -> [RecordedRequest] {
    var requests: [RecordedRequest] = []
    for _ in 0..<count { requests.append(try await server.takeRequest()) }
    return requests
  }

  /// The next one.
  func request() async throws -> RecordedRequest { try await server.takeRequest() }
}

extension RecordedRequest {
  /// The object that its body is.
  var json: NSDictionary? { (try? JSONSerialization.jsonObject(with: Data(body))) as? NSDictionary }
}
