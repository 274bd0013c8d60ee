import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite("Trust of streams of bytes", .timeLimit(.minutes(5))) struct ByteStreamTrustTests {
  enum Answer: CaseIterable { case trust, usual, otherCredential, emptyCredential, refuse, cancel }

  private final class Judge: SessionDelegate, @unchecked Sendable {
    let calls = Recorder<String>()
    private let answer: Answer

    init(_ answer: Answer) {
      self.answer = answer
      super.init()
    }

    override func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      guard let trust = challenge.protectionSpace.serverTrust else {
        return completionHandler(.performDefaultHandling, nil)
      }
      calls.add("\(challenge.protectionSpace.host) \(task is ByteStreamTask)")
      switch answer {
      case .trust: completionHandler(.useCredential, URLCredential(trust: trust))
      case .usual: completionHandler(.performDefaultHandling, nil)
      case .otherCredential:
        completionHandler(.useCredential, URLCredential(user: "u", password: "p", persistence: .none))
      case .emptyCredential:
        completionHandler(.useCredential, URLCredential(user: "", password: "", persistence: .none))
      case .refuse: completionHandler(.rejectProtectionSpace, nil)
      case .cancel: completionHandler(.cancelAuthenticationChallenge, nil)
      }
    }
  }

  @Test("The delegate decides about certificates", arguments: Answer.allCases, [true, false])
  func delegate(answer: Answer, isKnown: Bool) async throws {
    let stranger = try TestIdentity(.init(commonName: "localhost", dnsNames: ["localhost"]))
    let server = try StreamTestServer(.tls(isKnown ? .localhost : stranger))
    let judge = Judge(answer)
    let session = Session.forStreams(delegate: judge)
    for _ in 0..<2 {
      let stream = session.byteStream(host: "localhost", port: server.port, secure: true)
      let error = await failure { try await stream.write(Data("x".utf8)) }
      switch answer {
      case .trust: #expect(error == nil)
      case .usual, .otherCredential, .emptyCredential:
        #expect(error?.transferCode == (isKnown ? nil : .serverCertificateHasUnknownRoot))
      case .refuse: #expect(error?.transferCode == .serverCertificateUntrusted)
      case .cancel: #expect(error?.isExplicitlyCancelledError == true)
      }
      if error != nil { #expect(await stream.ended() != nil) }
    }
    // A decision about the certificates is remembered, but not a refusal.
    let count = answer == .refuse || answer == .cancel ? 2 : 1
    #expect(judge.calls.values == [String](repeating: "localhost true", count: count))
  }

  @Test("A stream whose delegate does not decide about certificates times out") func silentDelegate()
    async throws
  {
    let server = try StreamTestServer(.tls(.localhost))
    let session = Session.forStreams(delegate: SilentDelegate(), timeout: 0.2)
    let stream = session.byteStream(host: "localhost", port: server.port, secure: true)
    #expect(await failure { try await stream.write(Data("x".utf8)) }?.transferCode == .timedOut)
    #expect(await stream.ended()?.transferCode == .timedOut)
  }

  /// An evaluator that does not return until the test ends, or after half a minute, so that a stream that waits for it
  /// fails the test instead of stopping it.
  private final class Blocked: ServerTrustEvaluating {
    let gate = DispatchSemaphore(value: 0)
    let returns = Recorder<Bool>()

    func evaluate(_ trust: SecTrust, forHost host: String) throws {
      _ = gate.wait(timeout: .now() + 30)
      returns.add(true)
    }
  }

  @Test("A stream whose evaluator does not return times out") func blockedEvaluator() async throws {
    let blocked = Blocked()
    defer { blocked.gate.signal() }
    let server = try StreamTestServer(.tls(.localhost))
    let session = Session.forStreams(
      manager: ServerTrustManager(evaluators: ["localhost": blocked]), timeout: 0.2)
    let stream = session.byteStream(host: "localhost", port: server.port, secure: true)
    #expect(await failure { try await stream.write(Data("x".utf8)) }?.transferCode == .timedOut)
    let end = await stream.ended()
    // The session has no delegate.
    #expect(end?.transferCode == .timedOut && end?.localizedDescription.contains("The delegate") == false)
    #expect(blocked.returns.count == 0, "the stream has waited for the evaluator")
  }

  /// A delegate that trusts each server, and does not decide about client certificates.
  private final class Undecided: SessionDelegate, @unchecked Sendable {
    // Unchecked: used on the queue of the session only.
    private var kept: [(URLSession.AuthChallengeDisposition, URLCredential?) -> Void] = []

    override func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      guard let trust = challenge.protectionSpace.serverTrust else { return kept.append(completionHandler) }
      completionHandler(.useCredential, URLCredential(trust: trust))
    }
  }

  @Test("A stream whose delegate does not decide about the client certificate times out")
  func undecidedIdentity() async throws {
    let authority = try TestIdentity(.init(commonName: "Clients", isCA: true))
    let server = try StreamTestServer(
      .tls(.localhost, TLSOptions(maximumVersion: .tls1_2, clientAuthority: authority.certificatePEM)))
    let session = Session.forStreams(delegate: Undecided(), timeout: 1)
    let stream = session.byteStream(host: "localhost", port: server.port, secure: true)
    #expect(await failure { try await stream.write(Data("x".utf8)) }?.transferCode == .timedOut)
    #expect(await stream.ended()?.transferCode == .timedOut)
  }

  @Test(
    "A delegate that leaves the decision to evaluators does not replace them, nor do options of the stream",
    arguments: [true, false], [true, false])
  func delegateAndEvaluator(isPinned: Bool, hasOptions: Bool) async throws {
    let authority = try #require(
      Certificate.all(in: Data(TestIdentity.localhostAuthority.certificatePEM.utf8)).first)
    let wrong = try TestIdentity(.init(commonName: "wrong", isCA: true))
    let stranger = try #require(Certificate.all(in: Data(wrong.certificatePEM.utf8)).first)
    let evaluator = PinnedCertificatesTrustEvaluator(certificates: [isPinned ? authority : stranger])
    let server = try StreamTestServer(.tls(.localhost))
    let judge = Judge(.usual)
    let session = Session.forStreams(
      manager: ServerTrustManager(evaluators: ["localhost": evaluator]), delegate: judge)
    let change: ((inout TransportOptions) -> Void)? = hasOptions ? { $0.redirectLimit = 7 } : nil
    let stream = session.byteStream(
      host: "localhost", port: server.port, secure: true, transportOptions: change)
    let error = await failure { try await stream.write(Data("x".utf8)) }
    #expect((error?.isServerTrustEvaluationError == true) == !isPinned)
    #expect((error == nil) == isPinned)
    #expect(judge.calls.count == 1)
  }
}
