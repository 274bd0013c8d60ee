import AlamofireV4
import Testing

@Suite("Reachability", .timeLimit(.minutes(5))) struct ReachabilityTests {
  @Test("localhost is reachable") func localhost() throws {
    let manager = try #require(NetworkReachabilityManager(host: "127.0.0.1"))
    #expect(manager.networkReachabilityStatus == .reachable(.ethernetOrWiFi))
    #expect(manager.isReachable && manager.isReachableOnEthernetOrWiFi && !manager.isReachableOnWWAN)
    #expect(manager.flags?.contains(.reachable) == true)
    #expect(NetworkReachabilityManager(host: "") == nil)
    #expect(NetworkReachabilityManager()?.listenerQueue.label == DispatchQueue.main.label)
  }

  @Test("The listener receives the status on its queue") func listener() async throws {
    let manager = try #require(NetworkReachabilityManager(host: "127.0.0.1"))
    let key = DispatchSpecificKey<Bool>()
    let queue = DispatchQueue(label: "listener")
    queue.setSpecific(key: key, value: true)
    manager.listenerQueue = queue
    let heard = await withCheckedContinuation { continuation in
      manager.listener = { status in
        continuation.resume(returning: (status, DispatchQueue.getSpecific(key: key) == true))
      }
      #expect(manager.startListening())
    }
    #expect(heard == (.reachable(.ethernetOrWiFi), true))
    manager.stopListening()
  }

  @Test("A listener that is set later replaces the first") func replacement() async throws {
    let manager = try #require(NetworkReachabilityManager(host: "127.0.0.1"))
    let queue = DispatchQueue(label: "listener")
    manager.listenerQueue = queue
    queue.suspend()
    manager.listener = { _ in Issue.record("replaced before it was called") }
    #expect(manager.startListening())
    let status = await withCheckedContinuation { continuation in
      manager.listener = { continuation.resume(returning: $0) }
      queue.resume()
    }
    #expect(status == .reachable(.ethernetOrWiFi))
    manager.stopListening()
    manager.stopListening()
  }

  @Test("Statuses can be compared") func equality() {
    typealias Status = NetworkReachabilityManager.NetworkReachabilityStatus
    #expect(Status.reachable(.wwan) != .reachable(.ethernetOrWiFi))
    #expect(Status.unknown != .notReachable && Status.notReachable == .notReachable)
  }
}
