import AlamofireV4
import Foundation
import HTTPTestServer
import Testing

// The advanced usage of 4.x: adapting and retrying requests.

private class AccessTokenAdapter: RequestAdapter {
  private let accessToken: String

  init(accessToken: String) {
    self.accessToken = accessToken
  }

  func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
    var urlRequest = urlRequest

    // The document asks the request for its `urlString`; the migration guide says to write this instead.
    if let urlString = urlRequest.url?.absoluteString, urlString.hasPrefix("https://httpbin.org") {
      urlRequest.setValue("Bearer " + accessToken, forHTTPHeaderField: "Authorization")
    }

    return urlRequest
  }
}

private class OAuth2Handler: RequestAdapter, RequestRetrier {
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

  // MARK: - Initialization

  /// Makes a handler with the tokens of a login.
  public init(clientID: String, baseURLString: String, accessToken: String, refreshToken: String) {
    self.clientID = clientID
    self.baseURLString = baseURLString
    self.accessToken = accessToken
    self.refreshToken = refreshToken
  }

  // MARK: - RequestAdapter

  func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
    // `url.absoluteString`: the document writes `url.urlString`.
    if let url = urlRequest.url, url.absoluteString.hasPrefix(baseURLString) {
      var urlRequest = urlRequest
      urlRequest.setValue("Bearer " + accessToken, forHTTPHeaderField: "Authorization")
      return urlRequest
    }

    return urlRequest
  }

  // MARK: - RequestRetrier

  func should(
    _ manager: SessionManager, retry request: Request, with error: Error,
    completion: @escaping RequestRetryCompletion
  ) {
    lock.lock()
    defer { lock.unlock() }

    // `task?`: the document uses the task as if it were not optional.
    if let response = request.task?.response as? HTTPURLResponse, response.statusCode == 401 {
      requestsToRetry.append(completion)

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

  // MARK: - Private - Refresh Tokens

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

/// The short form of the migration guide.
private class RetryAfterASecond: RequestRetrier {
  func should(
    _ manager: SessionManager, retry request: Request, with error: Error,
    completion: @escaping RequestRetryCompletion
  ) {
    if let response = request.task?.response as? HTTPURLResponse, response.statusCode == 401 {
      completion(request.retryCount == 0, 1.0)  // retry after 1 second
    } else {
      completion(false, 0.0)  // don't retry
    }
  }
}

extension Samples {
  @Suite struct AdvancedAdapters {
    let environment: SampleEnvironment
    init() throws { environment = try SampleEnvironment.set() }

    @Test func requestAdapter() async throws {
      let sessionManager = SessionManager()
      sessionManager.adapter = AccessTokenAdapter(accessToken: "1234")

      sessionManager.request("https://httpbin.org/get")

      #expect(try await environment.request().header("Authorization") == "Bearer 1234")
    }

    @Test func requestRetrierShortForm() async throws {
      let sessionManager = SessionManager()
      sessionManager.retrier = RetryAfterASecond()
      let start = Date()

      sessionManager.request("https://httpbin.org/status/401").validate().responseJSON { response in
        debugPrint(response)
      }

      #expect(await printed()[0].contains("FAILURE"))
      #expect(environment.server.requestCount == 2)
      #expect(Date().timeIntervalSince(start) >= 1)
    }

    @Test func requestRetrier() async throws {
      let gate = Gate()
      let expired = Reply.json(#"{"error":"expired"}"#).with(status: 401)
      environment.server.enqueue(
        expired, .json(#"{"access_token":"new","refresh_token":"newer"}"#).held(by: gate),
        .json(#"{"some":"endpoint"}"#))
      gate.open()
      let baseURLString = "https://some.domain-behind-oauth2.com"

      let oauthHandler = OAuth2Handler(
        clientID: "12345678",
        baseURLString: baseURLString,
        accessToken: "abcd1234",
        refreshToken: "ef56789a"
      )

      let sessionManager = SessionManager()
      sessionManager.adapter = oauthHandler
      sessionManager.retrier = oauthHandler

      let urlString = "\(baseURLString)/some/endpoint"

      sessionManager.request(urlString).validate().responseJSON { response in
        debugPrint(response)
      }

      #expect(await printed()[0].contains("endpoint"))
      let requests = try await environment.requests(3)
      #expect(requests.map(\.path) == ["/some/endpoint", "/oauth2/token", "/some/endpoint"])
      #expect(requests[0].header("Authorization") == "Bearer abcd1234")
      #expect(requests[1].json?["refresh_token"] as? String == "ef56789a")
      #expect(requests[2].header("Authorization") == "Bearer new")
    }
  }
}

extension Reply {
  fileprivate func with(status: Int) -> Reply {
    var reply = self
    reply.status = status
    return reply
  }
}
