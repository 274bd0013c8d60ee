import AlamofireV4
import HTTPTestServer
import Testing

// Code of users, compiled in both language modes, with only this import: classes with variables and without `Sendable`.

private class SigningAdapter: RequestAdapter, RequestRetrier {
  var token = "old"
  private let lock = NSLock()

  func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
    lock.lock()
    defer { lock.unlock() }
    var urlRequest = urlRequest
    urlRequest.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
    return urlRequest
  }

  func should(
    _ manager: SessionManager, retry request: Request, with error: any Error,
    completion: @escaping RequestRetryCompletion
  ) {
    lock.lock()
    token = "new"
    lock.unlock()
    completion(request.retryCount == 0, 0)
  }
}

private class Endpoint: URLRequestConvertible, URLConvertible {
  var base: String
  var count = 0

  init(_ base: String) { self.base = base }

  func asURL() throws -> URL {
    count += 1
    return try base.asURL()
  }

  func asURLRequest() throws -> URLRequest {
    try URLRequest(url: self, method: .get, headers: ["X-Count": "\(count)"])
  }
}

private class QuietManager: SessionManager, @unchecked Sendable {
  var made: [String] = []

  override init(
    configuration: URLSessionConfiguration = URLSessionConfiguration.default,
    delegate: SessionDelegate = SessionDelegate(), serverTrustPolicyManager: ServerTrustPolicyManager? = nil
  ) {
    super.init(
      configuration: configuration, delegate: delegate, serverTrustPolicyManager: serverTrustPolicyManager)
    made.append("configuration")
  }

  override init?(
    session: URLSession, delegate: SessionDelegate, serverTrustPolicyManager: ServerTrustPolicyManager? = nil
  ) {
    super.init(session: session, delegate: delegate, serverTrustPolicyManager: serverTrustPolicyManager)
    made.append("session")
  }
}

private class ManagerWithATimeout: SessionManager, @unchecked Sendable {
  init(timeout: TimeInterval) {
    let configuration = URLSessionConfiguration.default
    configuration.timeoutIntervalForRequest = timeout
    super.init(configuration: configuration)
  }
}

@Suite("Users who import the generation alone", .timeLimit(.minutes(5))) struct UsersAlone {
  @Test("Classes with variables can be used") func mutableClasses() async throws {
    let server = try HTTPTestServer()
    server.enqueue(.status(401), .status(200))
    let configuration = URLSessionConfiguration.background(withIdentifier: "users")
    configuration.urlCache = nil
    let manager = SessionManager(configuration: configuration)
    let adapter = SigningAdapter()
    manager.adapter = adapter
    manager.retrier = adapter
    let endpoint = Endpoint(server.url("/"))
    let status = await withCheckedContinuation { continuation in
      manager.request(endpoint as any URLRequestConvertible).validate().response(queue: .global()) {
        response in
        continuation.resume(returning: response.response?.statusCode)
      }
    }
    #expect(status == 200)
    #expect(server.recordedRequests.map { $0.header("Authorization") } == ["Bearer old", "Bearer new"])
    #expect(server.recordedRequests.map { $0.header("X-Count") } == ["0", "0"])
    #expect(endpoint.count == 1)
  }

  @Test("Managers can be subclassed by their initializers") func subclasses() {
    #expect(QuietManager().made == ["configuration"])
    let delegate = SessionDelegate()
    let session = URLSession(configuration: .default, delegate: delegate, delegateQueue: nil)
    defer { session.invalidateAndCancel() }
    #expect(QuietManager(session: session, delegate: delegate)?.made == ["session"])
    #expect(QuietManager(session: session, delegate: SessionDelegate()) == nil)
    #expect(ManagerWithATimeout(timeout: 7).session.configuration.timeoutIntervalForRequest == 7)
    // These statements compile without ambiguity.
    let other = SessionDelegate()
    let managers = [
      SessionManager(), SessionManager(configuration: .ephemeral), SessionManager(delegate: other),
      SessionManager(serverTrustPolicyManager: nil), SessionManager(transportOptions: TransportOptions()),
      SessionManager(configuration: .ephemeral, transportOptions: TransportOptions()),
    ]
    #expect(managers[2].delegate === other)
  }

  @Test("A server is evaluated without Apple's functions") func evaluation() async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    let root = try #require(
      try SecCertificate.all(in: Data(TestIdentity.localhostAuthority.certificatePEM.utf8)).first)
    let anchors = [try #require(SecCertificate(data: root.data))]
    func evaluate(_ trust: SecTrust, for host: String) -> Bool {
      trust.policies = [.hostname(host)]
      trust.anchors = anchors
      do { try trust.evaluate() } catch { return false }
      return trust.serverCertificates.first?.publicKey != nil
    }
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = nil
    func response(_ policy: ServerTrustPolicy) async -> (status: Int?, error: URLError?) {
      let manager = SessionManager(
        configuration: configuration,
        serverTrustPolicyManager: ServerTrustPolicyManager(policies: ["localhost": policy]))
      return await withCheckedContinuation { continuation in
        manager.request(server.url("/get")).response(queue: .global()) { [manager] response in
          _ = manager
          continuation.resume(returning: (response.response?.statusCode, response.error as? URLError))
        }
      }
    }
    #expect(await response(.customEvaluation { evaluate($0, for: $1) }).status == 200)
    #expect(
      await response(.customEvaluation { trust, _ in evaluate(trust, for: "a.test") }).error?.code
        == .cancelled)
  }

  @Test("Members of both generations are the same") func sharedMembers() throws {
    let url = try "https://a.test/".asURL()
    let components = try #require(URLComponents(url: url, resolvingAgainstBaseURL: true))
    #expect(try components.asURL() == url.asURL())
    let request = try URLRequest(url: url, method: .post)
    #expect(request.urlRequest?.httpMethod == "POST")
    #expect(try request.asURLRequest() == request)
    #expect(URLSessionConfiguration.background(withIdentifier: "x").identifier == "x")
    #expect(throws: AFError.self) { try "".asURL() }
  }

  @Test("Exported names can be qualified and extended") func exportedNames() {
    let timeline = AlamofireV4.Timeline(requestStartTime: 1 as CFAbsoluteTime, requestCompletedTime: 3)
    #expect(timeline.wholeSeconds == 2)
    #expect(Alamofire.Timeline().wholeSeconds == 0)
    let types: [Any.Type] = [
      AlamofireV4.SecTrust.self, AlamofireV4.SecKey.self, AlamofireV4.SecCertificate.self,
      AlamofireV4.SecPolicy.self,
    ]
    #expect(types.count == 4)
    #expect(AlamofireV4.NSURLAuthenticationMethodServerTrust == "NSURLAuthenticationMethodServerTrust")
    let delegate = QuietDelegate()
    delegate.taskDidComplete = { _, _, error in #expect(error is URLError) }
    #expect(delegate.taskDidComplete != nil && delegate.sessionDidBecomeInvalidWithError == nil)
  }
}

private class QuietDelegate: Alamofire.SessionDelegate, @unchecked Sendable {
  override func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {}
}

extension Alamofire.Timeline {
  fileprivate var wholeSeconds: Int { Int(requestDuration) }
}
