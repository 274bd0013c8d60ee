import Foundation
import HTTPTestServer
import Synchronization
import Testing

@testable import Alamofire

/// Secrets that go through a real exchange: nothing that the library writes for people shows one.
@Suite("Planted secrets in exchanges", .timeLimit(.minutes(5))) struct PlantedSecretTransferTests {
  /// Everything that a session writes for people.
  private final class Output: Sendable {
    private let lines = Lines()
    let recorder = RequestRecorder(bodyLimit: 10_000)
    let log: RequestLog
    let wire: WireLog

    private final class Lines: Sendable {
      let values = Mutex<[String]>([])
    }

    init() {
      log = RequestLog(level: .debug, bodyLimit: 10_000) { [lines] entry in
        lines.values.withLock { $0.append("\(entry) \(entry.url ?? "")") }
      }
      wire = WireLog { [lines] entry in lines.values.withLock { $0.append("\(entry)") } }
    }

    var monitors: [any EventMonitor] { [log, wire, recorder] }

    /// Returns all texts so far.
    func texts() throws -> [String] {
      for queue in [log.queue, wire.queue, recorder.queue] { queue.sync {} }
      return lines.values.withLock { $0 } + [
        recorder.timeline(), String(decoding: try recorder.har(), as: UTF8.self),
      ]
    }
  }

  private func descriptions(_ response: DataResponse<Data, AFError>, _ request: DataRequest) -> [String] {
    [
      response.description, response.debugDescription, request.description,
      response.metrics?.description ?? "",
      response.error?.localizedDescription ?? "", response.error?.description ?? "",
      (response.error?.underlyingError as? URLError)?.localizedDescription ?? "",
    ]
  }

  @Test("Secrets of header fields are not shown, sent and received") func fields() async throws {
    let server = try HTTPTestServer(routes: .none)
    for (name, value) in PlantedSecrets.fields {
      server.enqueue(
        .raw("HTTP/1.1 200 OK\r\n\(name): \(value)\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"))
      let output = Output()
      let session = Session.real(configuration: .isolated, eventMonitors: output.monitors)
      let request = session.request(server.url("/"), headers: [name: value])
      let response = await request.serializingData(emptyResponseCodes: [200]).response
      let texts = descriptions(response, request) + (try output.texts())
      for text in texts { #expect(!text.contains("planted"), "\(name): \(value): \(text)") }
    }
  }

  @Test("Secrets of URLs are not shown, in requests and in failures") func urls() async throws {
    for url in PlantedSecrets.urls {
      let local = url.replacing("https", with: "http").replacing("@h", with: "@127.0.0.1:1")
        .replacing("//h", with: "//127.0.0.1:1")
      let output = Output()
      let session = Session.real(configuration: .isolated, eventMonitors: output.monitors)
      let request = session.request(local)
      let response = await request.serializingData().response
      #expect(response.error != nil, "\(local)")
      for text in descriptions(response, request) + (try output.texts()) {
        #expect(!text.contains("planted"), "\(local): \(text)")
      }
    }
  }

  @Test("Secrets of bodies are not shown, sent and received") func bodies() async throws {
    let server = try HTTPTestServer(routes: .none)
    for (type, text) in PlantedSecrets.bodies {
      var reply = Reply(status: 200, body: .parts([.bytes(Array(text.utf8))]))
      if let type { reply.headers.append(.contentType(type)) }
      server.enqueue(reply)
      let output = Output()
      let session = Session.real(configuration: .isolated, eventMonitors: output.monitors)
      var sent = URLRequest(url: try #require(URL(string: server.url("/a"))))
      sent.httpMethod = "POST"
      sent.httpBody = Data(text.utf8)
      if let type { sent.setValue(type, forHTTPHeaderField: "Content-Type") }
      let request = session.request(sent)
      let response = await request.validate(contentType: ["x/y"]).serializingData().response
      for shown in descriptions(response, request) + (try output.texts()) {
        #expect(!shown.contains("planted"), "\(text): \(shown)")
      }
    }
  }

  @Test("Secrets of redirects and trailers are not shown") func redirects() async throws {
    let server = try HTTPTestServer(routes: .none)
    let targets = [
      "/a#access_token=planted", "/a?code=planted&b=c", "/a;jsessionid=planted",
      "?next=%2F%3Ftoken%3Dplanted",
    ]
    for target in targets { server.enqueue(.redirect(to: target)) }
    server.enqueue(
      Reply(body: .parts(["end"])).framed(.chunked).with(trailers: [
        HTTPHeader(name: "X-Token", value: "planted HTTP/1.1"),
        HTTPHeader(name: "Set-Cookie", value: "planted"),
      ]))
    let output = Output()
    let session = Session.real(configuration: .isolated, eventMonitors: output.monitors)
    let request = session.request(server.url("/start?key=planted"))
    let response = await request.serializingData().response
    #expect(response.value == Data("end".utf8) && server.requestCount == targets.count + 1)
    for text in descriptions(response, request) + (try output.texts()) {
      #expect(!text.contains("planted"), "\(text)")
    }
  }

  @Test("A secret that the limit of a log cuts is not shown") func cutBodies() async throws {
    let server = try HTTPTestServer(routes: .none)
    let body = "see https://ann:planted-planted@h/ and token=planted; more text"
    for limit in 1...body.utf8.count {
      server.enqueue(.text(body))
      let messages = Mutex<[String]>([])
      let log = RequestLog(bodyLimit: limit) { entry in messages.withLock { $0.append(entry.message) } }
      _ = await Session.real(configuration: .isolated, eventMonitors: [log]).request(server.url("/"))
        .serializingData().response
      log.queue.sync {}
      let text = messages.withLock { $0.joined() }
      #expect(text.contains("received ") && !text.contains("planted"), "\(text)")
    }
  }

  @Test("A trailer is not mistaken for a start line") func trailerLine() {
    let redaction = Redaction.standard
    #expect(
      WireHead(Array("X-Token: planted HTTP/1.1\r\n\r\n".utf8), redaction).text == "X-Token: <redacted>")
    #expect(
      WireHead(Array("GET /?token=planted HTTP/1.1\r\n\r\n".utf8), redaction).text
        == "GET /?token=redacted HTTP/1.1")
  }

  @Test("Cookies of an archive have names and no values") func archiveCookies() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(
      .raw(
        "HTTP/1.1 200 OK\r\nSet-Cookie: planted\r\nSet-Cookie: b=planted; Path=/\r\nContent-Length: 0\r\n\r\n"
      ))
    let recorder = RequestRecorder()
    let session = Session.real(configuration: .isolated, eventMonitors: [recorder])
    _ = await session.request(server.url("/"), headers: ["Cookie": "a=planted; planted; =planted"])
      .serializingData(emptyResponseCodes: [200]).response
    recorder.queue.sync {}
    let har = try #require(try JSONSerialization.jsonObject(with: recorder.har()) as? [String: Any])
    let entry = ((har["log"] as? [String: Any])?["entries"] as? [[String: Any]])?.first
    func cookies(_ part: String) -> [[String]] {
      ((entry?[part] as? [String: Any])?["cookies"] as? [[String: String]] ?? [])
        .map { [$0["name"] ?? "", $0["value"] ?? ""] }
    }
    #expect(cookies("request") == [["a", "<redacted>"], ["", "<redacted>"], ["", "<redacted>"]])
    #expect(cookies("response") == [["", "<redacted>"], ["b", "<redacted>"]])
  }
}
