import AlamofireV3
import Foundation
import FoundationNetworking
import HTTPTestServer
import Scenarios
import Testing

// Code of users, compiled in both language modes: classes with variables and without `Sendable`.

/// A router with variables that signs its requests.
private class SigningRouter: URLRequestConvertible {
  let base: String
  var path = "/get"
  var token: String?
  var count = 0

  init(base: String) { self.base = base }

  var URLRequest: NSMutableURLRequest {
    count += 1
    // A type has the same name as the member. Where a type is expected, the type is found.
    let value: Foundation.URL? = URL(string: base + path)
    let request = NSMutableURLRequest(url: value ?? URL(fileURLWithPath: "/"))
    if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
    return request
  }

  func annotated(_ request: URLRequest) -> URLRequest { request }
}

private class Endpoint: URLStringConvertible {
  var base: String
  init(_ base: String) { self.base = base }
  var URLString: String { base + "/get" }
}

private class Policies: ServerTrustPolicyManager {
  var calls = 0
  override func serverTrustPolicyForHost(_ host: String) -> ServerTrustPolicy? {
    calls += 1
    return super.serverTrustPolicyForHost(host)
  }
}

/// Values that a program collects in its handlers.
private class Model {
  var status = 0
  var lines: [String] = []
  var encodings = 0
}

private enum Failure: Error { case own }

@Suite(.timeLimit(.minutes(5))) struct MutableClassesTests {
  private func manager() -> Manager {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = nil
    return Manager(configuration: configuration, serverTrustPolicyManager: Policies(policies: [:]))
  }

  @Test("Classes with variables can be used", .steps) func mutableClasses() async throws {
    let server = try HTTPTestServer()
    let manager = manager()
    let router = SigningRouter(base: server.baseURL)
    router.token = "1234"
    let model = Model()
    let own = ParameterEncoding.Custom { request, parameters in
      model.encodings += 1
      return ParameterEncoding.URL.encode(request, parameters: parameters)
    }
    manager.delegate.taskDidComplete = { _, _, _ in model.lines.append("complete") }
    step("request of a router")
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      manager.request(router)
        .validate { _, response in
          model.status = response.statusCode
          return .Success
        }
        .progress { _, total, _ in model.lines.append("\(total)") }
        .responseJSON { response in
          if case .Success = response.result { model.lines.append("success") }
          continuation.resume()
        }
    }
    #expect(router.count == 1)
    #expect(model.status == 200)
    #expect(model.lines.contains("success"))
    #expect(try await server.takeRequest().header("Authorization") == "Bearer 1234")
    step("encoding of the caller")
    manager.request(.GET, Endpoint(server.baseURL), parameters: ["a": model.status], encoding: own)
    #expect(model.encodings == 1)
    #expect(try await server.takeRequest().target == "/get?a=200")
    step("parameters of any type")
    let untyped: [String: Any] = ["b": 1]
    manager.request(.POST, server.url("/post"), parameters: untyped)
    #expect(try await server.takeRequest().bodyText == "b=1")
  }

  /// Closures of the main actor are called on the same queues as before: handlers on the main one, others elsewhere.
  @MainActor @Test("Closures of the main actor can be used") func mainActor() async throws {
    let server = try HTTPTestServer()
    let manager = manager()
    manager.startRequestsImmediately = false
    let model = Model()
    manager.delegate.dataTaskDidReceiveData = { _, _, _ in print("received") }
    let own = ResponseSerializer<Int, NSError> { _, response, _, _ in .Success(response?.statusCode ?? 0) }
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      manager.request(.GET, server.url("/bytes/100000"))
        .progress { _, _, _ in print("moved") }
        .stream { _ in print("came") }
        .validate { _, _ in .Success }
        .response(responseSerializer: own) { response in
          model.status = response.result.value ?? 0
          continuation.resume()
        }
        .resume()
    }
    #expect(model.status == 200)
  }

  @Test("Errors of the user are Swift errors") func ownErrors() {
    // In a file that imports this generation, `Error` is Swift's. The other one is `Alamofire.Error`.
    let error: any Error = Failure.own
    #expect(error as? Failure == .own)
    #expect(Alamofire.Error.Domain == "com.alamofire.error")
  }
}
