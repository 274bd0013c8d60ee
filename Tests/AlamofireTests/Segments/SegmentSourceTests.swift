import Alamofire
import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Testing

private let KiB = 1024

/// The requests of the sources of a download in segments, and what becomes of their failures.
@Suite("Sources of segments", .timeLimit(.minutes(5))) struct SegmentSourceTests {
  private let folder: SegmentedDownloadFolder

  init() throws { folder = try SegmentedDownloadFolder() }

  private func download(
    _ server: HTTPTestServer, session: Session = .real(), headers: HTTPHeaders? = nil, segments: Int = 4,
    mirrors: [String] = [], checksum: FileChecksum? = nil, interceptor: (any RequestInterceptor)? = nil
  ) -> SegmentedDownload {
    session.segmentedDownload(
      server.url("/file"), headers: headers, segments: segments, minimumSegmentSize: 64 * KiB,
      mirrors: mirrors, checksum: checksum, interceptor: interceptor, to: folder.destination)
  }

  private func digest(of data: Data) throws -> String {
    let hash = try #require(OpenSSLHashes().hash(.sha256, Array(data)))
    return "sha-256=:\(Data(hash).base64EncodedString()):"
  }

  // MARK: Requests

  @Test("The caller's Accept-Encoding is sent with each segment") func ownEncoding() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 200 * KiB)
    let server = try file.server()
    let response = await download(server, headers: ["Accept-Encoding": "identity;q=1"]).response
    #expect(response.error == nil)
    #expect(folder.hasOnly(file.bytes))
    #expect(file.questions.count > 1)
    #expect(file.questions.allSatisfy { $0.request.header("Accept-Encoding") == "identity;q=1" })
  }

  @Test("A request with another method, a body, or a stream as its body cannot be divided")
  func unsuitableRequests() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 1)
    let server = try file.server()
    let plain = try URLRequest(url: server.url("/file"), method: .get)
    var (post, body, stream) = (plain, plain, plain)
    post.httpMethod = "POST"
    body.httpBody = Data("x".utf8)
    stream.httpBodyStream = InputStream(data: Data("x".utf8))
    for request in [post, body, stream] {
      let error = await Session.real().segmentedDownload(request, to: folder.destination).response.error
      #expect(
        error?.underlyingError as? SegmentedDownload.Failure == .unsuitableRequest,
        "\(request): \(String(describing: error))")
    }
    #expect(file.questions.isEmpty)
    #expect(folder.names == [])
  }

  @Test("The number of segments is that of the caller, whatever the form of the request")
  func segmentCount() async throws {
    let file = SegmentedFile(size: 600 * KiB)
    let server = try file.server()
    let session = Session.real()
    let url = server.url("/file")
    let downloads = [
      session.segmentedDownload(
        url, segments: 1, minimumSegmentSize: 64 * KiB, to: folder.url.appendingPathComponent("a")),
      session.segmentedDownload(
        try URLRequest(url: url, method: .get), segments: 1, minimumSegmentSize: 64 * KiB,
        to: folder.url.appendingPathComponent("b")),
    ]
    for download in downloads { #expect(await download.response.error == nil) }
    let ranges = [0..<(64 * KiB), (64 * KiB)..<file.size]
    #expect(file.ranges == ranges + ranges)
    folder.remove()
  }

  @Test(
    "A checksum that is none is an error before any request",
    arguments: [(FileChecksum.sha256("0"), "SHA-256: 64"), (.sha512("0"), "SHA-512: 128")])
  func unreadableChecksum(checksum: FileChecksum, words: String) async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 1)
    let server = try file.server()
    let error = await download(server, checksum: checksum).response.error
    #expect(error?.localizedDescription.contains("\(words) hexadecimal digits") == true)
    #expect(file.questions.isEmpty)
  }

  @Test("Requests to mirrors have the timeout and the cache policy of the caller's request")
  func mirrorOptions() async throws {
    defer { folder.remove() }
    let (file, copy) = (SegmentedFile(size: 400 * KiB), SegmentedFile(size: 400 * KiB))
    let (server, mirror) = (try file.server(), try copy.server())
    let made = Recorder<URLRequest>()
    let adapter = Adapter { request, _, completion in
      made.add(request)
      completion(.success(request))
    }
    let request = try URLRequest(
      url: server.url("/file").asURL(), cachePolicy: .reloadIgnoringLocalAndRemoteCacheData,
      timeoutInterval: 47)
    let response = await Session.real().segmentedDownload(
      request, minimumSegmentSize: 64 * KiB, mirrors: [mirror.url("/file")], interceptor: adapter,
      to: folder.destination
    ).response
    #expect(response.error == nil)
    #expect(!copy.questions.isEmpty)
    #expect(Set(made.values.map { $0.url?.port }).count == 2)
    for request in made.values {
      #expect(request.timeoutInterval == 47)
      #expect(request.cachePolicy == .reloadIgnoringLocalAndRemoteCacheData)
    }
  }

  @Test("A mirror on the same server gets the header fields and the credential")
  func mirrorOfSameOrigin() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 400 * KiB)
    file.script { question, reply in
      guard question.request.header("Authorization") != "Basic YW5uOnRvcA==" else { return reply }
      return Reply.status(401).with(header: "WWW-Authenticate", value: "Basic realm=\"r\"")
    }
    let server = try file.server()
    // A credential for the request alone is not remembered for the requests to the mirror.
    let credential = URLCredential(user: "ann", password: "top", persistence: .none)
    let response = await download(
      server, headers: ["X-Key": "1"], mirrors: [server.url("/file?mirror")]
    ).authenticate(with: credential).response
    #expect(response.error == nil)
    #expect(response.droppedMirrors == [])
    #expect(folder.hasOnly(file.bytes))
    #expect(Set(file.questions.map(\.request.target)) == ["/file", "/file?mirror"])
    #expect(file.questions.allSatisfy { $0.request.header("X-Key") == "1" })
  }

  @Test("A request whose bytes have all arrived is not sent again if its response breaks off")
  func brokenEnd() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 128 * KiB)
    let gate = Gate()
    file.script { question, reply in
      guard let range = question.range, !range.isEmpty else {
        gate.open()
        return reply
      }
      if question.index > 0 { return reply.held(after: 0, by: gate) }
      return reply.framed(.chunked).with(effect: .closeAfterBody(bytes: range.count))
    }
    let server = try file.server()
    let monitor = ClosureEventMonitor(queue: .global())
    monitor.requestDidFinish = { _ in gate.open() }
    let configuration = URLSessionConfiguration.uncached
    // The second request waits for the first one, which takes long on a busy machine.
    configuration.timeoutIntervalForRequest = 3_600
    let session = Session.real(
      configuration: configuration,
      interceptor: RetryPolicy(retryLimit: 2, exponentialBackoffScale: 0), eventMonitors: [monitor])
    #expect(await download(server, session: session, segments: 2).response.error == nil)
    #expect(folder.hasOnly(file.bytes))
    #expect(file.ranges.map(\.count) == [64 * KiB, 64 * KiB])
  }

  // MARK: Failures

  @Test(
    "A failure of the network passes, and the source is asked again",
    arguments: [
      TransportFailure.FailureKind.timedOut, .cannotFindHost, .cannotConnectToHost, .connectionLost,
      .notConnected, .badServerResponse, .secureConnectionFailed,
    ])
  func passingFailures(kind: TransportFailure.FailureKind) async throws {
    defer { folder.remove() }
    let fake = FakeTransport(.failure(kind))
    let response = await Session.retained(fake: fake)
      .segmentedDownload("http://a/file", to: folder.destination).response
    #expect(response.error == nil)
    #expect(folder.hasOnly(Data("ok".utf8)))
    #expect(fake.requests.count == 2)
  }

  @Test(
    "A failure that another attempt would have, too, ends the download with its error",
    arguments: [
      TransportFailure.FailureKind.certificateUntrusted, .unsupportedURL, .clientCertificateRequired,
      .cannotDecodeContent,
    ])
  func lastingFailures(kind: TransportFailure.FailureKind) async throws {
    defer { folder.remove() }
    let fake = FakeTransport(.failure(kind))
    let error = await Session.retained(fake: fake)
      .segmentedDownload("http://a/file", to: folder.destination).response.error
    #expect(error?.localizedDescription.contains("A failure of the script.") == true, "\(kind)")
    #expect(fake.requests.count == 1)
  }

  @Test("If no source has the file, the error is the first one's") func firstError() async throws {
    defer { folder.remove() }
    let files = [404, 410, 451].map { status in
      let file = SegmentedFile(size: 1)
      file.script { _, _ in .status(status) }
      return file
    }
    let servers = try files.map { try $0.server() }
    let response = await download(servers[0], mirrors: servers.dropFirst().map { $0.url("/file") }).response
    #expect(response.error?.responseCode == 404)
    #expect(
      response.droppedMirrors == [
        .init(index: 0, reason: .status(410)), .init(index: 1, reason: .status(451)),
      ])
    #expect(response.response?.statusCode == 451, "the last response")
  }

  @Test("If mirrors had another version than the first server, and fail, the file has changed")
  func differentFirstServer() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 400 * KiB, tag: { "\"first-\($0)\"" })
    let copy = SegmentedFile(size: 400 * KiB)
    // The mirror answers first, because the first server is asked again later.
    file.script { question, reply in question.index == 0 ? .status(503) : reply }
    copy.script { question, reply in question.index == 0 ? reply : .status(404) }
    let (server, mirror) = (try file.server(), try copy.server())
    let response = await download(server, mirrors: [mirror.url("/file")]).response
    #expect(response.error?.underlyingError as? SegmentedDownload.Failure == .resourceChanged)
    #expect(response.droppedMirrors == [.init(index: 0, reason: .status(404))])
  }

  // MARK: Digests

  @Test("The digest of the first response counts, whatever later ones say") func firstDigest() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 200 * KiB)
    let texts = [try digest(of: file.bytes), try digest(of: Data())]
    file.script { question, reply in
      reply.with(header: "Repr-Digest", value: texts[min(question.index, 1)])
    }
    let server = try file.server()
    #expect(await download(server).response.error == nil)
    #expect(folder.hasOnly(file.bytes))
  }

  @Test("A digest that only a later response has is verified") func laterDigest() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 200 * KiB)
    let wrong = try digest(of: Data())
    file.script { question, reply in
      question.index == 0 ? reply : reply.with(header: "Repr-Digest", value: wrong)
    }
    let server = try file.server()
    guard
      case .checksumMismatch? = await download(server).response.error?.underlyingError
        as? SegmentedDownload.Failure
    else {
      Issue.record("a wrong digest was accepted")
      return
    }
    #expect(folder.names == [])
  }

  @Test("The digest of a response that is not used does not count") func digestOfDroppedMirror() async throws
  {
    defer { folder.remove() }
    let file = SegmentedFile(size: 400 * KiB)
    let copy = SegmentedFile(size: 400 * KiB, tag: { "\"mirror-\($0)\"" })
    let wrong = try digest(of: Data())
    copy.script { _, reply in reply.with(header: "Repr-Digest", value: wrong) }
    let (server, mirror) = (try file.server(), try copy.server())
    let response = await download(server, mirrors: [mirror.url("/file")]).response
    #expect(response.error == nil)
    #expect(response.droppedMirrors == [.init(index: 0, reason: .differs)])
    #expect(folder.hasOnly(file.bytes))
  }

  @Test("The server's digest is verified beside the caller's checksum") func digestBesideChecksum()
    async throws
  {
    defer { folder.remove() }
    let file = SegmentedFile(size: 100 * KiB)
    let wrong = try digest(of: Data())
    file.script { _, reply in reply.with(header: "Repr-Digest", value: wrong) }
    let server = try file.server()
    let hash = try #require(OpenSSLHashes().hash(.sha256, Array(file.bytes)))
    let checksum = try #require(FileDigest(.sha256, hash)).hex
    let error = await download(server, checksum: .sha256(checksum)).response.error
    guard case .checksumMismatch(_, checksum)? = error?.underlyingError as? SegmentedDownload.Failure else {
      Issue.record("\(String(describing: error))")
      return
    }
  }

  // MARK: An earlier file

  @Test("The complete file of an earlier process is verified by a checksum, without a request")
  func completeFile() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 200 * KiB)
    let server = try file.server()
    let record = try SegmentedDownloadFolder.record(
      server.url("/file"), size: file.size, [.present(ByteRanges([0..<file.size]))])
    try folder.putPart(file.bytes, record)
    let hash = try #require(OpenSSLHashes().hash(.sha256, Array(file.bytes)))
    let checksum = try #require(FileDigest(.sha256, hash)).hex
    let response = await download(server, checksum: .sha256(checksum)).response
    #expect(response.error == nil)
    #expect(response.response == nil)
    #expect(response.progress.fractionCompleted == 1)
    #expect(folder.hasOnly(file.bytes))
    #expect(file.questions.isEmpty)
  }

  @Test("An earlier part is continued, whatever password the URL has") func sameURL() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 200 * KiB)
    let server = try file.server()
    let record = try SegmentedDownloadFolder.record(
      server.url("/file"), size: file.size, [.present(ByteRanges([0..<(150 * KiB)]))])
    try folder.putPart(file.bytes, record)
    let url = server.url("/file").replacingOccurrences(of: "http://", with: "http://ann:top@")
    let response = await Session.real().segmentedDownload(
      url, minimumSegmentSize: 64 * KiB, to: folder.destination
    ).response
    #expect(response.error == nil)
    #expect(folder.hasOnly(file.bytes))
    #expect(file.ranges == [(150 * KiB)..<(200 * KiB)])
  }
}
