import Alamofire
import Foundation
import HTTPTestServer
import Synchronization
import Testing

/// The effects of a server on logs, descriptions and errors of the library.
@Suite(.timeLimit(.minutes(5))) struct HostileTextTests {
  /// The part of hostile text that a header field can hold: C1 controls, direction marks and line separators.
  private static let evil = "a\u{9B}31mb\u{202E}c\u{2066}d\u{85}e\u{9D}52;c;ZXZpbA==\u{9C}f\u{2028}g\u{7F}"

  private static let answers: [(name: String, reply: Reply)] = [
    ("field", raw("200 OK\r\nX-A: \(evil)\r\nContent-Type: text/plain")),
    ("media type", raw("200 OK\r\nContent-Type: text/\(evil)")),
    ("cookie", raw("200 OK\r\nSet-Cookie: n\(evil)=1")), ("reason", raw("200 \(evil)")),
    ("location", raw("302 Found\r\nLocation: /\(evil)")),
    ("scheme", raw("302 Found\r\nLocation: x\(evil):y")),
    ("status line", raw("\u{1B}[2J")), ("no HTTP", .raw("\u{1B}]52;c;eA==\u{07}\r\n")),
    ("name", raw("200 OK\r\nX\(evil): a")), ("coding", raw("200 OK\r\nContent-Encoding: \(evil)")),
    ("transfer coding", raw("200 OK\r\nTransfer-Encoding: \(evil)")),
    (
      "body",
      Reply(
        headers: [.contentType("text/plain")],
        body: .parts([.bytes(Array("\(evil)\u{1B}[2J\r\n\u{08}".utf8))]))
    ),
    (
      "JSON",
      Reply(
        headers: [.contentType("application/json")], body: .parts([.bytes(Array("{\"\(evil)\": 1}".utf8))]))
    ),
    (
      "trailers",
      Reply(body: .parts(["text"])).framed(.chunked).with(trailers: [HTTPHeader(name: "X-T", value: evil)])
    ),
    ("early response", raw("103 Early Hints\r\nLink: \(evil)\r\n\r\nHTTP/1.1 200 OK")),
  ]

  private static func raw(_ head: String) -> Reply {
    .raw("HTTP/1.1 \(head)\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody")
  }

  @Test("Logs, descriptions and errors are readable whatever the server sends", arguments: answers.indices)
  func answer(index: Int) async throws {
    let (name, reply) = Self.answers[index]
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(reply, .text("end"))
    let lines = Mutex<[String]>([])
    let log = RequestLog(level: .debug, bodyLimit: 500) { entry in
      lines.withLock { $0 += [entry.message, entry.description, entry.url ?? ""] }
    }
    let wire = WireLog { entry in lines.withLock { $0 += entry.text.components(separatedBy: "\n") } }
    let recorder = RequestRecorder(bodyLimit: 500)
    let session = Session.real(configuration: .isolated, eventMonitors: [log, wire, recorder])
    let request = session.request(server.url("/a")).validate(contentType: ["image/png"])
    let response = await request.serializingDecodable([String: Int].self).response
    for queue in [log.queue, wire.queue, recorder.queue] { queue.sync {} }
    let all = lines.withLock { $0 }
    #expect(!all.isEmpty)
    for line in all { expectReadable(line, name, isLine: true) }
    let texts = [
      response.description, response.debugDescription, request.description, recorder.timeline(),
      response.metrics?.description ?? "", response.error?.localizedDescription ?? "",
      response.error?.description ?? "", response.error?.debugDescription ?? "",
      (response.error?.underlyingError as? URLError)?.localizedDescription ?? "",
      response.response.map { "\(HTTPHeaders($0.allHeaderFields as? [String: String] ?? [:]))" } ?? "",
    ]
    for text in texts { expectReadable(text, name) }
    // An archive is a file, in which JSON escapes what it has to.
    #expect(try JSONSerialization.jsonObject(with: recorder.har()) is [String: Any])
  }

  @Test("Errors of event streams and web sockets are readable", arguments: ["events", "socket"])
  func streams(kind: String) async throws {
    let server = try HTTPTestServer(routes: .none)
    let session = Session.real(configuration: .isolated)
    var error: AFError?
    switch kind {
    case "events":
      server.enqueue(Self.raw("200 OK\r\nContent-Type: text/\(Self.evil)"))
      error = await withCheckedContinuation { continuation in
        session.eventSourceRequest(server.url("/")).responseEvents { stream in
          if case .complete(let completion) = stream.event {
            continuation.resume(returning: completion.error)
          }
        }
      }
    default:
      server.enqueue(
        .raw("HTTP/1.1 101 \(Self.evil)\r\nUpgrade: \(Self.evil)\r\nConnection: Upgrade\r\n\r\n"))
      error = await withCheckedContinuation { continuation in
        session.webSocketRequest(to: server.url("/")).streamMessageEvents { event in
          if case .completed(let completion) = event.kind { continuation.resume(returning: completion.error) }
        }
      }
    }
    let failure = try #require(error)
    expectReadable(failure.localizedDescription, kind)
    expectReadable("\(failure)", kind)
  }

  @Test("Descriptions of values are readable") func values() {
    let header = HTTPHeader(name: "X", value: "a\u{1B}[2J\r\nb\u{202E}")
    #expect(header.description == #"X: a\u001B[2J\r\nb\u202E"#)
    #expect(HTTPHeaders([header]).description == header.description)
    let error = AFError.responseValidationFailed(
      reason: .unacceptableContentType(acceptableContentTypes: ["a/b"], responseContentType: "x\u{9B}y"))
    #expect(error.localizedDescription.contains(#"x\u009By"#))
    expectReadable("\(error)", "error")
  }

  private func expectReadable(_ text: String, _ name: String, isLine: Bool = false) {
    let bad = text.unicodeScalars.filter { scalar in
      let category = scalar.properties.generalCategory
      if scalar == "\n" || scalar == "\t" { return isLine }
      return category == .control || category == .format || category == .lineSeparator
    }
    #expect(bad.isEmpty, "\(name): \(text.debugDescription)")
  }
}
