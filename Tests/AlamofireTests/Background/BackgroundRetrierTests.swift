import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@testable import Alamofire

@Suite("Retries of background transfers", .timeLimit(.minutes(1))) struct BackgroundRetrierTests {
  private let folder: TemporaryFolder
  private let clock = CacheFixture.Clock()
  private let transfers: BackgroundTransfers
  private let session = Session.retained(fake: FakeTransport(), startRequestsImmediately: false)

  init() throws {
    folder = try TemporaryFolder()
    let clock = clock
    transfers = BackgroundTransfers(
      identifier: "tests", folder: folder["journal"].path, isDiscretionary: false, now: { Double(clock.now) })
  }

  private func transfer(_ method: HTTPMethod = .get, _ kind: TransferDescription.TransferKind = .download)
    throws
    -> BackgroundTransfer
  {
    let transfer = transfers.make()
    try transfer.describe(try URLRequest(url: "http://a.test/", method: method), kind: kind)
    return transfer
  }

  /// Returns the delay before a retry; `nil` if there is none.
  private func delay(after error: any Error, of transfer: BackgroundTransfer) async -> TimeInterval? {
    let request = session.request("http://a.test/")
    return await withCheckedContinuation { continuation in
      BackgroundRetrier(transfer: transfer, lifetime: 100).retry(request, for: session, dueTo: error) {
        result in
        if case .retryWithDelay(let delay) = result {
          continuation.resume(returning: delay)
        } else {
          continuation.resume(returning: nil)
        }
      }
    }
  }

  private func delay(after code: URLError.Code, of transfer: BackgroundTransfer) async -> TimeInterval? {
    await delay(after: AFError.sessionTaskFailed(error: URLError(code)), of: transfer)
  }

  @Test(
    "Only failures of the network are retried",
    arguments: [
      (.networkConnectionLost, true), (.notConnectedToInternet, true), (.timedOut, true),
      (.cannotConnectToHost, true), (.dnsLookupFailed, true), (.cannotFindHost, false), (.badURL, false),
      (.secureConnectionFailed, false), (.serverCertificateUntrusted, false), (.badServerResponse, false),
      (.cancelled, false),
    ] as [(URLError.Code, Bool)])
  func codes(code: URLError.Code, isRetried: Bool) async throws {
    #expect(await delay(after: code, of: try transfer()) == (isRetried ? 1 : nil))
  }

  @Test("Other errors are not retried") func otherErrors() async throws {
    let refused = AFError.responseValidationFailed(reason: .unacceptableStatusCode(code: 503))
    #expect(await delay(after: refused, of: try transfer()) == nil)
    #expect(await delay(after: TestError(text: "other"), of: try transfer()) == nil)
  }

  @Test("A host that was found before is looked up again") func knownHost() async throws {
    let transfer = try transfer()
    #expect(!transfer.hasHadResponse)
    _ = transfer.begin(ResponseHead(status: 200)) { (nil, size: 0) }
    #expect(transfer.hasHadResponse)
    #expect(await delay(after: .cannotFindHost, of: transfer) == 1)
  }

  @Test("A transfer is retried until its time is over") func lifetime() async throws {
    let transfer = try transfer()
    clock.advance(99)
    #expect(await delay(after: .timedOut, of: transfer) == 1)
    clock.advance(1)
    #expect(await delay(after: .timedOut, of: transfer) == nil)
  }

  @Test("An own interceptor is asked before the transfer's retrier", arguments: [false, true])
  func ownInterceptor(isRefusing: Bool) async throws {
    let spy = SpyInterceptor(
      retry: { _, _, _ in isRefusing ? .doNotRetryWithError(TestError()) : .doNotRetry })
    let both = try #require(session.core.interceptor(spy, of: try transfer()))
    let request = session.request("http://a.test/")
    let lost = AFError.sessionTaskFailed(error: URLError(.timedOut))
    let answer = await withCheckedContinuation { continuation in
      both.retry(request, for: session, dueTo: lost) { continuation.resume(returning: $0) }
    }
    #expect(spy.retryCount == 1)
    switch answer {
    case .doNotRetryWithError(let error): #expect(isRefusing && error is TestError)
    case .retryWithDelay(let delay): #expect(!isRefusing && delay == 1)
    case .retry, .doNotRetry: Issue.record("\(answer)")
    }
  }

  @Test("A request that must not be repeated is not retried after it was sent") func sent() async throws {
    for (method, isRepeated) in [(HTTPMethod.post, false), (.put, true)] {
      let transfer = try transfer(method, .upload)
      #expect(await delay(after: .timedOut, of: transfer) == 1)
      try transfer.noteSent()
      #expect(await delay(after: .timedOut, of: transfer) == (isRepeated ? 1 : nil), "\(method)")
    }
  }

  @Test("An upload that was noted as sent without a connection is retried if it is empty", arguments: [0, 1])
  func empty(size: Int) async throws {
    let transfer = transfers.make()
    try transfer.spool(Data(count: size))
    try transfer.describe(try URLRequest(url: "http://a.test/", method: .post), kind: .upload)
    try transfer.noteSent()
    #expect(await delay(after: .cannotConnectToHost, of: transfer) == (size == 0 ? 1 : nil))
    #expect(await delay(after: .networkConnectionLost, of: transfer) == nil, "a server may have received it")
    transfer.noteRedirected()
    #expect(await delay(after: .cannotConnectToHost, of: transfer) == nil, "a server has received it")
    // As the body of the redirected request is, before its connection exists.
    try transfer.noteSent()
    #expect(await delay(after: .cannotConnectToHost, of: transfer) == nil, "another server has received it")
    transfer.noteRetry()
    try transfer.noteSent()
    #expect(await delay(after: .cannotConnectToHost, of: transfer) == (size == 0 ? 1 : nil))
  }

  @Test("A resumable upload that was noted as sent is not retried as an ordinary one, although it is empty")
  func emptyResumable() async throws {
    let transfer = transfers.make()
    try transfer.spool(Data())
    try transfer.describe(
      try URLRequest(url: "http://a.test/", method: .post), kind: .upload,
      resumption: UploadResumption.Policy())
    try transfer.noteSent()
    #expect(
      await delay(after: .cannotConnectToHost, of: transfer) == nil, "a server may have begun the upload")
  }

  @Test("The delay doubles up to a minute") func delays() async throws {
    struct Spy: RequestInterceptor {
      let retrier: BackgroundRetrier
      let delays = Recorder<TimeInterval>()

      func retry(
        _ request: Request, for session: Session, dueTo error: any Error,
        completion: @escaping @Sendable (RetryResult) -> Void
      ) {
        retrier.retry(request, for: session, dueTo: error) { result in
          guard case .retryWithDelay(let delay) = result else { return completion(.doNotRetry) }
          delays.add(delay)
          completion(request.retryCount < 8 ? .retry : .doNotRetry)
        }
      }
    }
    let spy = Spy(retrier: BackgroundRetrier(transfer: try transfer(), lifetime: 100))
    let fake = FakeTransport { _, _ in .failure(.connectionLost) }
    _ = await Session.retained(fake: fake).request("http://a.test/", interceptor: spy).end()
    #expect(spy.delays.values == [1, 2, 4, 8, 16, 32, 60, 60, 60])
  }

  @Test("A restored transfer shows whether its outcome may have been delivered", arguments: [true, false])
  func delivery(isDelivering: Bool) async throws {
    let fixture = try BackgroundFixture()
    do {
      let transfers = BackgroundTransfers(
        identifier: "tests", folder: fixture.journal.path, isDiscretionary: false)
      let transfer = transfers.make()
      try transfer.describe(try URLRequest(url: "http://127.0.0.1:1/", method: .get), kind: .download)
      if isDelivering { transfer.noteDelivering(after: 0) }
      transfers.close()
    }
    let session = fixture.session()
    let request = try #require(session.restoredRequests.first as? DownloadRequest)
    #expect(request.mayHaveBeenDelivered == isDelivering)
    request.cancel()
    #expect(await request.ended().error?.isExplicitlyCancelledError == true)
    #expect(await fixture.isEmptied())
  }
}
