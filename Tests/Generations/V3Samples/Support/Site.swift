import AlamofireV3
import HTTPTestServer
import SampleServers
import Testing

/// The samples of a README of the third generation, in their order and in the nearest spelling that compiles. Test
/// servers stand for httpbin.org and example.com. The samples are serialized because they share the manager of the
/// namespace. Each runs with every sample server.
@Suite(.serialized, .onEverySampleServer, .timeLimit(.minutes(5))) enum Samples {}

/// The servers of one sample, to which the manager of the namespace connects. If httpbin is the sample server, the
/// server with TLS forwards requests for httpbin.org to it, and others to the plain server.
final class Site: Sendable {
  let secure: HTTPTestServer
  let plain: HTTPTestServer

  init() throws {
    plain = try HTTPTestServer(routes: Self.routes)
    let routes =
      switch SampleServer.current {
      case .testServer: Self.routes
      case .httpbin(let proxy): proxy.routes(others: plain.port)
      }
    secure = try HTTPTestServer(.tls(Self.identity.get()), routes: routes)
    Manager.sharedInstance = Manager(configuration: Self.configuration, transportOptions: options)
  }

  /// Returns the next recorded request of the server with TLS.
  func request() async throws -> RecordedRequest { try await SampleServer.current.request(of: secure) }

  private static let hosts = ["httpbin.org", "example.com", "test.example.com", "insecure.expired-apis.com"]

  private static let identity = Swift.Result {
    try TestIdentity(.init(commonName: "httpbin.org", dnsNames: hosts, issuer: .localhostAuthority))
  }

  /// The options that connect a manager to the servers on loopback.
  var options: TransportOptions {
    var options = TransportOptions()
    options.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8))
    for host in Self.hosts {
      options.hostOverrides += [
        .init(host: host, port: 443, target: "127.0.0.1", targetPort: secure.port),
        .init(host: host, port: 80, target: "127.0.0.1", targetPort: plain.port),
      ]
    }
    return options
  }

  /// The name of the downloaded `/stream/100`. The test server suggests a name that no other file has. httpbin suggests
  /// none, so the name is the last component of the path.
  static var fileName: String { SampleServer.current.isReal ? "100" : suggestion }

  private static let suggestion = "alamofire-sample-\(ProcessInfo.processInfo.processIdentifier).txt"

  private static let routes = Routes.standard
    .adding("/stream/{n}") { _, _ in
      Reply.text(String(repeating: "{\"id\": 1}\n", count: 100))
        .with(header: "Content-Disposition", value: "attachment; filename=\"\(suggestion)\"")
    }
    .adding("/users", methods: ["GET"]) { _, _ in
      .json(#"[{"name": "Mattt Thompson"}, {"name": "Ada Lovelace"}]"#)
    }
    .adding("/users/{name}", methods: ["GET", "DELETE"]) { _, _ in .json(#"{"name": "Mattt Thompson"}"#) }
    .adding("/users", methods: ["POST"]) { request, _ in .text(request.bodyText) }
    .adding("/users/{name}", methods: ["PUT"]) { request, _ in .text(request.bodyText) }
    .adding("/search") { request, _ in .text(request.target) }
    .adding("/document") { _, _ in .text("<a>1</a>").with(header: "Content-Type", value: "application/xml") }

  /// A configuration without a cache, with the fields of the shared manager.
  static var configuration: URLSessionConfiguration {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = nil
    configuration.httpAdditionalHeaders = Manager.defaultHTTPHeaders
    return configuration
  }
}

/// Waits until `body` has called its argument.
func waiting<Value>(for body: (@escaping (Value) -> Void) throws -> Void) async rethrows -> Value {
  try await withoutActuallyEscaping(body) { body in
    let (stream, continuation) = AsyncStream<UncheckedBox<Value>>.makeStream()
    try body { continuation.yield(UncheckedBox(value: $0)) }
    for await carried in stream { return carried.value }
    preconditionFailure("The stream is never finished.")
  }
}

/// A value that a handler hands over to its test.
struct UncheckedBox<Value>: @unchecked Sendable {
  // Unchecked: the handler does not use the value after the transfer.
  let value: Value
}

/// Returns the value of a path of a JSON document, as text.
func value(_ path: String, of json: Any?) -> String? {
  var value = json
  for key in path.split(separator: ".") { value = (value as? [String: Any])?[String(key)] }
  return value.map { "\($0)" }
}
