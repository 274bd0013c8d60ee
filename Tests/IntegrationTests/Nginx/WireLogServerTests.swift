import Alamofire
import Foundation
import Scenarios
import Testing

/// The heads and bodies that are reported for each version of HTTP.
@Suite("Log of the wire with nginx", .needsNginx, .timeLimit(.minutes(5)))
struct WireLogServerTests {
  private final class Entries: Sendable {
    private let values = Mutex<[WireLog.Entry]>([])

    func add(_ entry: WireLog.Entry) { values.withLock { $0.append(entry) } }

    func take() -> [WireLog.Entry] {
      values.withLock { values in
        defer { values = [] }
        return values
      }
    }
  }

  private func size(_ part: WireLog.Entry.Part, in entries: [WireLog.Entry]) -> Int {
    entries.filter { $0.part == part }.map(\.byteCount).reduce(0, +)
  }

  @Test("Heads and sizes are reported for each request", .steps, arguments: NginxServer.Entrance.allCases)
  func requests(entrance: NginxServer.Entrance) async throws {
    let server = try await NginxServer.shared
    let session = server.makeSession()
    let entries = Entries()
    let log = WireLog { entries.add($0) }
    let version = entrance == .h2 ? "HTTP/2" : "HTTP/1.1"
    let url = server.url(entrance, "/stored/wire-\(entrance)")
    let body = Data(repeating: 65, count: 50_000)
    for index in 0..<3 {
      step("upload \(index)")
      let stored = await session.upload(body, to: url, method: .put, headers: ["X-Api-Key": "planted"])
        .eventMonitor(log).serializingData(emptyResponseCodes: [200, 201, 204]).response
      log.queue.sync {}
      let sent = entries.take()
      #expect([201, 204].contains(stored.response?.statusCode), "\(stored)")
      let heads = sent.filter { $0.part == .requestHead }.map(\.text)
      #expect(heads.count == 1 && heads[0].hasPrefix("PUT /stored/wire-\(entrance) \(version)\n"))
      // HTTP/2 has names in lower case.
      #expect(heads[0].lowercased().contains("\nx-api-key: <redacted>") && !heads[0].contains("planted"))
      #expect(size(.requestBody, in: sent) == body.count)
      #expect(sent.contains { $0.part == .responseHead && $0.text.hasPrefix("\(version) 20") })
      step("download \(index)")
      let read = await session.request(url).eventMonitor(log).serializingData().response
      log.queue.sync {}
      let received = entries.take()
      #expect(read.value == body)
      #expect(size(.responseBody, in: received) == body.count)
      let transaction = try #require(read.metrics?.transactionMetrics.last)
      #expect(transaction.isReusedConnection || index == 0)
      #expect(transaction.requestHead?.hasPrefix("GET /stored/wire-\(entrance) \(version)\r\n") == true)
      #expect(transaction.requestHead?.hasSuffix("\r\n\r\n") == true)
    }
  }
}

/// The rounds of a login, which the engine performs.
@Suite("Log of the wire with NTLM", .needsProxies, .needsNginx, .timeLimit(.minutes(5)))
struct WireLogLoginTests {
  @Test("Each step of a login has a head, and its secrets are left out") func login() async throws {
    let nginx = try await NginxServer.shared
    let port = try #require(URL(string: nginx.url(.http, "/item"))?.port)
    let gateway = try await NTLMGateway(to: UInt16(port))
    let texts = Mutex<[String]>([])
    let log = WireLog { entry in texts.withLock { $0.append(entry.text) } }
    let session = Session.isolated()
    let response = await session.request(gateway.url("/item")).eventMonitor(log)
      .authenticate(username: "anna", password: "secret").serializingString().response
    #expect(response.value == NginxConfiguration.item, "\(response)")
    #expect(await gateway.loggedRequests(authenticated: 1).contains { $0.status == 200 })
    log.queue.sync {}
    let heads = texts.withLock { $0 }.filter { $0.hasPrefix("GET /item HTTP/1.1") }
    #expect(heads.count == 3, "\(heads)")
    #expect(heads.filter { $0.contains("Authorization: NTLM <redacted>") }.count == 2, "\(heads)")
    let last = response.metrics?.transactionMetrics.last?.requestHead
    #expect(last?.contains("Authorization: NTLM ") == true)
  }
}
