import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

/// Background transfers without a network and without room on the disk.
@Suite(.timeLimit(.minutes(5))) struct BackgroundFailureTests {
  private let fixture: BackgroundFixture

  init() throws { fixture = try BackgroundFixture() }

  @Test("An upload waits for a network") func noNetwork() async throws {
    let network = ScriptedNetwork()
    network.become(ScriptedNetwork.offline)
    let fake = FakeTransport(.failure(.cannotFindHost), .text("stored"))
    let waiting = Recorder<Bool>()
    let monitor = ClosureEventMonitor(queue: DispatchQueue(label: "watcher"))
    monitor.taskIsWaitingForConnectivity = { _, _ in waiting.add(true) }
    let session = Session(
      configuration: .background(withIdentifier: "org.alamofire.tests", folder: fixture.journal),
      engine: Engine(transport: fake, network: network), observers: SessionObservers(eventMonitors: [monitor])
    )
    let request = session.upload(Data("body".utf8), to: "http://a.test/", method: .put)
    async let response = request.ended()
    await waiting.wait(for: 1)
    #expect(fixture.record != nil)
    network.become(ScriptedNetwork.online())
    #expect(await response.data == Data("stored".utf8))
    #expect(fake.requests.count == 2)
    #expect(await fixture.isEmptied())
  }

  @Test("A restored download waits for a server that refuses connections") func refused() async throws {
    let file = StallingFile(size: 300_000, stallingAfter: 120_000)
    var server = try HTTPTestServer(routes: file.routes)
    let port = server.port
    do {
      let session = fixture.session()
      let arrived = Latch()
      let request = session.download(server.url("/file"), to: fixture.destination("file"))
        .downloadProgress(queue: .global()) { if $0.completedUnitCount >= 120_000 { arrived.open() } }
      let ending = Task { await request.ended() }
      await arrived.wait()
      withExtendedLifetime((session, ending)) {}
    }
    server.stop()
    let errors = Recorder<URLError.Code?>()
    let session = fixture.session(
      interceptor: Retrier { _, _, error, completion in
        errors.add(error.asAFError?.transferCode)
        completion(.doNotRetry)
      })
    let request = try #require(session.restoredRequests.first as? DownloadRequest)
    async let response = request.ended()
    #expect(await errors.wait(for: 1).first == .cannotConnectToHost)
    server = try HTTPTestServer(port: port, routes: file.routes)
    #expect(await response.error == nil)
    #expect(try Data(contentsOf: fixture.folder["restored-file"]) == file.bytes)
    #expect(server.recordedRequests.map { $0.header("Range") } == ["bytes=120000-"])
    #expect(await fixture.isEmptied())
  }

  @Test("A POST download is sent again if no connection was made, unless it was redirected before")
  func unsentPost() async throws {
    let fixture = fixture
    func send(_ fake: FakeTransport) async -> AFDownloadResponse<URL?> {
      let session = Session(
        configuration: .background(withIdentifier: "org.alamofire.tests", folder: fixture.journal),
        engine: Engine(transport: fake, network: ScriptedNetwork()))
      return await session.download("http://a.test/", method: .post).endedWithoutFile()
    }
    let refused = FakeTransport(.failure(.cannotConnectToHost), .text("found"))
    #expect(await send(refused).error == nil)
    #expect(refused.requests.count == 2)
    #expect(await fixture.isEmptied())
    #expect(await fixture.isReleased())
    let redirected = FakeTransport(
      .redirect(307, to: "http://b.test/"), .failure(.cannotConnectToHost), .text("found"))
    #expect(await send(redirected).error?.transferCode == .cannotConnectToHost)
    #expect(redirected.requests.count == 2)
    #expect(await fixture.isEmptied())
  }

  @Test(
    "A POST upload of an empty body waits for a server that refuses connections", arguments: [true, false])
  func emptyUpload(isFile: Bool) async throws {
    var server = try HTTPTestServer(routes: .none)
    let port = server.port
    server.stop()
    let errors = Recorder<URLError.Code?>()
    let session = fixture.session(
      interceptor: Retrier { _, _, error, completion in
        errors.add(error.asAFError?.transferCode)
        completion(.doNotRetry)
      })
    let url = "http://127.0.0.1:\(port)/"
    let request =
      isFile
      ? session.upload(try fixture.folder.file("empty", Data()), to: url) : session.upload(Data(), to: url)
    async let response = request.ended()
    #expect(await errors.wait(for: 1).first == .cannotConnectToHost)
    server = try HTTPTestServer(port: port, routes: .none)
    server.enqueue(.ok)
    #expect(await response.error == nil)
    #expect(server.recordedRequests.map(\.method) == ["POST"])
    #expect(await fixture.isEmptied())
  }

  @Test(
    "A POST upload of an empty body is not sent again if the target of its redirect refuses connections",
    arguments: [303, 307, 308])
  func redirectedEmptyUpload(status: Int) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.redirect(to: "http://127.0.0.1:1/done", status: status))
    let session = fixture.session()
    defer { withExtendedLifetime(session) {} }
    let response = await session.upload(Data(), to: server.url("/orders")).ended()
    #expect(response.error?.transferCode == .cannotConnectToHost)
    #expect(server.recordedRequests.map(\.method) == ["POST"], "the server has performed it")
    #expect(await fixture.isEmptied())
  }

  @Test("A POST upload is sent again if no connection was made, although its body was hashed for Digest")
  func signedPost() async throws {
    let fake = FakeTransport(
      .challenge(#"Digest realm="r", nonce="n1", qop="auth-int""#), .text("stored"),
      .failure(.cannotConnectToHost), .text("stored"))
    let session = Session(
      configuration: .background(withIdentifier: "org.alamofire.tests", folder: fixture.journal),
      engine: Engine(transport: fake, network: ScriptedNetwork()))
    for method in [HTTPMethod.put, .post] {
      let request = session.upload(Data("body".utf8), to: "http://a.test/", method: method)
        .authenticate(username: "user", password: "pass")
      #expect(await request.ended().error == nil, "\(method)")
    }
    #expect(fake.requests.map(\.method) == ["PUT", "PUT", "POST", "POST"])
    let isSigned = fake.requests.map { $0.value("Authorization") != nil }
    #expect(isSigned == [false, true, true, true], "the first POST is signed already")
    #expect(await fixture.isEmptied())
  }

  @Test("A POST download that was answered is not sent again, whatever error a validator gives")
  func validatedPost() async throws {
    let fake = FakeTransport()
    let session = Session(
      configuration: .background(withIdentifier: "org.alamofire.tests", folder: fixture.journal),
      engine: Engine(transport: fake, network: ScriptedNetwork()))
    let request = session.download("http://a.test/", method: .post).validate { _, _, _ in
      .failure(URLError(.cannotConnectToHost))
    }
    #expect(await request.endedWithoutFile().error?.isResponseValidationError == true)
    #expect(fake.requests.count == 1)
    #expect(await fixture.isEmptied())
  }

  @Test("A host that was never found ends the transfer with its error") func unknownHost() async throws {
    let fake = FakeTransport { _, _ in .failure(.cannotFindHost) }
    let session = Session(
      configuration: .background(withIdentifier: "org.alamofire.tests", folder: fixture.journal),
      engine: Engine(transport: fake, network: ScriptedNetwork()))
    let response = await session.upload(Data("body".utf8), to: "http://a.test/", method: .put).ended()
    #expect((response.error?.underlyingError as? URLError)?.code == .cannotFindHost)
    #expect(fake.requests.count == 1)
    #expect(await fixture.isEmptied())
  }

  @Test(
    "A proxy setting or a socket that cannot be used ends the transfer at once", arguments: [true, false])
  func unusableRoute(isProxy: Bool) async throws {
    let configuration = URLSessionConfiguration.background(
      withIdentifier: "org.alamofire.tests", folder: fixture.journal)
    // A transfer whose failure may pass would be repeated for this time.
    configuration.timeoutIntervalForResource = 10
    var options = TransportOptions()
    if isProxy {
      configuration.connectionProxyDictionary = ["HTTPEnable": 1]
    } else {
      options.unixSocket = "/" + String(repeating: "s", count: 200)
    }
    let session = Session(configuration: configuration, transportOptions: options)
    let request = session.download("http://127.0.0.1:1/")
    let error = await request.endedWithoutFile().error
    #expect(error?.transferCode == .badURL, "\(String(describing: error))")
    #expect(request.retryCount == 0)
    #expect(await fixture.isEmptied())
  }

  @Test("A full disk is an error, and leaves nothing") func fullDisk() async {
    await #expect(processExitsWith: .success) {
      let fixture = try BackgroundFixture()
      let file = VersionedFile(size: 500_000)
      let server = try HTTPTestServer(routes: file.routes)
      let session = fixture.session()
      defer { withExtendedLifetime(session) {} }
      // The limit makes writes beyond it fail.
      signal(SIGXFSZ, SIG_IGN)
      for (limit, code) in [(100, URLError.Code.cannotCreateFile), (200_000, .cannotWriteToFile)] {
        var limits = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limits)
        let usual = limits.rlim_cur
        limits.rlim_cur = rlim_t(limit)
        #expect(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limits) == 0)
        let response = await session.download(server.url("/file"), to: fixture.destination("file")).ended()
        limits.rlim_cur = usual
        setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limits)
        #expect((response.error?.underlyingError as? URLError)?.code == code)
        #expect(await fixture.isEmptied(), "\(fixture.files)")
      }
      let whole = await session.download(server.url("/file"), to: fixture.destination("file")).ended()
      #expect(whole.error == nil)
      #expect(try Data(contentsOf: fixture.folder["file"]) == file.bytes)
    }
  }

  @Test("A download that is cancelled before the head of its rest leaves resume data of its part")
  func cancelledBeforeRest() async throws {
    let file = VersionedFile(size: 80_000)
    file.breakAfter(40_000)
    let gate = Gate()
    let server = try HTTPTestServer(
      routes: .none.adding("/file", methods: ["GET"]) { request, _ in
        let reply = file.reply(to: request)
        return request.header("Range") == nil ? reply : reply.held(by: gate)
      })
    let session = fixture.session()
    let request = session.download(server.url("/file"), to: fixture.destination("cancelled"))
    async let ending = request.ended()
    await gate.waitUntilReached()
    request.cancel(producingResumeData: true)
    let response = await ending
    gate.open()
    #expect(response.error?.isExplicitlyCancelledError == true)
    #expect(await fixture.isEmptied())
    let data = try #require(response.resumeData)
    let rest = await session.download(resumingWith: data, to: fixture.destination("cancelled")).ended()
    #expect(rest.response?.statusCode == 206)
    #expect(try Data(contentsOf: fixture.folder["cancelled"]) == file.bytes)
    #expect(server.recordedRequests.last?.header("Range") == "bytes=40000-")
    #expect(await fixture.isEmptied())
  }
}
