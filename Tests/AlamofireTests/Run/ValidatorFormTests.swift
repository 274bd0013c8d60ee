import Alamofire
import Foundation
import FoundationNetworking
import Testing

@Suite("Validators of each kind of request", .timeLimit(.minutes(1))) struct ValidatorFormTests {
  /// Adds a validator to a request of each kind, which receives a text with status 207.
  private func failures(
    accept: String? = nil, data: (DataRequest) -> DataRequest, download: (DownloadRequest) -> DownloadRequest,
    stream: (DataStreamRequest) -> DataStreamRequest
  ) async -> [Bool] {
    let reply = FakeReply.status(207, "text", headers: [("Content-Type", "text/plain")])
    let session = Session.retained(fake: FakeTransport { _, _ in reply })
    let headers: HTTPHeaders? = accept.map { ["Accept": $0] }
    let first = data(session.request("http://a.test/", headers: headers))
    let second = download(session.download("http://a.test/", headers: headers))
    let third = stream(session.streamRequest("http://a.test/", headers: headers))
    let ended = Recorder<AFError?>()
    third.responseStream(on: .global()) { if let completion = $0.completion { ended.add(completion.error) } }
    let file = await second.serializingDownloadedFileURL().response
    file.removeFile()
    let errors = [await first.end().error, file.error, await ended.wait(for: 1).first ?? nil]
    return errors.map { $0?.isResponseValidationError == true }
  }

  @Test("Statuses can be any sequence", arguments: [207, 208])
  func statuses(status: Int) async {
    let isRefused = [Bool](repeating: status != 207, count: 3)
    let array = await failures(
      data: { $0.validate(statusCode: [status, 300]) }, download: { $0.validate(statusCode: [status, 300]) },
      stream: { $0.validate(statusCode: [status, 300]) })
    #expect(array == isRefused)
    let range = await failures(
      data: { $0.validate(statusCode: status..<209) }, download: { $0.validate(statusCode: status..<209) },
      stream: { $0.validate(statusCode: status..<209) })
    #expect(range == isRefused)
    let closed = await failures(
      data: { $0.validate(statusCode: status...209) }, download: { $0.validate(statusCode: status...209) },
      stream: { $0.validate(statusCode: status...209) })
    #expect(closed == isRefused)
  }

  @Test("Content types are compared with the response", arguments: ["text/plain", "image/png", "*/*"])
  func contentTypes(type: String) async {
    let refused = await failures(
      data: { $0.validate(contentType: [type]) }, download: { $0.validate(contentType: [type]) },
      stream: { $0.validate(contentType: [type]) })
    #expect(refused == [Bool](repeating: type == "image/png", count: 3))
  }

  @Test(
    "The automatic validation takes the types of the field Accept",
    arguments: [nil, "text/plain", "image/png"])
  func automatic(accept: String?) async {
    let refused = await failures(
      accept: accept, data: { $0.validate() }, download: { $0.validate() }, stream: { $0.validate() })
    #expect(refused == [Bool](repeating: accept == "image/png", count: 3))
  }

  @Test("A closure sees the request, the response and the body") func closures() async {
    let seen = Recorder<String>()
    let refused = await failures(
      data: {
        $0.validate { request, response, data in
          seen.add("\(request?.httpMethod ?? "") \(response.statusCode) \(data?.count ?? 0)")
          return .failure(TestError())
        }
      },
      download: {
        $0.validate { request, response, file in
          let data = file.flatMap { try? Data(contentsOf: $0) }
          seen.add("\(request?.httpMethod ?? "") \(response.statusCode) \(data?.count ?? 0)")
          return .success(())
        }
      },
      stream: {
        $0.validate { request, response in
          seen.add("\(request?.httpMethod ?? "") \(response.statusCode)")
          return .failure(TestError())
        }
      })
    #expect(refused == [true, false, true])
    #expect(seen.values.sorted() == ["GET 207", "GET 207 4", "GET 207 4"])
  }
}
