import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

@Suite("Header fields as the server sees them", .timeLimit(.minutes(5)))
struct HeadersOnTheWireTests {
  private func recorded(
    _ session: Session = .real(), headers: HTTPHeaders? = nil, method: HTTPMethod = .get
  ) async throws -> RecordedRequest {
    let server = try HTTPTestServer()
    let response = await session.request(server.url("/anything#part"), method: method, headers: headers).end()
    #expect(response.error == nil)
    return try await server.takeRequest()
  }

  @Test("The default fields are sent") func defaultFields() async throws {
    let request = try await recorded()
    #expect(request.header("Accept-Encoding") == HTTPHeader.defaultAcceptEncoding.value)
    #expect(request.header("Accept-Language") == HTTPHeader.defaultAcceptLanguage.value)
    #expect(request.header("User-Agent") == HTTPHeader.defaultUserAgent.value)
    #expect(request.header("Accept") == "*/*")
    #expect(request.header("User-Agent")?.hasSuffix("Alamofire/\(AFInfo.version)") == true)
    #expect(request.target == "/anything")
    let names = request.headers.map { $0.name.lowercased() }
    #expect(Set(names).count == names.count, "no field comes twice")
    #expect(Set(names) == ["host", "accept-encoding", "accept-language", "user-agent", "accept"])
  }

  @Test("The default codings are the engine's") func codings() {
    let decoded = ContentCoding.allCases.map(\.rawValue)
    #expect(Set(ContentCodings.supported).isSubset(of: decoded))
    #expect(ContentCodings.supported == ["br", "gzip", "deflate"].filter(decoded.contains))
    #expect(ContentCodings.supported.contains("gzip"))
    #expect(HTTPHeader.defaultAcceptEncoding.value.hasPrefix("\(ContentCodings.supported[0]);q=1.0"))
  }

  @Test("Fields of a request override defaults by their case-insensitive names") func ownFields() async throws
  {
    let request = try await recorded(headers: [
      "ACCEPT": "text/x", "user-agent": "mine/1", "accept-language": "tlh", "accept-encoding": "identity",
      "X-Own": "ä",
    ])
    for (name, value) in [
      ("Accept", "text/x"), ("User-Agent", "mine/1"), ("Accept-Language", "tlh"),
      ("Accept-Encoding", "identity"),
      ("X-Own", "ä"),
    ] {
      #expect(request.headers(named: name) == [value])
    }
  }

  @Test("A name can be sent several times, each value in a separate field") func repeatedFields()
    async throws
  {
    let server = try HTTPTestServer()
    let session = Session.real()
    let fields = [
      HTTPHeader(name: "X-A", value: "2"), HTTPHeader(name: "x-a", value: "3"),
      HTTPHeader(name: "X-B", value: "4"),
      HTTPHeader(name: "Content-Length", value: "7"), HTTPHeader(name: "Transfer-Encoding", value: "chunked"),
      HTTPHeader(name: "Host", value: "evil.example"),
    ]
    server.enqueue(.redirect(to: "/there"), .text("end"))
    let request = session.request(server.url("/here"), headers: ["X-A": "1"])
      .transportOptions { $0.repeatedHeaders = fields }
    let response = await request.serializingString().response
    #expect(response.value == "end")
    for _ in 0..<2 {
      let sent = try await server.takeRequest()
      #expect(sent.headers(named: "X-A") == ["1", "2", "3"])
      #expect(sent.headers(named: "X-B") == ["4"])
      #expect(sent.headers(named: "Host").count == 1 && sent.headers(named: "Content-Length").isEmpty)
    }
    let hop = response.metrics?.transactionMetrics.first as? TransactionMetrics
    #expect(hop?.requestFields.filter { $0.name.lowercased() == "x-a" }.map(\.value) == ["1", "2", "3"])
  }

  @Test("A redirect handler that changes another field leaves repeated ones separate")
  func repeatedFieldsAfterHandler() async throws {
    let (server, other) = (try HTTPTestServer(), try HTTPTestServer())
    server.enqueue(.redirect(to: "/there"), .redirect(to: other.url("/get")))
    let names = ["X-A", "X-Secret", "X-Changed"]
    let request = Session.real().request(server.url("/here")).transportOptions {
      $0.protectedHeaders = ["X-Secret"]
      $0.repeatedHeaders = names.flatMap { name in
        ["1", "2"].map { HTTPHeader(name: name, value: $0) }
      }
    }.redirect(
      using: .modify { _, request, _ in
        var request = request
        request.setValue("1", forHTTPHeaderField: "X-Redirected")
        request.setValue("3", forHTTPHeaderField: "X-Changed")
        return request
      })
    _ = await request.serializingData().response
    #expect(try await server.takeRequest().headers(named: "X-Changed") == ["1", "2"])
    let second = try await server.takeRequest()
    #expect(second.headers(named: "X-A") == ["1", "2"] && second.headers(named: "X-Secret") == ["1", "2"])
    #expect(second.headers(named: "X-Changed") == ["3"] && second.headers(named: "X-Redirected") == ["1"])
    let third = try await other.takeRequest()
    #expect(third.headers(named: "X-A") == ["1", "2"])
    #expect(third.headers(named: "X-Secret").isEmpty, "secrets do not leave their origin")
    #expect(third.headers(named: "X-Changed") == ["3"])
  }

  @Test(
    "A repeated field that cannot be sent safely fails the request", arguments: ["a\r\nX-Evil: 1", "a\u{0}"])
  func unsafeRepeatedFields(value: String) async throws {
    let server = try HTTPTestServer()
    for headers in [nil, ["X-A": "1"]] as [HTTPHeaders?] {
      let request = Session.real().request(server.url("/get"), headers: headers)
        .transportOptions { $0.repeatedHeaders = [HTTPHeader(name: "X-A", value: value)] }
      let response = await request.serializingData().response
      #expect((response.error?.underlyingError as? URLError)?.code == .badURL)
    }
    #expect(server.requestCount == 0)
  }

  @Test("Secret repeated fields do not leave their origin") func secretRepeatedFields() async throws {
    let (server, other) = (try HTTPTestServer(), try HTTPTestServer())
    server.enqueue(.redirect(to: other.url("/get")))
    let request = Session.real().request(server.url("/here")).transportOptions {
      $0.protectedHeaders = ["X-Secret"]
      $0.repeatedHeaders = [
        HTTPHeader(name: "X-Secret", value: "1"), HTTPHeader(name: "X-Secret", value: "2"),
        HTTPHeader(name: "Authorization", value: "Bearer t"), HTTPHeader(name: "X-Open", value: "3"),
      ]
    }
    _ = await request.serializingData().response
    #expect(try await server.takeRequest().headers(named: "X-Secret") == ["1", "2"])
    let sent = try await other.takeRequest()
    #expect(sent.headers(named: "X-Secret").isEmpty && sent.headers(named: "Authorization").isEmpty)
    #expect(sent.headers(named: "X-Open") == ["3"])
  }

  @Test("Fields of the configuration are sent and can be overridden") func configurationFields() async throws
  {
    let configuration = URLSessionConfiguration.af.default
    configuration.httpAdditionalHeaders?["X-Session"] = "session"
    configuration.httpAdditionalHeaders?["X-Both"] = "session"
    let session = Session.real(configuration: configuration)
    configuration.httpAdditionalHeaders = ["X-Late": "late"]
    let request = try await recorded(session, headers: ["x-both": "request"])
    #expect(request.headers(named: "X-Session") == ["session"])
    #expect(request.headers(named: "X-Both") == ["request"])
    #expect(request.header("X-Late") == nil)
  }

  @Test(
    "Methods are sent unchanged", arguments: ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PURGE"])
  func methods(method: String) async throws {
    #expect(try await recorded(method: HTTPMethod(rawValue: method)).method == method)
  }

  @Test("An encoded body is decoded", arguments: ["/gzip", "/deflate"])
  func decoded(path: String) async throws {
    struct Flags: Decodable, Sendable {
      var gzipped: Bool?
      var deflated: Bool?
    }
    let server = try HTTPTestServer()
    let request = Session.real().request(server.url(path))
    let completed = Recorder<Int64>()
    request.downloadProgress(queue: .global()) { completed.add($0.totalUnitCount) }
    let flags = try await request.serializingDecodable(Flags.self).value
    #expect(flags.gzipped ?? flags.deflated == true)
    #expect(request.response?.value(forHTTPHeaderField: "Content-Encoding") != nil)
    #expect(request.downloadProgress.totalUnitCount == -1)
    #expect(await completed.wait(for: 1).allSatisfy { $0 == -1 })
  }
}
