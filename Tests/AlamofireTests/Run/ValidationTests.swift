import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@Suite("Validation of responses", .timeLimit(.minutes(5)))
struct ValidationTests {
  private func error(_ reply: FakeReply, _ validate: (DataRequest) -> DataRequest) async -> AFError? {
    await validate(Session.retained(fake: FakeTransport(reply)).request("http://a.test/")).end().error
  }

  @Test(
    "Automatic validation accepts statuses of 2xx",
    arguments: [(200, true), (299, true), (199, false), (304, false), (500, false)])
  func automatic(status: Int, passes: Bool) async {
    let error = await error(.status(status)) { $0.validate() }
    #expect((error == nil) == passes)
    #expect(error?.responseCode == (passes ? nil : status))
  }

  @Test("Automatic validation reads the content types of Accept") func automaticContentType() async {
    func failure(accept: String, type: String, body: String = "x") async -> AFError? {
      let fake = FakeTransport(.status(200, body, headers: [("Content-Type", type)]))
      return await Session.retained(fake: fake).request("http://a.test/", headers: [.accept(accept)])
        .validate()
        .end().error
    }
    #expect(await failure(accept: "application/json", type: "application/json; charset=utf-8") == nil)
    #expect(await failure(accept: "image/*", type: "image/png") == nil)
    #expect(await failure(accept: "text/html, */*", type: "a/b") == nil)
    #expect(await failure(accept: "application/json", type: "text/html", body: "") == nil)
    let wrong = await failure(accept: "text/x,application/json", type: "text/html")
    #expect(wrong?.acceptableContentTypes == ["application/json", "text/x"])
    #expect(wrong?.responseContentType == "text/html")
  }

  @Test("Explicit statuses and content types are validated") func explicitRules() async {
    #expect(await error(.status(201)) { $0.validate(statusCode: [200, 201]) } == nil)
    #expect(await error(.status(202)) { $0.validate(statusCode: [200, 201]) }?.responseCode == 202)
    #expect(await error(.status(200)) { $0.validate(statusCode: [Int]()) }?.responseCode == 200)
    #expect(await error(.status(404)) { $0.validate(statusCode: 400..<500) } == nil)
    #expect(await error(.json("1")) { $0.validate(contentType: ["application/json"]) } == nil)
    #expect(await error(.json("1")) { $0.validate(contentType: ["*/json"]) } == nil)
    #expect(
      await error(.json("1")) { $0.validate(contentType: [String]()) }?.isResponseValidationError == true)
    #expect(await error(.status(200)) { $0.validate(contentType: [String]()) } == nil)
    let missing = await error(.status(200, "x")) { $0.validate(contentType: ["text/plain"]) }
    guard case .responseValidationFailed(.missingContentType(["text/plain"]))? = missing else {
      Issue.record("\(String(describing: missing))")
      return
    }
  }

  @Test("Closures are called with the priority of the task that has started the request")
  func priority() async {
    let session = Session.retained(fake: FakeTransport())
    let priorities = Recorder<TaskPriority>()
    await Task.detached(priority: .high) {
      let request = session.request("http://a.test/").validate { _, _, _ in
        priorities.add(Task.currentPriority)
        return .success(())
      }
      _ = await request.end()
    }.value
    #expect(priorities.values == [.high])
  }

  @Test("The closure of content types is evaluated at validation") func lateContentTypes() async {
    let calls = Recorder<Void>()
    @Sendable func types() -> [String] {
      calls.add(())
      return ["application/json"]
    }
    let request = Session.retained(fake: FakeTransport(.json("1"))).request("http://a.test/")
      .validate(contentType: types())
    #expect(calls.count == 0)
    #expect(await request.end().error == nil)
    #expect(calls.count == 1)
  }

  @Test("Validators run in order until the first failure") func order() async {
    let recorder = Recorder<String>()
    let error = await error(.json("1")) { request in
      request
        .validate { _, _, _ in
          recorder.add("one")
          return .success(())
        }
        .validate(statusCode: 200..<300)
        .validate { _, _, _ in
          recorder.add("two")
          return .failure(TestError(text: "two"))
        }
        .validate { _, _, _ in
          recorder.add("three")
          return .failure(TestError(text: "three"))
        }
    }
    #expect(recorder.values == ["one", "two"])
    guard case .responseValidationFailed(.customValidationFailed(let cause))? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(cause as? TestError == TestError(text: "two"))
  }

  @Test("An AFError of a validator is not wrapped") func validatorError() async {
    let error = await error(.json("1")) { $0.validate { _, _, _ in .failure(AFError.sessionDeinitialized) } }
    #expect(error?.isSessionDeinitializedError == true)
  }

  @Test("A validator receives request, response and data") func arguments() async {
    let fake = FakeTransport(.status(418, "tea", headers: [("X-A", "b")]))
    let seen = Recorder<(URLRequest?, Int, String?, Data?)>()
    let response = await Session.retained(fake: fake).request("http://a.test/")
      .validate { request, response, data in
        seen.add((request, response.statusCode, response.value(forHTTPHeaderField: "x-a"), data))
        return .success(())
      }.end()
    #expect(response.error == nil)
    let values = seen.values
    #expect(values.count == 1)
    #expect(values.first?.0?.url?.absoluteString == "http://a.test/")
    #expect(values.first?.1 == 418)
    #expect(values.first?.2 == "b")
    #expect(values.first?.3 == Data("tea".utf8))
  }

  @Test("A failed transfer skips validation") func failedTransfer() async {
    let count = Recorder<Void>()
    let error = await error(.failure(.timedOut)) { request in
      request.validate { _, _, _ in
        count.add(())
        return .success(())
      }
    }
    #expect((error?.underlyingError as? URLError)?.code == .timedOut)
    #expect(count.count == 0)
  }

  @Test("A failed validation preserves the data") func dataOfFailure() async {
    let response = await Session.retained(fake: FakeTransport(.status(500, "why"))).request("http://a.test/")
      .validate().end()
    #expect(response.data == Data("why".utf8))
    #expect(response.error?.responseCode == 500)
    #expect(response.response?.statusCode == 500)
  }
}
