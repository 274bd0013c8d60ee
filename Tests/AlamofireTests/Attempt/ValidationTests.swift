import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@Suite("Validation in the pipeline", .timeLimit(.minutes(5)))
struct ValidationTests {
  private func error(_ reply: FakeReply, _ validate: (DataRequest) -> DataRequest) async -> AFError? {
    await validate(Session.kept(fake: FakeTransport(reply)).request("http://a.test/")).end().error
  }

  @Test(
    "Automatic status codes", arguments: [(200, true), (299, true), (199, false), (304, false), (500, false)])
  func automatic(status: Int, passes: Bool) async {
    let error = await error(.status(status)) { $0.validate() }
    #expect((error == nil) == passes)
    #expect(error?.responseCode == (passes ? nil : status))
  }

  @Test func automaticContentTypeFollowsAccept() async {
    func failure(accept: String, type: String, body: String = "x") async -> AFError? {
      let fake = FakeTransport(.status(200, body, headers: [("Content-Type", type)]))
      return await Session.kept(fake: fake).request("http://a.test/", headers: [.accept(accept)]).validate()
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

  @Test func explicitCodesAndTypes() async {
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

  @Test func theTypesAreAskedForLate() async {
    let asked = Recorder<Void>()
    @Sendable func types() -> [String] {
      asked.add(())
      return ["application/json"]
    }
    let request = Session.kept(fake: FakeTransport(.json("1"))).request("http://a.test/")
      .validate(contentType: types())
    #expect(asked.count == 0)
    #expect(await request.end().error == nil)
    #expect(asked.count == 1)
  }

  @Test func theyRunInOrderAndTheFirstFailureEndsIt() async {
    let journal = Recorder<String>()
    let error = await error(.json("1")) { request in
      request
        .validate { _, _, _ in
          journal.add("one")
          return .success(())
        }
        .validate(statusCode: 200..<300)
        .validate { _, _, _ in
          journal.add("two")
          return .failure(TestError(text: "two"))
        }
        .validate { _, _, _ in
          journal.add("three")
          return .failure(TestError(text: "three"))
        }
    }
    #expect(journal.values == ["one", "two"])
    guard case .responseValidationFailed(.customValidationFailed(let cause))? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(cause as? TestError == TestError(text: "two"))
  }

  @Test func anAFErrorOfAValidatorIsKept() async {
    let error = await error(.json("1")) { $0.validate { _, _, _ in .failure(AFError.sessionDeinitialized) } }
    #expect(error?.isSessionDeinitializedError == true)
  }

  @Test func aValidatorSeesRequestResponseAndData() async {
    let fake = FakeTransport(.status(418, "tea", headers: [("X-A", "b")]))
    let seen = Recorder<(URLRequest?, Int, String?, Data?)>()
    let response = await Session.kept(fake: fake).request("http://a.test/")
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

  @Test func failedTransfersSkipValidation() async {
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

  @Test func aFailedValidationKeepsTheData() async {
    let response = await Session.kept(fake: FakeTransport(.status(500, "why"))).request("http://a.test/")
      .validate().end()
    #expect(response.data == Data("why".utf8))
    #expect(response.error?.responseCode == 500)
    #expect(response.response?.statusCode == 500)
  }
}
