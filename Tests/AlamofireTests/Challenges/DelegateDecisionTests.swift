import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

/// A delegate decides about a challenge: only the response that counts reaches the caller, and all of it.
@Suite("Decisions of a delegate about a challenge", .timeLimit(.minutes(1)))
struct DelegateDecisionTests {
  enum Decision: CaseIterable {
    case answer, leave, reject
  }

  /// The length of the challenge's body: in one chunk, and in many.
  static let lengths = [12, 300_000]

  private func challenge(_ length: Int) -> FakeReply {
    var reply = FakeReply.challenge()
    let body = Data(repeating: UInt8(ascii: "c"), count: length)
    reply.chunks = stride(from: 0, to: length, by: 70_000).map { body[$0..<min($0 + 70_000, length)] }
    return reply
  }

  private func session(
    _ decision: Decision, _ challenge: FakeReply, then answer: FakeReply = .chunks(["i", "n"])
  ) -> Session {
    let delegate = ChallengeDelegate { _ in
      switch decision {
      case .answer: (.useCredential, URLCredential(user: "user", password: "pass", persistence: .none))
      case .leave: (.useCredential, nil)
      case .reject: (.rejectProtectionSpace, nil)
      }
    }
    let fake = FakeTransport { request, _ in
      request.value("Authorization") == nil ? challenge : answer
    }
    return Session.retained(
      fake: fake, configuration: .uncached, observers: SessionObservers(delegate: delegate))
  }

  /// Returns the expected body.
  private func expected(_ decision: Decision, _ length: Int) -> Data {
    decision == .answer ? Data("in".utf8) : Data(repeating: UInt8(ascii: "c"), count: length)
  }

  /// Returns the request's own credential, if it has one. Without it only the delegate can answer; with it, only the
  /// delegate can decline.
  private func credential(_ isKnown: Bool) -> URLCredential? {
    isKnown ? URLCredential(user: "known", password: "pass", persistence: .none) : nil
  }

  @Test("A stream", arguments: Decision.allCases, lengths)
  func stream(_ decision: Decision, length: Int) async {
    for isKnown in [false, true] {
      let heads = Recorder<Int>()
      let request = session(decision, challenge(length)).streamRequest("http://a.test/")
        .onHTTPResponse(on: .global()) { (response: HTTPURLResponse) in heads.add(response.statusCode) }
      if let credential = credential(isKnown) { request.authenticate(with: credential) }
      var body = Data()
      for await event in request.streamTask().streamingData() {
        if let data = event.value { body += data }
      }
      #expect(body == expected(decision, length), "known: \(isKnown)")
      #expect(await heads.wait(for: 1) == [decision == .answer ? 200 : 401], "known: \(isKnown)")
      #expect(request.error == nil)
    }
  }

  @Test("A download", arguments: Decision.allCases, lengths)
  func download(_ decision: Decision, length: Int) async throws {
    for isKnown in [false, true] {
      let request = session(decision, challenge(length)).download("http://a.test/")
      if let credential = credential(isKnown) { request.authenticate(with: credential) }
      let response = await request.serializingDownloadedFileURL().response
      let file = try response.result.get()
      defer { try? FileManager.default.removeItem(at: file) }
      #expect(try Data(contentsOf: file) == expected(decision, length), "known: \(isKnown)")
      #expect(response.response?.statusCode == (decision == .answer ? 200 : 401))
    }
  }

  @Test("A data request", arguments: Decision.allCases, lengths)
  func data(_ decision: Decision, length: Int) async {
    for isKnown in [false, true] {
      let heads = Recorder<Int>()
      let request = session(decision, challenge(length)).request("http://a.test/")
        .onHTTPResponse(on: .global()) { (response: HTTPURLResponse) in heads.add(response.statusCode) }
      if let credential = credential(isKnown) { request.authenticate(with: credential) }
      let response = await request.end()
      #expect(response.value == expected(decision, length), "known: \(isKnown)")
      #expect(await heads.wait(for: 1) == [decision == .answer ? 200 : 401], "known: \(isKnown)")
    }
  }

  @Test("A data request whose body is read as it arrives", arguments: Decision.allCases, lengths)
  func chunks(_ decision: Decision, length: Int) async {
    for isKnown in [false, true] {
      let request = session(decision, challenge(length)).request("http://a.test/")
      if let credential = credential(isKnown) { request.authenticate(with: credential) }
      let chunks = Recorder<Data>()
      let queue = DispatchQueue(label: "test.chunks")
      request.responseChunks(on: queue) { chunks.add($0) }
      #expect(await request.end().error == nil)
      queue.sync {}
      let body = chunks.values.reduce(into: Data()) { $0 += $1 }
      #expect(body == expected(decision, length), "known: \(isKnown)")
    }
  }

  @Test("The body of an answered challenge does not count as progress") func progress() async {
    let request = session(.answer, challenge(12), then: .status(204)).request("http://a.test/")
    let received = Recorder<Int64>()
    let queue = DispatchQueue(label: "test.progress")
    request.downloadProgress(queue: queue) { received.add($0.completedUnitCount) }
    #expect(await request.end().response?.statusCode == 204)
    queue.sync {}
    #expect(received.values.isEmpty && request.downloadProgress.completedUnitCount == 0)
  }

  @Test("A refused redirect after an answered challenge does not have the body of the challenge")
  func refusedRedirect() async {
    let response = await session(.answer, challenge(12), then: .redirect(302, to: "ftp://b.test/"))
      .request("http://a.test/").end()
    #expect(response.response?.statusCode == 302)
    #expect(response.error != nil && response.data == nil, "\(String(describing: response.data))")
  }

  @Test("A challenge that breaks off before the decision is not shown") func broken() async {
    var broken = challenge(12)
    broken.failure = TransportFailure(.connectionLost, "The challenge breaks off.")
    let response = await session(.answer, broken).request("http://a.test/").end()
    #expect(response.error?.transferCode == .networkConnectionLost)
    #expect(response.response == nil && response.data == nil)
  }

  @Test("Trust in a server does not answer a challenge for a password") func trust() async {
    let delegate = ChallengeDelegate { _ in
      (.useCredential, URLCredential(trust: ServerTrust(certificates: [], host: "a.test")))
    }
    let fake = FakeTransport(.challenge())
    let session = Session.retained(fake: fake, observers: SessionObservers(delegate: delegate))
    #expect(await session.request("http://a.test/").end().response?.statusCode == 401)
    #expect(delegate.calls.count == 1)
    #expect(fake.requests.count == 1, "\(fake.requests.map { $0.value("Authorization") ?? "" })")
  }

  @Test("A delegate sees the response, the credential of the request, and the number of failures")
  func shownChallenge() async {
    let seen = Recorder<String>()
    let delegate = ChallengeDelegate { challenge in
      let response = challenge.failureResponse as? HTTPURLResponse
      let facts = [
        "\(response?.statusCode ?? 0)", response?.url?.absoluteString ?? "",
        response?.value(forHTTPHeaderField: "WWW-Authenticate") ?? "",
        challenge.proposedCredential?.user ?? "", "\(challenge.previousFailureCount)",
        challenge.protectionSpace.host,
      ]
      seen.add(facts.joined(separator: " "))
      return challenge.previousFailureCount > 0
        ? (.rejectProtectionSpace, nil)
        : (.useCredential, URLCredential(user: "other", password: "wrong", persistence: .none))
    }
    let fake = FakeTransport { _, _ in .challenge(#"Basic realm="r""#) }
    let session = Session.retained(fake: fake, observers: SessionObservers(delegate: delegate))
    let credential = URLCredential(user: "known", password: "pass", persistence: .none)
    let response = await session.request("http://a.test/x").authenticate(with: credential).end()
    #expect(response.response?.statusCode == 401)
    #expect(
      seen.values == [0, 1].map { #"401 http://a.test/x Basic realm="r" known \#($0) a.test"# })
  }

  @Test("A delegate that cancels a challenge ends the request") func cancelled() async {
    let delegate = ChallengeDelegate { _ in (.cancelAuthenticationChallenge, nil) }
    let fake = FakeTransport(.challenge())
    let session = Session.retained(fake: fake, observers: SessionObservers(delegate: delegate))
    let response = await session.request("http://a.test/").end()
    #expect((response.error?.underlyingError as? URLError)?.code == .cancelled)
    #expect(fake.requests.count == 1)
  }

  @Test("A handler decides about the head of a declined challenge, too") func headDecision() async {
    let request = session(.leave, challenge(12)).streamRequest("http://a.test/")
    request.onHTTPResponse(on: .global()) { _, decide in decide(.cancel) }
    var body = Data()
    for await event in request.streamTask().streamingData() {
      if let data = event.value { body += data }
    }
    #expect(body.isEmpty)
    #expect(request.error?.isExplicitlyCancelledError == true)
  }

  @Test("A declined challenge whose body is too long to be stored is an error, an answered one is not")
  func longBody() async {
    let long = challenge(2 << 20)
    let declined = session(.leave, long).streamRequest("http://a.test/")
    var received = 0
    for await event in declined.streamTask().streamingData() { received += event.value?.count ?? 0 }
    #expect(received == 0)
    #expect((declined.error?.underlyingError as? URLError)?.code == .dataLengthExceedsMaximum)

    let answered = session(.answer, long).streamRequest("http://a.test/")
    var body = Data()
    for await event in answered.streamTask().streamingData() { body += event.value ?? Data() }
    #expect(body == Data("in".utf8))
  }

  @Test("Chunk readers have the same limit") func longBodyOfChunks() async {
    let chunks = Recorder<Data>()
    let declined = session(.leave, challenge(2 << 20)).request("http://a.test/")
    declined.responseChunks(on: .global()) { chunks.add($0) }
    let error = await declined.end().error
    #expect((error?.underlyingError as? URLError)?.code == .dataLengthExceedsMaximum)
    #expect(chunks.values.isEmpty)
  }

  @Test("The progress of an upload stays after a declined challenge") func uploadProgress() async {
    let counts = Recorder<Int64>()
    let queue = DispatchQueue(label: "test.progress")
    let request = session(.leave, challenge(12)).upload(Data(count: 1000), to: "http://a.test/")
    request.uploadProgress(queue: queue) { counts.add($0.completedUnitCount) }
    #expect(await request.end().response?.statusCode == 401)
    queue.sync {}
    #expect(Set(counts.values) == [1000])
    #expect(request.uploadProgress.completedUnitCount == 1000)
  }

  /// Uses a session without monitors. Notification monitors become active when any test of the process uses the name of
  /// a notification, and the delegate is then called for their sake.
  @Test("A delegate that requests events while the request runs is asked from the next hop on")
  func lateInterest() async {
    let reached = Latch()
    let gate = Latch()
    let delegate = ChallengeDelegate { _ in
      (.useCredential, URLCredential(user: "user", password: "pass", persistence: .none))
    }
    delegate.wantedEvents = []
    let held = challenge(12).held(by: gate, reached: reached)
    let fake = FakeTransport { request, _ in
      request.value("Authorization") == nil ? held : .chunks(["i", "n"])
    }
    let session = Session.retained(
      fake: fake, configuration: .uncached,
      observers: SessionObservers(delegate: delegate, eventMonitors: []))
    let request = session.streamRequest("http://a.test/")
    async let body = request.streamTask().streamingData().reduce(into: Data()) { $0 += $1.value ?? Data() }
    await reached.wait()
    request.onURLSessionTaskCreation { _ in }
    gate.open()
    #expect(await body == Data(repeating: UInt8(ascii: "c"), count: 12))
    #expect(delegate.calls.values.isEmpty)
  }
}
