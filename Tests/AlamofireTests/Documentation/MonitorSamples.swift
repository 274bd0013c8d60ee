import Alamofire
import Dispatch
import FoundationNetworking

// Samples of the comments on monitors, handlers and delegates; see `SampleTests`.

private enum LoggerSample {
  struct Logger: EventMonitor {
    let queue = DispatchQueue(label: "log")

    func requestDidFinish(_ request: Request) { print(request.description) }
  }

  static func run() {
    let session = Session(eventMonitors: [Logger()])
    _ = session
  }
}

private func closureMonitorSample() {
  let monitor = ClosureEventMonitor()
  monitor.requestDidFinish = { request in print(request.description) }
  let session = Session(eventMonitors: [monitor])
  _ = session
}

private func notificationsSample() {
  let session = Session(eventMonitors: [AlamofireNotifications()])
  _ = session
}

private func redirectorSample() {
  let redirector = Redirector(
    behavior: .modify { task, request, response in
      var request = request
      request.setValue("1", forHTTPHeaderField: "X-Redirected")
      return request
    })
  AF.request("https://example.com/old").redirect(using: redirector)
}

private func cacherSample() {
  let cacher = ResponseCacher(
    behavior: .modify { task, response in
      response.data.count < 10_000 ? response : nil
    })
  AF.request("https://example.com/").cacheResponse(using: cacher)
}

private enum WantedEventsSample {
  final class Gatekeeper: SessionDelegate, @unchecked Sendable {
    init() {
      super.init()
      wantedEvents = .trust
    }

    override func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      completionHandler(.performDefaultHandling, nil)
    }
  }
}

private enum DelegateSample {
  final class Stricter: SessionDelegate, @unchecked Sendable {
    override func urlSession(
      _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
      newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
    ) {
      completionHandler(nil)
    }
  }

  static func run() {
    let session = Session(delegate: Stricter())
    _ = session
  }
}

private enum Names {
  typealias URLSessionTaskMetrics = Alamofire.URLSessionTaskMetrics
  typealias URLSessionTaskTransactionMetrics = Alamofire.URLSessionTaskTransactionMetrics
}
