import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@testable import AlamofireV4

/// The mapping of errors that requests of the core throw.
@Suite("Errors of real requests", .timeLimit(.minutes(5))) struct LiveErrorTests {
  private enum Mishap: Error { case router, adapter, validator, retrier }

  private struct Router: Alamofire::URLRequestConvertible {
    func asURLRequest() throws -> URLRequest { throw Mishap.router }
  }

  private let server: HTTPTestServer
  private let configuration: URLSessionConfiguration

  init() throws {
    server = try HTTPTestServer()
    configuration = .ephemeral
    configuration.urlCache = nil
  }

  private func error(
    of request: Alamofire::DataRequest, _ session: Alamofire::Session
  ) async throws -> any Error {
    legacy(try #require(await request.serializingData().response.error))
  }

  @Test("Errors of the user's code are delivered unchanged") func userErrors() async throws {
    let session = Session(configuration: configuration)
    #expect(try await error(of: session.request(Router()), session) as? Mishap == .router)
    let adapter = Adapter { _, _, completion in completion(.failure(Mishap.adapter)) }
    let adapted = session.request(
      server.url("/get"),
      interceptor: Interceptor(adapter: adapter, retrier: Retrier { _, _, _, done in done(.doNotRetry) }))
    #expect(try await error(of: adapted, session) as? Mishap == .adapter)
    let validated = session.request(server.url("/get")).validate { _, _, _ in .failure(Mishap.validator) }
    #expect(try await error(of: validated, session) as? Mishap == .validator)
  }

  @Test("After a refused retry the original error is delivered") func originalError() async throws {
    let session = Session(configuration: configuration)
    let retrier = Retrier { _, _, _, completion in completion(.doNotRetryWithError(Mishap.retrier)) }
    let adapter = Adapter { request, _, completion in completion(.success(request)) }
    let request = session.request(
      server.url("/status/401"), interceptor: Interceptor(adapter: adapter, retrier: retrier)
    ).validate()
    #expect((try await error(of: request, session) as? AlamofireV4::AFError)?.responseCode == 401)
  }

  @Test("Cancellation and failures of the network are URLErrors") func urlErrors() async throws {
    let session = Session(configuration: configuration)
    let cancelled = session.request(server.url("/delay/20"))
    cancelled.cancel()
    #expect((try await error(of: cancelled, session) as? URLError)?.code == .cancelled)
    let refused = session.request("http://127.0.0.1:1/")
    #expect((try await error(of: refused, session) as? URLError)?.code == .cannotConnectToHost)
  }

  @Test("A refused server is cancelled, and one without a policy is evaluated by the system") func servers()
    async throws
  {
    let secure = try HTTPTestServer(.tls(.localhost))
    let refusing = ServerTrustPolicyManager(policies: ["localhost": .customEvaluation { _, _ in false }])
    let strict = Session(configuration: configuration, serverTrustManager: refusing.current)
    let url = secure.url("/get").replacing("127.0.0.1", with: "localhost")
    #expect((try await error(of: strict.request(url), strict) as? URLError)?.code == .cancelled)
    let unlisted = Session(
      configuration: configuration, serverTrustManager: ServerTrustPolicyManager(policies: [:]).current)
    let error = try await error(of: unlisted.request(url), unlisted) as? URLError
    #expect(error?.code == .serverCertificateHasUnknownRoot, "the root of the tests is unknown")
    #expect(secure.requestCount == 0)
  }

  @Test("The error of a failed move is the file error") func failedMove() async throws {
    let session = Session(configuration: configuration)
    let place = URL(fileURLWithPath: "/nowhere/at/all")
    let request = session.download(server.url("/bytes/10"), to: { _, _ in (place, []) })
    let error = legacy(try #require(await request.serializingData().response.error))
    #expect(!(error is AlamofireV4::AFError) && !(error is Alamofire::AFError))
    #expect((error as NSError).domain == NSCocoaErrorDomain, "\(error)")
  }
}
