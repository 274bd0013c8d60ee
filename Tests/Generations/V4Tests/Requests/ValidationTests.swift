import AlamofireV4
import Foundation
import HTTPTestServer
import Testing

@Suite("Validation of responses", .timeLimit(.minutes(5))) struct ValidationTests {
  private struct Own: Error {}

  private let server: HTTPTestServer
  private let manager = SessionManager.isolated()

  init() throws { server = try HTTPTestServer() }

  @Test("Without validation every status is accepted") func noValidation() async {
    let response = await manager.request(server.url("/status/500")).ended()
    #expect(response.error == nil && response.response?.statusCode == 500)
  }

  @Test("Status codes and content types are validated") func statusAndContentType() async {
    let status = await manager.request(server.url("/status/404")).validate(statusCode: 200..<300).ended()
    #expect((status.error as? AFError)?.responseCode == 404)
    let none = await manager.request(server.url("/get")).validate(statusCode: [Int]()).ended()
    #expect((none.error as? AFError)?.responseCode == 200)
    let type = await manager.request(server.url("/get")).validate(contentType: ["image/*", "text/html"])
      .ended()
    #expect((type.error as? AFError)?.responseContentType == "application/json")
    #expect((type.error as? AFError)?.acceptableContentTypes == ["image/*", "text/html"])
    let fine = await manager.request(server.url("/get")).validate(contentType: ["*/json"]).ended()
    #expect(fine.error == nil)
    server.enqueue(.raw("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"))
    let missing = await manager.request(server.url("/")).validate(contentType: ["text/plain"]).ended()
    guard case .responseValidationFailed(.missingContentType)? = missing.error as? AFError else {
      Issue.record("\(String(describing: missing.error))")
      return
    }
  }

  @Test("Automatic validation reads Accept") func automaticValidation() async {
    let refused = await manager.request(server.url("/get"), headers: ["Accept": "image/png, text/*"])
      .validate().ended()
    #expect((refused.error as? AFError)?.responseContentType == "application/json")
    let fine = await manager.request(server.url("/get"), headers: ["Accept": "image/png, application/json"])
      .validate().ended()
    #expect(fine.error == nil)
  }

  @Test("An error of a validator is delivered unchanged and ends the validation") func validatorError() async
  {
    let later = Notes<Int>()
    let response = await manager.request(server.url("/get"))
      .validate { request, response, data in
        #expect(request?.url != nil && response.statusCode == 200 && data?.isEmpty == false)
        return .failure(Own())
      }
      .validate { _, _, _ in
        later.add(1)
        return .success
      }
      .json()
    #expect(response.error is Own && later.count == 0)
  }

  @Test("A validator that is added after the response is called") func lateValidator() async {
    let request = manager.request(server.url("/status/418"))
    #expect(await request.ended().error == nil)
    let response = await request.validate().ended()
    #expect((response.error as? AFError)?.responseCode == 418 && server.requestCount == 1)
    #expect((request.delegate.error as? AFError)?.responseCode == 418)
  }

  @Test("A validator that is added after the response can cause a retry") func retryOfLateValidator() async {
    let retrier = ScriptedRetrier { _, count in (count == 0, 0) }
    manager.retrier = retrier
    server.enqueue(.status(503), .text("fine"))
    let request = manager.request(server.url("/"))
    #expect(await request.ended().response?.statusCode == 503)
    let response = await request.validate().text()
    #expect(response.value == "fine" && retrier.calls.count == 1 && request.retryCount == 1)
  }

  @Test("A validator that is added after the response can cause a retry of a request that is not kept")
  func retryOfReleasedRequest() async {
    let retrier = ScriptedRetrier { _, count in (count == 0, 0) }
    manager.retrier = retrier
    server.enqueue(.status(503), .text("fine"))
    var request: DataRequest? = manager.request(server.url("/"))
    #expect(await request?.ended().response?.statusCode == 503)
    let (gate, values) = (DispatchSemaphore(value: 0), Notes<String?>())
    request?.validate { _, response, _ in
      // Held until the test has released the request.
      if response.statusCode == 503 { _ = gate.wait(timeout: .now() + 120) }
      return response.statusCode == 503 ? .failure(Own()) : .success
    }.responseString { values.add($0.value) }
    request = nil
    gate.signal()
    #expect(await eventually { values.count == 1 })
    #expect(values.all == ["fine"] && retrier.calls.count == 1)
    #expect(retrier.calls.all.first?.error is Own && server.requestCount == 2)
  }

  @Test("Many fast requests are all validated") func fastRequests() async {
    // The requests start before a check can be added. Each must be validated nevertheless.
    await withTaskGroup(of: Bool.self) { group in
      for _ in 0..<200 {
        group.addTask { await manager.request(server.url("/status/401")).validate().ended().error is AFError }
      }
      for await isRefused in group { #expect(isRefused) }
    }
  }

  @Test("Validators of downloads receive both file URLs") func downloads() async throws {
    let folder = try Folder()
    let target = folder.file("a")
    let response = await manager.download(server.url("/get")) { _, _ in (target, []) }
      .validate { _, _, temporaryURL, destinationURL in
        #expect(temporaryURL != nil && destinationURL == target)
        return .success
      }
      .validate(statusCode: [200]).validate(contentType: ["application/json"]).validate().ended()
    #expect(response.error == nil)
    let refused = await manager.download(server.url("/status/500")) { _, _ in (folder.file("b"), []) }
      .validate().ended()
    #expect((refused.error as? AFError)?.responseCode == 500)
  }
}
