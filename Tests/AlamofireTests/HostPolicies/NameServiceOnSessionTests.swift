import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

/// DNS over HTTPS through the API of a session. The tests of the engine cover the details.
@Suite("Name services of a session", .timeLimit(.minutes(5)))
struct NameServiceOnSessionTests {
  /// An evaluator that may block, as far as the library knows. It records the evaluated hosts.
  private final class Slow: ServerTrustEvaluating {
    struct Refused: Error {}

    let hosts = Recorder<String>()
    let refused: String?

    init(refusing host: String? = nil) { refused = host }

    func evaluate(_ trust: SecTrust, forHost host: String) throws {
      hosts.add(host)
      if host == refused { throw Refused() }
      try DefaultTrustEvaluator().evaluate(trust, forHost: host)
    }
  }

  private let service: HTTPTestServer
  private let server: HTTPTestServer

  init() throws {
    // shop.example has the address of this machine. No other name exists.
    let routes = Routes.none.adding("/dns-query") { request, _ in
      let question = request.body[12...]
      let isKnown = question.dropFirst().starts(with: "shop".utf8)
      let isIPv4 = request.body[request.body.count - 3] == 1
      var bytes: [UInt8] =
        [0, 0, 0x81, isKnown ? 0x80 : 0x83, 0, 1, 0, isKnown && isIPv4 ? 1 : 0, 0, 0, 0, 0] + question
      if isKnown && isIPv4 { bytes += [0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1] }
      return .data(bytes)
    }
    service = try HTTPTestServer(.tls(.localhost), routes: routes)
    server = try HTTPTestServer(
      .tls(TestIdentity(.init(commonName: "shop", dnsNames: ["shop.example"], issuer: .localhostAuthority))))
  }

  private func session(_ evaluator: Slow? = nil, protected: Bool = false) -> Session {
    var options = TransportOptions()
    options.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8))
    options.nameServiceURL = service.url("/dns-query")
    options.refusesPrivateAddresses = protected
    let manager = evaluator.map { ServerTrustManager(evaluators: ["localhost": $0, "shop.example": $0]) }
    return Session(configuration: .isolated, serverTrustManager: manager, transportOptions: options)
  }

  private var url: String { "https://shop.example:\(server.port)/get" }

  @Test("A name is resolved, and the request has no hop for the service") func resolution() async throws {
    let session = session()
    let response = await session.request(url).validate().serializingData().response
    #expect(response.error == nil)
    #expect(response.metrics?.transactionMetrics.map(\.request.url?.host) == ["shop.example"])
    let missing = await session.request("https://nobody.example/").serializingData().response
    #expect((missing.error?.underlyingError as? URLError)?.code == .cannotFindHost)
    #expect(missing.error?.errorDescription?.contains("nobody.example") == true)
  }

  @Test("Blocking evaluators evaluate the name service, too") func evaluators() async throws {
    let evaluator = Slow()
    let session = session(evaluator)
    for _ in 0..<2 { #expect(await session.request(url).validate().serializingData().response.error == nil) }
    #expect(evaluator.hosts.values == ["localhost", "shop.example"])
    let refusing = Slow(refusing: "localhost")
    let other = self.session(refusing)
    let error = await other.request(url).serializingData().response.error
    #expect(error?.isServerTrustEvaluationError == true, "\(String(describing: error))")
    #expect(service.requestCount == 2, "no further request")
  }

  @Test("The name service is evaluated once, also for a request with its own client identity")
  func identity() async throws {
    let evaluator = Slow()
    let session = session(evaluator)
    let client = try TestIdentity(.init(commonName: "client", issuer: .localhostAuthority))
    let identity = try ClientIdentity(
      pem: Data(client.certificatePEM.utf8), privateKey: Data(client.privateKeyPEM.utf8))
    let response = await session.request(url).authenticate(with: ClientIdentityCredential(identity))
      .validate()
      .serializingData().response
    #expect(response.error == nil)
    #expect(evaluator.hosts.values == ["localhost", "shop.example"])
  }

  @Test("A byte stream evaluates the name service, too") func byteStream() async throws {
    for refused in [nil, "localhost"] {
      let evaluator = Slow(refusing: refused)
      let session = session(evaluator)
      let stream = session.byteStream(host: "shop.example", port: server.port, secure: true)
      _ = try? await stream.write(Data("GET /get HTTP/1.1\r\nHost: shop.example\r\n\r\n".utf8))
      let answer = try? await stream.read(atLeast: 8, atMost: 8, timeout: .seconds(60)).data
      #expect((answer != nil) == (refused == nil))
      #expect(evaluator.hosts.values == (refused == nil ? ["localhost", "shop.example"] : ["localhost"]))
      stream.cancel()
    }
  }

  @Test("refusesPrivateAddresses applies to resolved addresses") func privateAddresses() async throws {
    let session = session(protected: true)
    let error = await session.request(url).serializingData().response.error
    #expect((error?.underlyingError as? URLError)?.code == .unsupportedURL)
    #expect(error?.errorDescription?.contains("refusesPrivateAddresses") == true)
    #expect(server.connectionCount == 0)
  }

  @Test("A request that is cancelled during the lookup ends") func cancel() async throws {
    let gate = Gate()
    var reply = Reply.status(200)
    reply.gate = gate
    service.enqueue(reply, reply)
    let session = session()
    let request = session.request(url)
    let task = request.serializingData()
    async let response = task.response
    await gate.waitUntilReached(count: 2)
    request.cancel()
    #expect(await response.error?.isExplicitlyCancelledError == true)
    #expect(await session.request(url).validate().serializingData().response.error == nil)
    gate.open()
  }
}
