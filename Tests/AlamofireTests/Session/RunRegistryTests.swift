import Testing

@testable import Alamofire

/// The requests and streams that the end of a session ends.
@Suite("Members of a session") struct RunRegistryTests {
  private final class Stream: RegisteredStream {
    func cancel() {}
    func abandon(_ error: AFError) {}
    func refuse(_ error: AFError) {}
  }

  private let session = Session.retained(fake: FakeTransport(), startRequestsImmediately: false)
  private let registry = RunRegistry()

  private func requests(_ count: Int) -> [DataRequest] {
    (0..<count).map { session.request("http://a.test/\($0)") }
  }

  @Test("The place of a request that has ended is used again") func places() {
    let requests = requests(3)
    #expect(registry.register(requests[0]) == 0 && registry.register(requests[1]) == 1)
    #expect(!registry.unregister(at: 0) && registry.activeCount == 1)
    #expect(registry.active.map { ObjectIdentifier($0) } == [ObjectIdentifier(requests[1])])
    #expect(registry.register(requests[2]) == 0 && registry.activeCount == 2)
    #expect(!registry.unregister(at: 1) && !registry.unregister(at: 0) && registry.activeCount == 0)
  }

  @Test("A request that has left cannot leave again, so that two others do not share its place")
  func repeatedEnd() {
    let requests = requests(3)
    #expect(registry.register(requests[0]) == 0)
    for index in [0, 0, 1, -1] { #expect(!registry.unregister(at: index)) }
    #expect(registry.activeCount == 0)
    #expect(Set([registry.register(requests[1]), registry.register(requests[2])]) == [0, 1])
    #expect(registry.activeCount == 2)
  }

  @Test("The end of a session names its members once, and refuses others with its first error") func end() {
    let (requests, stream) = (requests(4), Stream())
    _ = registry.register(requests[0])
    _ = registry.register(requests[1])
    #expect(registry.registerUnstarted(requests[2]) == nil && registry.register(stream) == nil)
    let members = registry.end(.sessionDeinitialized)
    #expect(members.unstarted.map { ObjectIdentifier($0) } == [ObjectIdentifier(requests[2])])
    #expect(members.active.count == 2 && members.streams.count == 1)
    let again = registry.end(.explicitlyCancelled)
    #expect(again.unstarted.isEmpty && again.active.count == 2)
    #expect(registry.reasonOfEnd?.isSessionDeinitializedError == true)
    #expect(registry.register(requests[3]) == nil)
    #expect(registry.registerUnstarted(requests[3])?.isSessionDeinitializedError == true)
    #expect(registry.unstartedCount == 0)
    let late = Stream()
    #expect(registry.register(late)?.isSessionDeinitializedError == true && registry.streams.count == 1)
    #expect(!registry.unregister(at: 0) && !registry.unregister(at: 1), "the stream has not ended")
    #expect(!registry.unregister(late) && registry.unregister(stream), "the last member ends the session")
    #expect(!registry.unregister(stream), "it has left")
  }

  @Test("A session that takes no more requests lets the running ones end", arguments: [false, true])
  func refusal(isEnded: Bool) {
    let (requests, stream) = (requests(3), Stream())
    _ = registry.register(requests[0])
    #expect(registry.register(stream) == nil)
    if isEnded { _ = registry.end(.sessionDeinitialized) }
    _ = registry.registerUnstarted(requests[1])
    let refused = registry.refuseMore()
    #expect(refused.unstarted.count == (isEnded ? 0 : 1) && !refused.isIdle)
    #expect(refused.streams.map { ObjectIdentifier($0) } == [ObjectIdentifier(stream)])
    #expect(refused.reason.isSessionDeinitializedError == isEnded)
    #expect(registry.reasonOfEnd.map { $0.isSessionInvalidatedError || isEnded } == true)
    #expect(registry.refuseMore().unstarted.isEmpty && registry.register(requests[2]) == nil)
    #expect(!registry.unregister(stream) && !registry.refuseMore().isIdle, "a request is running")
    #expect(registry.unregister(at: 0) && registry.refuseMore().isIdle)
  }

  @Test("A session is over when the ends of all its requests have been reported to observers")
  func reports() {
    for request in requests(2) { _ = registry.register(request) }
    #expect(!registry.unregister(at: 0, isObserved: true) && registry.activeCount == 1)
    #expect(!registry.refuseMore().isIdle)
    #expect(!registry.unregister(at: 1, isObserved: true) && registry.activeCount == 0)
    #expect(!registry.refuseMore().isIdle, "neither end has been reported")
    #expect(!registry.reported() && !registry.refuseMore().isIdle, "one end has not been reported")
    #expect(registry.reported() && registry.refuseMore().isIdle)
  }

  @Test("A stream that has ended is no member") func streams() {
    let streams = [Stream(), Stream()]
    for stream in streams { #expect(registry.register(stream) == nil) }
    #expect(!registry.unregister(streams[0]), "the session goes on")
    #expect(registry.streams.map { ObjectIdentifier($0) } == [ObjectIdentifier(streams[1])])
  }

  @Test("A stream that is to be retained is, until it leaves; others can be released") func retainedStreams()
  {
    var streams = [Stream(), Stream(), Stream()]
    for stream in streams.prefix(2) { #expect(registry.register(stream) == nil) }
    // The last one is no member.
    for stream in streams.dropFirst() { registry.retain(stream) }
    weak let retained = streams[1]
    weak let stranger = streams[2]
    streams = []
    #expect(registry.streams.map { ObjectIdentifier($0) } == retained.map { [ObjectIdentifier($0)] })
    #expect(retained != nil && stranger == nil)
    if let retained { _ = registry.unregister(retained) }
    #expect(retained == nil && registry.streams.isEmpty)
  }

  @Test("Requests that wait for their start are looked through when their number has doubled")
  func unstarted() {
    var unstarted = UnstartedRequests()
    let kept = requests(131)
    var looks: [Int] = []
    for (index, request) in kept.enumerated() {
      if !unstarted.add(request).isEmpty { looks.append(index + 1) }
    }
    #expect(looks == [65, 131] && unstarted.count == 131)
    _ = unstarted.add(kept[0])
    #expect(unstarted.count == 131, "the second call has no effect")
    let removed = unstarted.removeAll()
    #expect(removed.count == 131 && unstarted.count == 0)
  }
}
