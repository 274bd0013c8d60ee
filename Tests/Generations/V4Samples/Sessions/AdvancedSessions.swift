import AlamofireV4
import Foundation
import HTTPTestServer
import Testing

// The advanced usage of 4.x: managers and delegates. (Seeds 000 and 001 have the same samples.)

private class LoggingSessionDelegate: SessionDelegate, @unchecked Sendable {
  override func urlSession(
    _ session: URLSession,
    task: URLSessionTask,
    willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest,
    completionHandler: @escaping (URLRequest?) -> Void
  ) {
    print("URLSession will perform HTTP redirection to request: \(request)")

    super.urlSession(
      session,
      task: task,
      willPerformHTTPRedirection: response,
      newRequest: request,
      completionHandler: completionHandler
    )
  }
}

extension Samples {
  @Suite struct AdvancedSessions {
    let environment: SampleEnvironment
    init() throws { environment = try SampleEnvironment.set() }

    @Test func theDefaultManager() async throws {
      Alamofire.request("https://httpbin.org/get")

      let sessionManager = Alamofire.SessionManager.default
      sessionManager.request("https://httpbin.org/get")

      #expect(try await environment.requests(2).map(\.path) == ["/get", "/get"])
    }

    private func answers(_ sessionManager: SessionManager) async -> Bool {
      await withCheckedContinuation { continuation in
        sessionManager.request("https://httpbin.org/get").responseJSON {
          continuation.resume(returning: $0.result.isSuccess)
        }
      }
    }

    @Test func aManagerWithTheDefaultConfiguration() async {
      let configuration = URLSessionConfiguration.default
      let sessionManager = Alamofire.SessionManager(configuration: configuration)

      #expect(await answers(sessionManager))
    }

    @Test func aManagerWithABackgroundConfiguration() async {
      let configuration = URLSessionConfiguration.background(withIdentifier: "com.example.app.background")
      let sessionManager = Alamofire.SessionManager(configuration: configuration)

      #expect(await answers(sessionManager))
    }

    @Test func aManagerWithAnEphemeralConfiguration() async {
      let configuration = URLSessionConfiguration.ephemeral
      let sessionManager = Alamofire.SessionManager(configuration: configuration)

      #expect(await answers(sessionManager))
    }

    @Test func modifyingTheConfiguration() async throws {
      // Seed 000 asks an instance for them, which never had any.
      var defaultHeaders = Alamofire.SessionManager.defaultHTTPHeaders
      defaultHeaders["DNT"] = "1 (Do Not Track Enabled)"

      let configuration = URLSessionConfiguration.default
      configuration.httpAdditionalHeaders = defaultHeaders

      let sessionManager = Alamofire.SessionManager(configuration: configuration)

      #expect(await answers(sessionManager))
      #expect(try await environment.request().header("DNT") == "1 (Do Not Track Enabled)")
    }

    // The document lists four of the closures that replace the default behaviour.
    @Test func overrideClosures() {
      let delegate = SessionManager().delegate
      delegate.sessionDidReceiveChallenge = { _, _ in (.performDefaultHandling, nil) }
      delegate.sessionDidFinishEventsForBackgroundURLSession = { _ in }
      delegate.taskWillPerformHTTPRedirection = { _, _, _, request in request }
      delegate.dataTaskWillCacheResponse = { _, _, response in response }
      #expect(delegate.sessionDidReceiveChallenge != nil)
    }

    @Test(arguments: ["apple.com", "example.com"])
    func redirectsAreKeptFromAHost(host: String) async throws {
      let sessionManager = Alamofire.SessionManager(configuration: URLSessionConfiguration.default)

      let delegate: Alamofire.SessionDelegate = sessionManager.delegate

      delegate.taskWillPerformHTTPRedirection = { session, task, response, request in
        var finalRequest = request

        // The document asks the URL for its `urlString`, which never existed.
        if let originalRequest = task.originalRequest,
          let urlString = originalRequest.url?.absoluteString,
          urlString.contains("apple.com")
        {
          finalRequest = originalRequest
        }

        return finalRequest
      }

      sessionManager.request("https://httpbin.org/redirect-to?url=/get&for=\(host)").response { response in
        print(response.error == nil, response.response?.url?.path ?? "")
      }
      let line = await printed()[0]
      // Sent to itself again and again, until there are too many.
      #expect(line == (host == "apple.com" ? "false /redirect-to" : "true /get"))
    }

    @Test func subclassingTheDelegate() async throws {
      let sessionManager = SessionManager(delegate: LoggingSessionDelegate())
      sessionManager.request("https://httpbin.org/redirect-to?url=/get").response { response in
        print(response.response?.url?.path)
      }

      let lines = await printed(2)
      #expect(lines[0] == "URLSession will perform HTTP redirection to request: https://httpbin.org/get")
      #expect(lines[1] == "/get")
    }

    // The text of the document, without a sample.
    @Test func requestsAreSuspendedResumedAndCancelled() async throws {
      let sessionManager = SessionManager()
      sessionManager.startRequestsImmediately = false
      let request = sessionManager.request("https://httpbin.org/get").response { print($0.error) }
      request.suspend()
      request.resume()
      #expect(await printed() == ["nil"])
      let cancelled = sessionManager.request("https://httpbin.org/get").response { response in
        print((response.error as? URLError)?.code == .cancelled)
      }
      cancelled.cancel()
      #expect(await printed() == ["true"])
    }
  }
}
