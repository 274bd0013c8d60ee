import Foundation
import FoundationNetworking
import HTTPWire
import Scenarios
import Testing

@testable import Alamofire

// Under the lock of the object that has held it, the release of such an object would end the process.

/// A stream whose release uses its request.
private final class LastStream: InputStream {
  private let last: ReleaseProbe

  init(_ last: ReleaseProbe) {
    self.last = last
    super.init(data: Data())
  }
}

/// A credential whose release uses its request.
private final class LastCredential: URLCredential, @unchecked Sendable {
  // Unchecked, as its superclass is.
  private let last: ReleaseProbe

  init(_ last: ReleaseProbe) {
    self.last = last
    super.init(user: "a", password: "b", persistence: .none)
  }

  required init?(coder: NSCoder) { return nil }
}

private final class LastObserver: WireObserver {
  private let last: ReleaseProbe

  init(_ last: ReleaseProbe) { self.last = last }

  func bytesMoved(_ part: WirePart, _ bytes: UnsafeRawBufferPointer) {}
  func wireEnded() {}
}

private final class LastError: Error {
  private let last: ReleaseProbe

  init(_ last: ReleaseProbe) { self.last = last }
}

@Suite("Objects that a request replaces", .timeLimit(.minutes(1))) struct ReplacedObjectTests {
  enum Setter: CaseIterable {
    case head, uploadProgress, downloadProgress, creation, command, task, redirect, storing, credential
    case trailers
  }

  private let released = Latch()
  private let request = Session.retained(fake: FakeTransport(), startRequestsImmediately: false)
    .upload(Data("a".utf8), to: "http://a.test/")

  private var last: ReleaseProbe {
    ReleaseProbe { [released, weak request] in
      // The locks of the request and of its body.
      _ = request?.priority
      _ = request?.redirectHandler
      _ = request?.body.trailers
      released.open()
    }
  }

  private func set(_ setter: Setter, _ last: ReleaseProbe) {
    switch setter {
    case .head:
      request.onHTTPResponse(on: .global()) { _, decide in withExtendedLifetime(last) { decide(.allow) } }
    case .uploadProgress: request.uploadProgress(queue: .global()) { _ in withExtendedLifetime(last) {} }
    case .downloadProgress: request.downloadProgress(queue: .global()) { _ in withExtendedLifetime(last) {} }
    case .creation: request.onURLRequestCreation(on: .global()) { _ in withExtendedLifetime(last) {} }
    case .command: request.cURLDescription(on: .global()) { _ in withExtendedLifetime(last) {} }
    case .task: request.onURLSessionTaskCreation(on: .global()) { _ in withExtendedLifetime(last) {} }
    case .redirect:
      request.redirect(using: .modify { _, next, _ in withExtendedLifetime(last) { next } })
    case .storing:
      request.cacheResponse(using: .modify { _, response in withExtendedLifetime(last) { response } })
    case .credential: request.authenticate(with: LastCredential(last))
    case .trailers:
      request.trailers {
        withExtendedLifetime(last) {}
        return [:]
      }
    }
  }

  /// Runs in another process, which a lock that is taken twice would end.
  @Test("An object that another one replaces is released outside the lock") func setter() async {
    await #expect(processExitsWith: .success) {
      for setter in ReplacedObjectTests.Setter.allCases {
        let tests = ReplacedObjectTests()
        tests.set(setter, tests.last)
        tests.set(setter, ReleaseProbe {})
        await tests.released.wait()
      }
    }
  }

  @Test("The source of another stream replaces the earlier one outside the lock") func source() async {
    _ = request.core.source(of: LastStream(last), length: 0)
    _ = request.core.source(of: InputStream(data: Data()), length: 0)
    await released.wait()
  }

  @Test("A hop replaces the earlier one outside the lock") func hop() async throws {
    let origin = try #require(Origin(url: "http://a.test/"))
    func begin(_ observer: (any WireObserver)?) {
      let wire = WireRequest(url: "http://a.test/", origin: origin, profile: ConnectionProfile()) { parts in
        parts.wireObserver = observer
      }
      RequestOwner(request: request).begin(
        CurrentHop(request: wire, initialOrigin: origin, authentication: nil, redirectCount: 0))
    }
    begin(LastObserver(last))
    begin(nil)
    await released.wait()
  }

  @Test("The body of an upload replaces the earlier one outside the lock") func body() async {
    let body = UploadBody(
      fileManager: .default, transfer: nil, runsUserCode: false, isSpent: nil
    ) { .data(Data()) }
    func useStream() {
      let last = ReleaseProbe { [released, weak body] in
        _ = body?.content
        released.open()
      }
      body.use(.stream(LastStream(last)))
    }
    useStream()
    body.use(.data(Data()))
    await released.wait()
  }

  @Test("What a retry forgets is released outside the lock") func retry() async {
    func fail(_ error: LastError) { request.core.fail(.sessionTaskFailed(error: error)) }
    fail(LastError(last))
    #expect(request.core.prepareRetry(of: request, because: .retrier))
    await released.wait()
  }
}
