import AlamofireV3
import HTTPTestServer
import SampleStages
import Testing

/// The samples of a README of the third generation, in their order and in the nearest spelling that compiles, against a
/// server in the place of httpbin.org and example.com. One after the other: they share the manager of the namespace.
/// Each is played on every stage.
@Suite(.serialized, .onEveryStage, .timeLimit(.minutes(5))) enum Samples {}

/// Those two hosts, on loopback, for one sample. The manager of the namespace is led there. On the stage of httpbin, the
/// server with TLS leads the requests for httpbin.org there, and others to the plain one.
final class Site: Sendable {
  let secure: HTTPTestServer
  let plain: HTTPTestServer

  init() throws {
    plain = try HTTPTestServer(routes: Self.routes)
    let routes =
      switch Stage.current {
      case .testServer: Self.routes
      case .httpbin(let front): front.routes(others: plain.port)
      }
    secure = try HTTPTestServer(.tls(Self.identity.get()), routes: routes)
    Manager.sharedInstance = Manager(configuration: Self.configuration, transportOptions: options)
  }

  /// The next request that the server with TLS gets, or has got.
  func request() async throws -> RecordedRequest { try await Stage.current.request(of: secure) }

  private static let hosts = ["httpbin.org", "example.com", "test.example.com", "insecure.expired-apis.com"]

  private static let identity = Swift.Result {
    try TestIdentity(.init(commonName: "httpbin.org", dnsNames: hosts, issuer: .localhostAuthority))
  }

  /// The options that lead a manager to loopback.
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

  /// The name of the file for `/stream/100`. The test server suggests a unique one. httpbin suggests none, so that
  /// the end of the path is used.
  static var fileName: String { Stage.current.isReal ? "100" : suggestion }

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

/// Waits until `body` has called what it is given.
func waiting<Value>(for body: (@escaping (Value) -> Void) throws -> Void) async rethrows -> Value {
  try await withoutActuallyEscaping(body) { body in
    let (stream, continuation) = AsyncStream<Carried<Value>>.makeStream()
    try body { continuation.yield(Carried(value: $0)) }
    for await carried in stream { return carried.value }
    preconditionFailure("The stream is never finished.")
  }
}

/// A value on its way from a handler to its test.
struct Carried<Value>: @unchecked Sendable {
  // Unchecked: handed over, and not used by its former owner any more.
  let value: Value
}

/// The value of a path of a JSON document, as text.
func value(_ path: String, of json: Any?) -> String? {
  var value = json
  for key in path.split(separator: ".") { value = (value as? [String: Any])?[String(key)] }
  return value.map { "\($0)" }
}
