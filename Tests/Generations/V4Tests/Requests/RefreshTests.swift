import AlamofireV4
import Foundation
import HTTPTestServer
import Testing

// The handler of the documentation of the generation. The differences are `request.task?`, because `task` is optional,
// `absoluteString`, because a `URL` has no `urlString`, and a record of its calls.
private class OAuth2Handler: RequestAdapter, RequestRetrier, @unchecked Sendable {
  private typealias RefreshCompletion = (_ succeeded: Bool, _ accessToken: String?, _ refreshToken: String?)
    -> Void

  private let sessionManager: SessionManager = {
    let configuration = URLSessionConfiguration.default
    configuration.httpAdditionalHeaders = SessionManager.defaultHTTPHeaders
    return SessionManager(configuration: configuration)
  }()

  private let lock = NSLock()

  private var clientID: String
  private var baseURLString: String
  private var accessToken: String
  private var refreshToken: String

  private var isRefreshing = false
  private var requestsToRetry: [RequestRetryCompletion] = []

  /// The recorded calls.
  let calls = Notes<String>()
  let adapted = Notes<String>()
  let wasAsked = DispatchSemaphore(value: 0)

  init(clientID: String, baseURLString: String, accessToken: String, refreshToken: String) {
    self.clientID = clientID
    self.baseURLString = baseURLString
    self.accessToken = accessToken
    self.refreshToken = refreshToken
  }

  func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
    if let url = urlRequest.url, url.absoluteString.hasPrefix(baseURLString) {
      var urlRequest = urlRequest
      adapted.add("\(accessToken) \(url.path)")
      urlRequest.setValue("Bearer " + accessToken, forHTTPHeaderField: "Authorization")
      return urlRequest
    }

    return urlRequest
  }

  func should(
    _ manager: SessionManager, retry request: Request, with error: any Error,
    completion: @escaping RequestRetryCompletion
  ) {
    lock.lock()
    defer { lock.unlock() }

    if let response = request.task?.response as? HTTPURLResponse, response.statusCode == 401 {
      requestsToRetry.append(completion)
      calls.add(request.request?.url?.path ?? "")
      defer { wasAsked.signal() }

      if !isRefreshing {
        refreshTokens { [weak self] succeeded, accessToken, refreshToken in
          guard let strongSelf = self else { return }

          strongSelf.lock.lock()
          defer { strongSelf.lock.unlock() }

          if let accessToken = accessToken, let refreshToken = refreshToken {
            strongSelf.accessToken = accessToken
            strongSelf.refreshToken = refreshToken
          }

          strongSelf.requestsToRetry.forEach { $0(succeeded, 0.0) }
          strongSelf.requestsToRetry.removeAll()
        }
      }
    } else {
      completion(false, 0.0)
    }
  }

  private func refreshTokens(completion: @escaping RefreshCompletion) {
    guard !isRefreshing else { return }

    isRefreshing = true

    let urlString = "\(baseURLString)/oauth2/token"

    let parameters: [String: Any] = [
      "access_token": accessToken,
      "refresh_token": refreshToken,
      "client_id": clientID,
      "grant_type": "refresh_token",
    ]

    sessionManager.request(urlString, method: .post, parameters: parameters, encoding: JSONEncoding.default)
      .responseJSON { [weak self] response in
        guard let strongSelf = self else { return }

        if let json = response.result.value as? [String: String] {
          completion(true, json["access_token"], json["refresh_token"])
        } else {
          completion(false, nil, nil)
        }

        strongSelf.isRefreshing = false
      }
  }
}

@Suite("Refreshing of tokens", .timeLimit(.minutes(5))) struct RefreshTests {
  private let gate = Gate()
  private let server: HTTPTestServer
  private let handler: OAuth2Handler

  init() throws {
    let gate = gate
    let routes = Routes.standard
      .adding("/oauth2/token", methods: ["POST"]) { _, _ in
        .json(#"{"access_token": "new", "refresh_token": "newer"}"#).held(by: gate)
      }
      .adding("/items/{n}") { request, parameters in
        request.header("Authorization") == "Bearer new"
          ? .json(#"{"item": "\#(parameters.first ?? "")"}"#) : .status(401)
      }
    server = try HTTPTestServer(routes: routes)
    handler = OAuth2Handler(
      clientID: "12345678", baseURLString: server.baseURL, accessToken: "abcd1234", refreshToken: "ef56789a")
  }

  private func manager(connections: Int) -> SessionManager {
    let manager = SessionManager.isolated { $0.httpMaximumConnectionsPerHost = connections }
    manager.adapter = handler
    manager.retrier = handler
    return manager
  }

  /// Holds the token back until the handler was called `count` times. Blocks a separate thread.
  private func openWhenAsked(_ count: Int) {
    let (handler, gate) = (handler, gate)
    Thread.detachNewThread {
      for _ in 0..<count { handler.wasAsked.wait() }
      gate.open()
    }
  }

  private func items(_ numbers: Range<Int>, of manager: SessionManager) async -> [String] {
    await withTaskGroup(of: (Int, String).self) { group in
      let requests = numbers.map { ($0, manager.request(server.url("/items/\($0)")).validate()) }
      for (number, request) in requests {
        group.addTask { (number, ((await request.json().value as? [String: String])?["item"]) ?? "none") }
      }
      return await group.reduce(into: [(Int, String)]()) { $0.append($1) }.sorted { $0.0 < $1.0 }.map(\.1)
    }
  }

  private var refreshes: Int { server.recordedRequests.count { $0.path == "/oauth2/token" } }

  @Test("Two hundred requests cause one refresh and are retried in order") func oneConnection() async {
    // One connection, so that the server sees the order.
    let manager = manager(connections: 1)
    openWhenAsked(200)
    #expect(await items(0..<200, of: manager) == (0..<200).map { "\($0)" })
    #expect(refreshes == 1)
    #expect(handler.adapted.all.filter { $0.hasPrefix("new ") } == handler.calls.all.map { "new \($0)" })
  }

  @Test("Two hundred requests over several connections cause one refresh") func severalConnections() async {
    let manager = manager(connections: 6)
    openWhenAsked(200)
    #expect(await items(0..<200, of: manager) == (0..<200).map { "\($0)" })
    #expect(refreshes == 1 && handler.calls.count == 200)
  }

  @Test("One handler serves two managers") func twoManagers() async {
    let (first, second) = (manager(connections: 6), manager(connections: 6))
    openWhenAsked(40)
    async let ones = items(0..<20, of: first)
    async let others = items(20..<40, of: second)
    #expect(await ones + others == (0..<40).map { "\($0)" })
    #expect(refreshes == 1)
  }
}
