import Alamofire
import ChildProcesses
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite(.timeLimit(.minutes(5))) struct CompressionTests {
  private let fake = FakeTransport()

  private func sent(
    _ body: Data?, _ interceptor: any RequestInterceptor, encoding: String? = nil
  ) async throws -> (body: Data?, encoding: String?, error: AFError?) {
    var request = try URLRequest(url: "http://a.test/", method: .post)
    request.httpBody = body
    if let encoding { request.headers.add(name: "Content-Encoding", value: encoding) }
    let response = await Session.retained(fake: fake, interceptor: interceptor).request(request).end()
    return (fake.requests.last?.body.bytes, fake.requests.last?.value("Content-Encoding"), response.error)
  }

  @Test("One zero byte is compressed to nine bytes") func oneByte() async throws {
    let sent = try await sent(Data([0]), .deflateCompressor)
    #expect(sent.body == Data([0x78, 0x5E, 0x63, 0, 0, 0, 1, 0, 1]))
    #expect(sent.encoding == "deflate")
  }

  @Test("The checksum matches the bytes") func checksum() async throws {
    let sent = try await sent(Data("Wikipedia".utf8), .deflateCompressor)
    #expect(sent.body?.suffix(4) == Data([0x11, 0xE6, 0x03, 0x98]), "300286872, big-endian")
  }

  @Test("A server decompresses the body", arguments: [0, 1, 65_535, 65_536, 65_537, 3_000_000])
  func server(count: Int) async throws {
    let block = Data((0..<32_768).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 7) })
    var body = Data(capacity: count)
    while body.count < count { body += block.prefix(count - body.count) }
    for (interceptor, unpack) in [
      (DeflateRequestCompressor() as any RequestInterceptor, "zlib.decompress(b)"),
      (GzipRequestCompressor() as any RequestInterceptor, "gzip.decompress(b)"),
    ] {
      let sent = try await sent(body, interceptor)
      let program =
        "import sys,zlib,gzip;b=sys.stdin.buffer.read();sys.stdout.buffer.write(\(unpack))"
      #expect(try await Self.python(program, sent.body ?? Data()) == body)
    }
  }

  @Test("A request without a body is not changed") func noBody() async throws {
    let sent = try await sent(nil, .gzipCompressor)
    #expect(sent.body == nil)
    #expect(sent.encoding == nil)
    #expect(sent.error == nil)
  }

  @Test(
    "The body of an upload is not compressed, even if its request has a body",
    arguments: ["data", "file", "stream", "form"])
  func upload(kind: String) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.ok)
    let body = Data("body".utf8)
    let file = FileManager.default.temporaryDirectory.appending(path: "compression-\(UUID()).txt")
    try body.write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    var request = try URLRequest(url: server.url("/"), method: .post)
    request.httpBody = Data("unsent".utf8)
    let session = Session.real(interceptor: DeflateRequestCompressor())
    let upload =
      switch kind {
      case "data": session.upload(body, with: request)
      case "file": session.upload(file, with: request)
      case "stream": session.upload(InputStream(data: body), with: request)
      default: session.upload(multipartFormData: { $0.append(body, withName: "part") }, with: request)
      }
    let response = await upload.end()
    #expect(response.error == nil)
    let seen = try await server.takeRequest()
    #expect(seen.header("Content-Encoding") == nil)
    if kind == "form" {
      #expect(seen.bodyText.contains("\r\n\r\nbody\r\n"))
    } else {
      #expect(seen.bodyText == "body")
    }
    #expect(response.request?.httpBody == nil)
    #expect(!upload.cURLDescription().contains("unsent"))
  }

  @Test("An existing Content-Encoding is an error, unless it is skipped or replaced") func existingCoding()
    async throws
  {
    let body = Data("body".utf8)
    let error = try await sent(body, .deflateCompressor, encoding: "br")
    guard case .requestAdaptationFailed(let reason)? = error.error else {
      Issue.record("\(String(describing: error.error))")
      return
    }
    #expect(reason is DeflateRequestCompressor.DuplicateHeaderError)
    #expect(fake.requests.isEmpty)
    let skipped = try await sent(body, .deflateCompressor(duplicateHeaderBehavior: .skip), encoding: "br")
    #expect(skipped.body == body && skipped.encoding == "br")
    let replaced = try await sent(body, .deflateCompressor(duplicateHeaderBehavior: .replace), encoding: "br")
    #expect(replaced.body != body && replaced.encoding == "deflate")
  }

  @Test("Both compressors treat an existing Content-Encoding as they are told, and refuse it by default")
  func behaviours() async throws {
    typealias Behaviour = DeflateRequestCompressor.DuplicateHeaderBehavior
    #expect(DeflateRequestCompressor().duplicateHeaderBehavior == .error)
    #expect(GzipRequestCompressor().duplicateHeaderBehavior == .error)
    let body = Data("body".utf8)
    let forms: [(name: String, make: (Behaviour) -> any RequestInterceptor)] = [
      ("deflate", { DeflateRequestCompressor(duplicateHeaderBehavior: $0) }),
      ("deflate", { .deflateCompressor(duplicateHeaderBehavior: $0) }),
      ("gzip", { GzipRequestCompressor(duplicateHeaderBehavior: $0) }),
    ]
    for (name, make) in forms {
      #expect(try await sent(body, make(.error), encoding: "br").error?.isRequestAdaptationError == true)
      let skipped = try await sent(body, make(.skip), encoding: "br")
      #expect(skipped.body == body && skipped.encoding == "br" && skipped.error == nil, "\(name)")
      let replaced = try await sent(body, make(.replace), encoding: "br")
      #expect(replaced.body != body && replaced.encoding == name && replaced.error == nil, "\(name)")
    }
    let defaults: [any RequestInterceptor] = [
      .deflateCompressor, .gzipCompressor, .deflateCompressor { _ in true },
    ]
    for interceptor in defaults {
      #expect(try await sent(body, interceptor, encoding: "br").error?.isRequestAdaptationError == true)
    }
  }

  @Test("Each form of a compressor asks whether a body is to be compressed")
  func exemptions() async throws {
    let forms: [any RequestInterceptor] = [
      DeflateRequestCompressor { $0.count > 10 }, .deflateCompressor { $0.count > 10 },
      GzipRequestCompressor { $0.count > 10 },
    ]
    for (interceptor, name) in zip(forms, ["deflate", "deflate", "gzip"]) {
      #expect(try await sent(Data("small".utf8), interceptor).encoding == nil)
      #expect(try await sent(Data("a large body".utf8), interceptor).encoding == name)
    }
  }

  /// Returns the bytes that a Python program makes of the input, because Python is independent of our code.
  private static func python(_ program: String, _ input: Data) async throws -> Data {
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("zip-\(UUID().uuidString)")
    try input.write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    return try await ChildRun(["python3", "-c", program], input: file).output
  }
}
