import Foundation
import HTTPWire
import Testing

@testable import Alamofire

@Suite("The members of shared transfers", .timeLimit(.minutes(1))) struct SharedTransferMemberTests {
  private final class Observer: TransferObserver {
    let events = Recorder<String>()
    private let disposition: HeadDisposition

    init(_ disposition: HeadDisposition = .proceed) { self.disposition = disposition }

    func transferBegan(_ control: any TransferControl) -> TransferStart { .go }
    func headReceived(_ head: ResponseHead) -> HeadDisposition {
      events.add("head \(head.status)")
      return disposition
    }
    func bytesMoved(_ count: ByteCount) { events.add("bytes \(count.received)") }
    func transferEnded() {}
  }

  private let shared = SharedTransfers()

  private static func key(
    era: UInt64 = 0, removals: UInt64 = 0, _ url: String = "http://a.test/x",
    _ options: TransportOptions = .init(),
    _ change: (inout WireRequest.Parts) -> Void = { _ in }
  ) throws -> SharedTransfers.Key {
    let request = WireRequest(
      url: url, origin: try #require(Origin(url: url)), profile: ConnectionProfile(options: options)
    ) { parts in
      parts.fields = [HTTPHeader(name: "Accept", value: "a/b")]
      parts.idleTimeout = .seconds(60)
      change(&parts)
    }
    return SharedTransfers.Key(request, in: era, removalCount: removals)
  }

  private func join(
    _ key: SharedTransfers.Key, _ observer: any TransferObserver
  ) -> (UInt64, SharedTransfers.Membership) {
    let id = shared.reserve()
    return (id, shared.join(key, id, observer, LocalTransferControl()))
  }

  private func count(_ received: Int64) -> ByteCount {
    var count = ByteCount()
    count.received = received
    return count
  }

  @Test("Requests share a transfer only if nothing tells them apart") func keys() throws {
    let key = try Self.key()
    #expect(try key == Self.key() && key.hashValue == Self.key().hashValue)
    var options = TransportOptions()
    options.redirectLimit = 3
    let others = [
      try Self.key("http://a.test/y"), try Self.key(era: 1), try Self.key(removals: 1),
      try Self.key("http://a.test/x", options), try Self.key { $0.idleTimeout = .seconds(61) },
      try Self.key { $0.idleTimeout = nil },
      try Self.key { $0.alternative = AlternativeService(host: "b.test", port: 443) },
      try Self.key { $0.fields = [] }, try Self.key { $0.fields.append(HTTPHeader(name: "X-A", value: "1")) },
      try Self.key { $0.fields = [HTTPHeader(name: "Accept", value: "a/c")] },
      try Self.key { $0.fields = [HTTPHeader(name: "accept", value: "a/b")] },
    ]
    for (index, other) in others.enumerated() { #expect(other != key, "number \(index)") }
  }

  @Test("A member that comes late counts bytes from the moment at which it knows the head") func lateMember()
    async throws
  {
    let key = try Self.key()
    let (first, second) = (Observer(), Observer())
    guard case (let firstID, .first(let flight)) = join(key, first) else {
      Issue.record("the first member does not send")
      return
    }
    #expect(shared.began(key, flight, FakeTransferControl()) == .go)
    #expect(!shared.headCame(key, flight, ResponseHead(status: 200)))
    shared.bytesMoved(key, flight, count(1))
    guard case (let secondID, .joined(let head?)) = join(key, second) else {
      Issue.record("the second member does not know of the head")
      return
    }
    #expect(head.status == 200 && second.events.count == 0)
    shared.bytesMoved(key, flight, count(2))
    #expect(second.events.count == 0, "bytes are counted before the head is known")
    #expect(shared.knowsHead(key, secondID, after: ByteCount()) == count(2))
    shared.bytesMoved(key, flight, count(3))
    #expect(
      second.events.count == 0, "the member still receives an earlier count, which would follow this one")
    #expect(shared.knowsHead(key, secondID, after: count(2)) == count(3))
    #expect(shared.knowsHead(key, secondID, after: count(3)) == nil)
    shared.bytesMoved(key, flight, count(4))
    #expect(first.events.values == ["head 200", "bytes 1", "bytes 2", "bytes 3", "bytes 4"])
    #expect(second.events.values == ["bytes 4"])
    shared.ended(key, flight, .failure(TransportFailure(.connectionLost, "end")))
    #expect(shared.memberCount == 0)
    #expect(shared.knowsHead(key, secondID, after: count(3)) == count(4), "the last count is not lost")
    #expect(shared.knowsHead(key, firstID, after: count(4)) == nil)
    for id in [firstID, secondID] {
      guard case .failure(let failure) = await shared.outcome(key, id) else {
        Issue.record("no failure")
        return
      }
      #expect(failure.kind == .connectionLost)
    }
  }

  @Test("A body is discarded only if no member takes it", arguments: [true, false])
  func disposition(isFirstTaking: Bool) throws {
    let key = try Self.key()
    let taking = Observer()
    let members = isFirstTaking ? [taking, Observer(.discard)] : [Observer(.discard), taking]
    guard case (_, .first(let flight)) = join(key, members[0]) else {
      Issue.record("the first member does not send")
      return
    }
    _ = join(key, members[1])
    #expect(!shared.headCame(key, flight, ResponseHead(status: 302)))
    #expect(members.allSatisfy { $0.events.values == ["head 302"] })

    let other = try Self.key(era: 1)
    guard case (_, .first(let second)) = join(other, Observer(.discard)) else { return }
    _ = join(other, Observer(.discard))
    #expect(shared.headCame(other, second, ResponseHead(status: 302)))
  }

  /// An observer that holds its transfer back until the test resumes it.
  private final class HoldingObserver: TransferObserver {
    let controls = Recorder<any TransferControl>()

    func transferBegan(_ control: any TransferControl) -> TransferStart {
      controls.add(control)
      return .hold
    }
    func headReceived(_ head: ResponseHead) -> HeadDisposition { .proceed }
    func bytesMoved(_ count: ByteCount) {}
    func transferEnded() {}
  }

  private func transport(_ fake: FakeTransport, _ cache: HTTPCache?) -> SharedTransport {
    SharedTransport(shared: shared, transport: fake, store: cache)
  }

  private enum Change: CaseIterable { case none, era, removal }

  @Test("A suspended request joins no transfer that began before a change", arguments: Change.allCases)
  private func suspendedMember(change: Change) async throws {
    let gate = Latch()
    let fake = FakeTransport(.text("old").held(by: gate), .text("new"))
    let folder = try TemporaryFolder()
    let cache = HTTPCache(memoryCapacity: 1 << 20, diskCapacity: 0, directory: folder["cache"])
    let (transport, removals) = (transport(fake, cache), cache.removalCount)
    let url = "http://a.test/x"
    let origin = try #require(Origin(url: url))
    let request = WireRequest(url: url, origin: origin, profile: ConnectionProfile()) { _ in }
    async let first = transport.response(to: request, observer: Observer())
    #expect(await eventually { fake.requests.count == 1 })
    let observer = HoldingObserver()
    async let second = transport.response(to: request, observer: observer)
    let control = try await observer.controls.value(0)
    switch change {
    case .none: break
    case .era: shared.beginEra()
    case .removal:
      cache.removeAllCachedResponses()
      #expect(cache.removalCount > removals)
    }
    control.resume()
    #expect(await eventually { fake.requests.count == 2 || shared.memberCount == 2 })
    gate.open()
    #expect(try await first.body == Data("old".utf8))
    #expect(try await second.body == Data((change == .none ? "old" : "new").utf8))
    #expect(fake.requests.count == (change == .none ? 1 : 2) && shared.memberCount == 0)
  }

  @Test("A request that is cancelled while it is suspended joins no transfer") func cancelledMember()
    async throws
  {
    let fake = FakeTransport()
    let transport = transport(fake, nil)
    let url = "http://a.test/x"
    let origin = try #require(Origin(url: url))
    let request = WireRequest(url: url, origin: origin, profile: ConnectionProfile()) { _ in }
    let observer = HoldingObserver()
    async let response = transport.response(to: request, observer: observer)
    try await observer.controls.value(0).cancel()
    do {
      _ = try await response
      Issue.record("a response came")
    } catch {
      #expect((error as? TransportFailure)?.kind == .cancelled)
    }
    #expect(fake.requests.isEmpty && shared.memberCount == 0)
  }

  /// An observer whose transfer cannot go on before the test lets it.
  private final class SlowObserver: TransferObserver {
    let reached = Latch()
    let gate = DispatchSemaphore(value: 0)

    func transferBegan(_ control: any TransferControl) -> TransferStart { .go }
    func headReceived(_ head: ResponseHead) -> HeadDisposition {
      reached.open()
      _ = gate.wait(timeout: .now() + 60)
      return .proceed
    }
    func bytesMoved(_ count: ByteCount) {}
    func transferEnded() {}
  }

  @Test("A member that leaves while an event is passed on ends after the event", arguments: [true, false])
  func leftDuringEvent(waits: Bool) async throws {
    let key = try Self.key()
    let (slow, second) = (SlowObserver(), Observer())
    guard case (_, .first(let flight)) = join(key, slow), case (let id, .joined(nil)) = join(key, second)
    else {
      Issue.record("the members do not share a transfer")
      return
    }
    let end = { @Sendable [shared] in
      _ = await shared.outcome(key, id)
      second.events.add("end")
    }
    let waiting: Task<Void, Never>? = waits ? Task { await end() } : nil
    // On a thread that no other test needs.
    Thread.detachNewThread { [shared] in _ = shared.headCame(key, flight, ResponseHead(status: 200)) }
    await slow.reached.wait()
    shared.leave(id)
    #expect(shared.memberCount == 1)
    let ended = waiting ?? Task { await end() }
    // Long enough for an end that comes too early.
    for _ in 0..<2000 where second.events.count == 0 { await Task.yield() }
    slow.gate.signal()
    await ended.value
    #expect(second.events.values == ["head 200", "end"])
    shared.bytesMoved(key, flight, count(1))
    #expect(second.events.count == 2, "it has left")
  }

  @Test("A transfer has the highest priority of its members, whenever they get it") func priorities() throws {
    let key = try Self.key()
    let first = shared.reserve(priority: 0.2)
    guard case .first(let flight) = shared.join(key, first, Observer(), LocalTransferControl()) else {
      Issue.record("the first member does not send")
      return
    }
    let control = FakeTransferControl()
    #expect(shared.began(key, flight, control, priority: 0.2) == .go)
    #expect(control.priority == nil, "it was sent with this priority")
    let (lower, higher) = (shared.reserve(priority: 0.1), shared.reserve(priority: 0.1))
    shared.prioritize(higher, 0.9)
    for id in [lower, higher] { _ = shared.join(key, id, Observer(), LocalTransferControl()) }
    #expect(control.priority == 0.9, "a member that joins is more urgent")
    shared.prioritize(first, 0.4)
    #expect(control.priority == 0.9)
    shared.prioritize(first, 1)
    #expect(control.priority == 1)
    shared.prioritize(first, 0.3)
    #expect(control.priority == 0.9)
    shared.leave(higher)
    #expect(control.priority == 0.3, "the most urgent member has left")
    shared.leave(first)
    #expect(control.priority == 0.1)
    shared.prioritize(first, 1)
    #expect(control.priority == 0.1, "a member that has left counts no more")
  }

  @Test("A priority that changes before the transfer begins is given to it") func earlyPriority() throws {
    let key = try Self.key()
    guard case (let id, .first(let flight)) = join(key, Observer()) else {
      Issue.record("the first member does not send")
      return
    }
    shared.prioritize(id, 0.8)
    let control = FakeTransferControl()
    #expect(shared.began(key, flight, control) == .go)
    #expect(control.priority == 0.8)
  }

  @Test("A member that left before it joined does not join") func leftBefore() throws {
    let key = try Self.key()
    let id = shared.reserve()
    shared.leave(id)
    guard case .left = shared.join(key, id, Observer(), LocalTransferControl()) else {
      Issue.record("it joined")
      return
    }
    #expect(shared.memberCount == 0)
  }

  @Test("Events of a transfer that all members left reach nobody") func oldFlight() async throws {
    let key = try Self.key()
    let (old, new, control) = (Observer(), Observer(), FakeTransferControl())
    guard case (let id, .first(let flight)) = join(key, old) else { return }
    #expect(shared.began(key, flight, control) == .go)
    shared.leave(id)
    #expect(control.isCancelled)
    guard case (let newID, .first(let next)) = join(key, new) else {
      Issue.record("the transfer that was left goes on")
      return
    }
    #expect(shared.began(key, flight, FakeTransferControl()) == .refuse)
    #expect(!shared.headCame(key, flight, ResponseHead(status: 200)))
    shared.bytesMoved(key, flight, count(1))
    shared.ended(key, flight, .failure(TransportFailure(.connectionLost, "old")))
    #expect(old.events.count == 0 && new.events.count == 0 && shared.memberCount == 1)
    shared.ended(key, next, .failure(TransportFailure(.timedOut, "new")))
    guard case .failure(let failure) = await shared.outcome(key, newID) else { return }
    #expect(failure.kind == .timedOut)
    guard case .failure(let left) = await shared.outcome(key, id) else { return }
    #expect(left.kind == .cancelled)
  }
}
