import Foundation
import FoundationNetworking
import HTTPTestServer
import Synchronization
import Testing

@testable import Alamofire

/// Trailer fields after the body of an upload.
@Suite("Trailers of uploads", .timeLimit(.minutes(5))) struct UploadTrailerTests {
  private let server: HTTPTestServer

  init() throws {
    server = try HTTPTestServer(routes: .none)
  }

  private static func fields(_ request: RecordedRequest?) -> [String] {
    request?.trailers.map { "\($0.name): \($0.value)" } ?? []
  }

  private func code(_ response: AFDataResponse<Data?>) -> URLError.Code? {
    (response.error?.underlyingError as? URLError)?.code
  }

  @Test("Data, files and streams are followed by trailers") func bodies() async throws {
    let file = FileManager.default.temporaryDirectory.appending(path: "trailers-\(UUID()).txt")
    try Data("file".utf8).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    let session = Session.real(configuration: .isolated)
    let url = server.url("/")
    for (text, request) in [
      ("data", session.upload(Data("data".utf8), to: url)), ("file", session.upload(file, to: url)),
      ("stream", session.upload(InputStream(data: Data("stream".utf8)), to: url)),
      ("", session.upload(Data(), to: url)),
    ] {
      server.enqueue(.ok)
      let response = await request.trailers(announcing: ["X-Length"]) { ["X-Length": "\(text.count)"] }.end()
      #expect(response.error == nil, "\(text)")
      let received = try #require(server.recordedRequests.last)
      #expect(received.bodyText == text && received.isChunked && received.isBodyComplete, "\(text)")
      #expect(Self.fields(received) == ["X-Length: \(text.count)"], "\(text)")
      #expect(received.header("Trailer") == "X-Length" && received.header("Content-Length") == nil, "\(text)")
    }
  }

  @Test("A digest is computed while the body is sent") func digest() async throws {
    server.enqueue(.ok)
    let sum = Mutex(0)
    let chunks = AsyncStream<Data> { continuation in
      for text in ["a", "bc", "def"] { continuation.yield(Data(text.utf8)) }
      continuation.finish()
    }.map { chunk in
      sum.withLock { sum in sum += chunk.reduce(0) { $0 + Int($1) } }
      return chunk
    }
    let expected = "abcdef".utf8.reduce(0) { $0 + Int($1) }
    let names = Recorder<String>()
    let response = await Session.real(configuration: .isolated)
      .upload(chunks, to: server.url("/"))
      .trailers {
        names.add(threadName())
        return ["X-Sum": "\(sum.withLock { $0 })"]
      }.end()
    #expect(response.error == nil)
    #expect(server.recordedRequests.last?.bodyText == "abcdef")
    #expect(Self.fields(server.recordedRequests.last) == ["X-Sum: \(expected)"])
    #expect(names.values.count == 1 && names.values != ["http-engine"])
  }

  @Test(
    "A body that a redirect handler gives does not have the trailers of the upload", arguments: [303, 307])
  func otherBody(status: Int) async {
    server.enqueue(.redirect(to: "/there", status: status), .ok)
    let response = await Session.real(configuration: .isolated)
      .upload(Data("body".utf8), to: server.url("/")).trailers { ["X-Length": "4"] }
      .redirect(
        using: .modify { _, request, _ in
          var request = request
          request.httpMethod = "PUT"
          request.httpBody = Data("other".utf8)
          return request
        }
      ).end()
    #expect(response.error == nil)
    #expect(server.recordedRequests.map(\.bodyText) == ["body", "other"])
    #expect(server.recordedRequests.map { Self.fields($0) } == [["X-Length: 4"], []])
  }

  @Test("A redirect handler that changes a field leaves the body with its trailers") func otherField() async {
    server.enqueue(.redirect(to: "/there", status: 307), .ok)
    let response = await Session.real(configuration: .isolated)
      .upload(Data("body".utf8), to: server.url("/")).trailers { ["X-Length": "4"] }
      .redirect(
        using: .modify { _, request, _ in
          var request = request
          request.setValue("1", forHTTPHeaderField: "X-Own")
          return request
        }
      ).end()
    #expect(response.error == nil)
    #expect(server.recordedRequests.map(\.bodyText) == ["body", "body"])
    #expect(server.recordedRequests.map { $0.header("X-Own") } == [nil, "1"])
    #expect(server.recordedRequests.map { Self.fields($0) } == [["X-Length: 4"], ["X-Length: 4"]])
  }

  /// Uploads a body whose digest is protected.
  private func uploadProtected(
    _ change: (UploadRequest) -> UploadRequest = { $0 }
  ) async -> AFDataResponse<Data?> {
    var options = TransportOptions()
    options.protectedHeaders = ["x-sum"]
    let request = Session.real(configuration: .isolated, options: options)
      .upload(Data("body".utf8), to: server.url("/"))
      .trailers(announcing: ["X-Sum", "X-Length"]) { ["X-Sum": "secret", "X-Length": "4"] }
    return await change(request).end()
  }

  /// Whether the last request has the protected trailer, and the other one in any case.
  private static func hasSum(_ server: HTTPTestServer) throws -> Bool {
    let request = try #require(server.recordedRequests.last)
    let hasSum = request.trailers.contains { $0.name == "X-Sum" }
    #expect(request.bodyText == "body" && request.isBodyComplete)
    #expect(fields(request) == (hasSum ? ["X-Sum: secret", "X-Length: 4"] : ["X-Length: 4"]))
    #expect(request.header("Trailer") == (hasSum ? "X-Sum, X-Length" : "X-Length"))
    return hasSum
  }

  @Test("A redirect sends protected trailers to no other origin") func protectedFields() async throws {
    let other = try HTTPTestServer(routes: .none)
    server.enqueue(.redirect(to: "/there", status: 307), .ok)
    #expect(await uploadProtected().error == nil)
    #expect(try Self.hasSum(server), "the origin is the same")
    server.enqueue(.redirect(to: other.url("/there"), status: 307))
    other.enqueue(.redirect(to: server.url("/back"), status: 307))
    server.enqueue(.ok)
    #expect(await uploadProtected().error == nil)
    #expect(try !Self.hasSum(other), "the origin is another one")
    #expect(server.recordedRequests.last?.path == "/back")
    #expect(try !Self.hasSum(server), "another origin has led back")
  }

  @Test("A redirect handler takes protected trailers to no other origin") func protectedFieldsOfHandler()
    async throws
  {
    let other = try HTTPTestServer(routes: .none)
    server.enqueue(.redirect(to: "/there", status: 307))
    other.enqueue(.ok)
    let url = other.url("/elsewhere")
    let response = await uploadProtected {
      $0.redirect(
        using: .modify { _, request, _ in
          var request = request
          request.url = URL(string: url)
          return request
        })
    }
    #expect(response.error == nil)
    #expect(other.recordedRequests.map(\.path) == ["/elsewhere"])
    #expect(try !Self.hasSum(other))
  }

  @Test("Each time that the body is sent has its own trailers") func repetitions() async throws {
    let challenge = Reply(
      status: 401, headers: [HTTPHeader(name: "WWW-Authenticate", value: #"Basic realm="r""#)])
    for (first, hasBody) in [
      (Reply.redirect(to: "/there", status: 307), true), (Reply.redirect(to: "/there", status: 308), true),
      (Reply.redirect(to: "/there", status: 303), false), (challenge, true), (Reply.status(503), true),
    ] {
      server.forgetRequests()
      server.enqueue(first, .ok)
      let calls = Mutex(0)
      let session = Session.real(
        configuration: .isolated, interceptor: RetryPolicy(exponentialBackoffScale: 0))
      let response = await session.upload(Data("body".utf8), to: server.url("/"), method: .put)
        .authenticate(username: "u", password: "p")
        .trailers {
          [
            "X-Call": calls.withLock {
              $0 += 1; return "\($0)"
            }
          ]
        }.validate().end()
      #expect(response.error == nil, "\(first)")
      let requests = server.recordedRequests
      #expect(requests.map(\.bodyText) == ["body", hasBody ? "body" : ""], "\(first)")
      #expect(requests.map(Self.fields) == [["X-Call: 1"], hasBody ? ["X-Call: 2"] : []], "\(first)")
      #expect(requests.last?.isChunked == hasBody, "\(first)")
    }
  }

  @Test("Trailers of the last call are sent, and none without a field") func lastCall() async throws {
    server.enqueue(.ok, .ok)
    let session = Session.real(configuration: .isolated)
    let request = session.upload(Data("a".utf8), to: server.url("/")).trailers { ["X-A": "1"] }
    #expect(await request.trailers { ["X-B": "2"] }.end().error == nil)
    #expect(Self.fields(server.recordedRequests.last) == ["X-B: 2"])
    #expect(await session.upload(Data("a".utf8), to: server.url("/")).trailers { [] }.end().error == nil)
    #expect(Self.fields(server.recordedRequests.last).isEmpty)
  }

  @Test(
    "A field that must not be a trailer is an error, and is not retried",
    arguments: [("Content-Type", "a/b"), ("X-A", "b\r\nC: planted"), ("X A", "1")])
  func refused(name: String, value: String) async throws {
    server.enqueue(.ok, .ok)
    let calls = Mutex(0)
    let session = Session.real(
      configuration: .isolated, interceptor: RetryPolicy(exponentialBackoffScale: 0))
    let request = session.upload(Data("a".utf8), to: server.url("/"), method: .put)
    let response = await request.trailers {
      calls.withLock { $0 += 1 }
      return HTTPHeaders([HTTPHeader(name: name, value: value)])
    }.end()
    #expect(code(response) == .badURL && request.retryCount == 0)
    let text = response.error?.localizedDescription ?? ""
    #expect(text.contains(name) && !text.contains("planted"), "\(text)")
    #expect(calls.withLock { $0 } == 1)
  }

  @Test("An announced name that must not be a trailer is an error before anything is sent") func refusedName()
    async throws
  {
    let response = await Session.real(configuration: .isolated).upload(Data("a".utf8), to: server.url("/"))
      .trailers(announcing: ["Content-Length"]) { [:] }.end()
    #expect(code(response) == .badURL && server.connectionCount == 0)
  }

  @Test("A description as a command of curl does not change") func curl() {
    let session = Session.real(configuration: .isolated, startRequestsImmediately: false)
    let request = session.upload(Data("a".utf8), to: server.url("/"))
    let before = request.cURLDescription()
    #expect(request.trailers(announcing: ["X-A"]) { ["X-A": "1"] }.cURLDescription() == before)
  }
}
