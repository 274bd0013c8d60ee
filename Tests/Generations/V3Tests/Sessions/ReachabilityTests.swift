import AlamofireV3
import Foundation
import Testing

@Suite(.timeLimit(.minutes(5))) struct ReachabilityTests {
  @Test("localhost is reachable and the listener is called") func localhost() async throws {
    let manager = try #require(NetworkReachabilityManager(host: "127.0.0.1"))
    let notes = Notes()
    manager.listenerQueue = .global()
    manager.listener = { notes.add("\($0 == .Reachable(.EthernetOrWiFi)) \(isOnMain)") }
    #expect(manager.startListening())
    #expect(await notes.wait(for: 1) == ["true false"])
    manager.stopListening()
    #expect(manager.networkReachabilityStatus == .Reachable(.EthernetOrWiFi))
    #expect(manager.isReachable && manager.isReachableOnEthernetOrWiFi && !manager.isReachableOnWWAN)
  }

  @Test("An empty host has no manager") func emptyHost() {
    #expect(NetworkReachabilityManager(host: "") == nil)
    #expect(NetworkReachabilityManager() != nil)
  }
}
