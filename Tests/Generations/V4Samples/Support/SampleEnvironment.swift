import AlamofireV4
import Foundation
import HTTPTestServer
import SampleServers
import Testing

/// The samples. They are serialized because they share the printed output and the default manager. Each runs with every
/// sample server.
@Suite(.serialized, .onEverySampleServer, .timeLimit(.minutes(5))) enum Samples {}

/// The servers of the samples. One server stands for every host, and the default manager connects to it. If httpbin is
/// the sample server, this server forwards requests for httpbin.org to it.
final class SampleEnvironment: @unchecked Sendable {
  // Unchecked: everything is constant.
  static let hosts = [
    "httpbin.org", "example.com", "some.domain-behind-oauth2.com", "test.example.com",
    "insecure.expired-apis.com",
  ]

  /// One value per sample server, shared by all samples. It is never released, because other tests may have requests in
  /// progress with the manager that was the default when they began.
  private static let plain = Swift.Result<SampleEnvironment, Error> { try SampleEnvironment(.testServer) }
  private static let real = Swift.Result<SampleEnvironment, Error> {
    try SampleEnvironment(SampleServer.current)
  }
  private static let earlier = SessionManager.default

  let server: HTTPTestServer
  private let others: HTTPTestServer?
  private let options: TransportOptions
  private let manager: SessionManager

  /// Sets the environment of the running test for its sample server.
  static func set() throws -> SampleEnvironment {
    _ = earlier
    let environment = try (SampleServer.current.isReal ? real : plain).get()
    // The managers of the samples use these options.
    SessionManager.defaultTransportOptions = environment.options
    SessionManager.default = environment.manager
    environment.server.forgetRequests()
    Output.shared.clear()
    return environment
  }

  private init(_ sampleServer: SampleServer) throws {
    let identity = try TestIdentity(
      .init(commonName: "samples", dnsNames: SampleEnvironment.hosts, issuer: .localhostAuthority))
    switch sampleServer {
    case .testServer:
      others = nil
      server = try HTTPTestServer(.tls(identity), routes: SampleEnvironment.routes)
    case .httpbin(let proxy):
      let others = try HTTPTestServer(routes: SampleEnvironment.routes)
      self.others = others
      server = try HTTPTestServer(.tls(identity), routes: proxy.routes(others: others.port))
    }
    var options = TransportOptions()
    options.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8))
    options.hostOverrides = SampleEnvironment.hosts.map { [server] in
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

  /// Returns the next recorded requests of the server.
  func requests(_ count: Int) async throws -> [RecordedRequest] {
    var requests: [RecordedRequest] = []
    for _ in 0..<count { requests.append(try await request()) }
    return requests
  }

  /// Returns the next recorded request of the server.
  func request() async throws -> RecordedRequest { try await SampleServer.current.request(of: server) }
}

extension RecordedRequest {
  /// The object of a JSON body.
  var json: NSDictionary? { (try? JSONSerialization.jsonObject(with: Data(body))) as? NSDictionary }
}
