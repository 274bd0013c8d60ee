import AlamofireV4
import Foundation
import HTTPTestServer
import SampleStages
import Testing

/// The samples, one after the other: they share what they print to and the default manager. Each is played on every
/// stage.
@Suite(.serialized, .onEveryStage, .timeLimit(.minutes(5))) enum Samples {}

/// Where the samples play: one server stands for every host that they name, and the default manager is led to it. On
/// the stage of httpbin, that server leads the requests for httpbin.org there.
final class Scene: @unchecked Sendable {
  // Unchecked: everything is constant.
  static let hosts = [
    "httpbin.org", "example.com", "some.domain-behind-oauth2.com", "test.example.com",
    "insecure.expired-apis.com",
  ]

  /// For each stage the one that all samples share. None is ever let go: tests beside these may have requests under
  /// way with the manager that was the default one when they began.
  private static let plain = Swift.Result<Scene, Error> { try Scene(.testServer) }
  private static let real = Swift.Result<Scene, Error> { try Scene(Stage.current) }
  private static let earlier = SessionManager.default

  let server: HTTPTestServer
  private let others: HTTPTestServer?
  private let options: TransportOptions
  private let manager: SessionManager

  /// The scene of the stage of this test, as it is when the play begins.
  static func set() throws -> Scene {
    _ = earlier
    let scene = try (Stage.current.isReal ? real : plain).get()
    // Managers that the samples make take these.
    SessionManager.defaultTransportOptions = scene.options
    SessionManager.default = scene.manager
    scene.server.forgetRequests()
    Output.shared.clear()
    return scene
  }

  private init(_ stage: Stage) throws {
    let identity = try TestIdentity(
      .init(commonName: "samples", dnsNames: Scene.hosts, issuer: .localhostAuthority))
    switch stage {
    case .testServer:
      others = nil
      server = try HTTPTestServer(.tls(identity), routes: Scene.routes)
    case .httpbin(let front):
      let others = try HTTPTestServer(routes: Scene.routes)
      self.others = others
      server = try HTTPTestServer(.tls(identity), routes: front.routes(others: others.port))
    }
    var options = TransportOptions()
    options.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8))
    options.hostOverrides = Scene.hosts.map { [server] in
      .init(host: $0, target: "127.0.0.1", targetPort: server.port)
    }
    self.options = options
    let configuration = URLSessionConfiguration.default
    configuration.urlCache = nil
    configuration.httpAdditionalHeaders = SessionManager.defaultHTTPHeaders
    manager = SessionManager(configuration: configuration, transportOptions: options)
  }

  private static let routes = Routes.standard
    .adding("/users/mattt") { _, _ in .json(#"{"name":"Mattt Thompson"}"#) }
    .adding("/users/mattt/") { _, _ in .json(#"{"name":"Mattt Thompson"}"#) }
    .adding("/users") { _, _ in .json(#"[{"name":"Ada"},{"name":"Grace"}]"#) }
    .adding("/search") { _, _ in .json("[]") }

  /// The next requests that the server gets, or has got.
  func requests(_ count: Int) async throws -> [RecordedRequest] {
    var requests: [RecordedRequest] = []
    for _ in 0..<count { requests.append(try await request()) }
    return requests
  }

  /// The next one.
  func request() async throws -> RecordedRequest { try await Stage.current.request(of: server) }
}

extension RecordedRequest {
  /// The object that its body is.
  var json: NSDictionary? { (try? JSONSerialization.jsonObject(with: Data(body))) as? NSDictionary }
}
