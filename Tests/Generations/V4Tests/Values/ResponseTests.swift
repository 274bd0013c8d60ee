import AlamofireV4
import Testing

@Suite("Responses and timelines") struct ResponseTests {
  private struct Mishap: Error {}

  private let timeline = Timeline(
    requestStartTime: 1, initialResponseTime: 1.428, requestCompletedTime: 1.4281,
    serializationCompletedTime: 1.4294)

  private let durations =
    #""Latency": 0.428 secs, "Request Duration": 0.428 secs, "Serialization Duration": 0.001 secs, "#
    + #""Total Duration": 0.429 secs"#

  @Test("The durations of a timeline are computed from its dates") func durationsOfDates() {
    #expect(timeline.latency == timeline.initialResponseTime - 1)
    #expect(timeline.requestDuration == timeline.requestCompletedTime - 1)
    #expect(timeline.totalDuration == timeline.serializationCompletedTime - 1)
    #expect(
      timeline.serializationDuration == timeline.serializationCompletedTime - timeline.requestCompletedTime)
    #expect(Timeline().totalDuration == 0)
  }

  @Test("A timeline is printed with three decimals") func description() {
    #expect("\(timeline)" == "Timeline: { \(durations) }")
    let moments =
      #""Request Start Time": 1.000, "Initial Response Time": 1.428, "Request Completed Time": 1.428, "#
      + #""Serialization Completed Time": 1.429"#
    #expect(String(reflecting: timeline) == "Timeline: { \(moments), \(durations) }")
  }

  @Test("A data response describes its parts") func dataResponse() throws {
    let request = try URLRequest(url: "http://a.test/get", method: .get)
    let response = DataResponse(
      request: request, response: nil, data: Data("four".utf8), result: .success(4), timeline: timeline)
    #expect(response.value == 4 && response.error == nil)
    #expect("\(response)" == "SUCCESS: 4")
    let lines = String(reflecting: response).split(separator: "\n")
    #expect(
      lines == [
        "[Request]: GET http://a.test/get", "[Response]: nil", "[Data]: 4 bytes", "[Result]: SUCCESS: 4",
        "[Timeline]: \(String(reflecting: timeline))",
      ])
  }

  @Test("A mapped data response preserves the other properties") func mappedDataResponse() throws {
    let request = try URLRequest(url: "http://a.test/get", method: .get)
    let response = DataResponse(
      request: request, response: nil, data: Data([1]), result: .success(4), timeline: timeline)
    let text = response.map { "\($0)" }
    #expect(text.value == "4" && text.request == request && text.data == Data([1]))
    #expect(text.timeline.totalDuration == timeline.totalDuration)
    let failed = response.flatMap { _ -> Int in throw Mishap() }
    #expect(failed.error is Mishap && failed.value == nil)
    #expect(failed.map { $0 + 1 }.error is Mishap)
    #expect(failed.mapError { _ in CancellationError() }.error is CancellationError)
    #expect(failed.flatMapError { _ -> Mishap in throw CancellationError() }.error is CancellationError)
    #expect(response.mapError { _ in Mishap() }.value == 4)
  }

  @Test("A download response describes its file") func downloadResponse() {
    let response = DownloadResponse<Int>(
      request: nil, response: nil, temporaryURL: URL(fileURLWithPath: "/tmp/a"), destinationURL: nil,
      resumeData: Data(count: 3), result: .failure(Mishap()))
    #expect(response.error is Mishap && "\(response)" == "FAILURE: Mishap()")
    let lines = String(reflecting: response).split(separator: "\n")
    #expect(
      lines == [
        "[Request]: nil", "[Response]: nil", "[TemporaryURL]: /tmp/a", "[DestinationURL]: nil",
        "[ResumeData]: 3 bytes", "[Result]: FAILURE: Mishap()",
        "[Timeline]: \(String(reflecting: Timeline()))",
      ])
  }

  @Test("Debug descriptions leave out secrets") func secrets() throws {
    let request = try URLRequest(url: "http://ann:pw@a.test/get?token=T&q=1", method: .post)
    let answer = HTTPURLResponse(
      url: try #require(request.url), statusCode: 404, httpVersion: nil,
      headerFields: ["Set-Cookie": "s=C; Path=/", "X-Count": "4"])
    let data = DataResponse(request: request, response: answer, data: nil, result: .success(4))
    let download = DownloadResponse(
      request: request, response: answer, temporaryURL: nil, destinationURL: nil, resumeData: nil,
      result: .success(4))
    for text in [String(reflecting: data), String(reflecting: download)] {
      let lines = text.split(separator: "\n")
      #expect(lines[0] == "[Request]: POST http://redacted@a.test/get?token=redacted&q=1")
      #expect(
        lines[1] == "[Response]: 404 http://redacted@a.test/get?token=redacted&q=1 "
          + "{ Set-Cookie: s=<redacted>; Path=/, X-Count: 4 }")
    }
  }

  @Test("The debug description of a failed request leaves out secrets") func secretsOfFailures() async throws
  {
    let manager = SessionManager.isolated()
    let request = manager.request("http://ann:pw@127.0.0.1:1/get?token=T")
    let refused = await request.json()
    #expect((refused.error as? URLError)?.code == .cannotConnectToHost)
    let text = String(reflecting: refused)
    #expect(text.contains("127.0.0.1:1/get?token=redacted") && !text.contains("pw@"))
    #expect(!text.contains("token=T"))
  }

  @Test("A mapped download response preserves the other properties") func mappedDownloadResponse() {
    let place = URL(fileURLWithPath: "/tmp/b")
    let response = DownloadResponse(
      request: nil, response: nil, temporaryURL: place, destinationURL: place, resumeData: Data([1]),
      result: .success(4), timeline: timeline)
    let text = response.map { "\($0)" }
    #expect(text.value == "4" && text.temporaryURL == place && text.destinationURL == place)
    #expect(text.resumeData == Data([1]) && text.timeline.latency == timeline.latency)
    let failed = response.flatMap { _ -> Int in throw Mishap() }
    #expect(failed.error is Mishap)
    #expect(failed.mapError { _ in CancellationError() }.error is CancellationError)
    #expect(failed.flatMapError { _ -> Mishap in throw CancellationError() }.error is CancellationError)
  }

  @Test("Plain responses are created from their parts") func plainResponses() {
    let data = DefaultDataResponse(request: nil, response: nil, data: Data([1]), error: Mishap())
    #expect(data.data == Data([1]) && data.error is Mishap && data.metrics == nil)
    #expect(data.timeline.totalDuration == 0)
    let download = DefaultDownloadResponse(
      request: nil, response: nil, temporaryURL: nil, destinationURL: nil, resumeData: Data([2]), error: nil,
      timeline: timeline)
    #expect(download.resumeData == Data([2]) && download.error == nil && download.metrics == nil)
    #expect(download.timeline.totalDuration == timeline.totalDuration)
  }
}
