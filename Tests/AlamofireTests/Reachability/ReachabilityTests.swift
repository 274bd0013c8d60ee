import Alamofire
import Foundation
import HTTPWire
import Testing

private typealias Status = NetworkReachabilityManager.NetworkReachabilityStatus

@Suite(.timeLimit(.minutes(5))) struct ReachabilityTests {
  private let network = ScriptedNetwork()
  private let queue = DispatchQueue(label: "reachability.test")
  private let heard = Recorder<Status>()

  private func manager(_ target: ReachabilityTarget = .anywhere) throws -> NetworkReachabilityManager {
    try #require(NetworkReachabilityManager(target: target, source: network))
  }

  /// Waits until all pending changes are delivered.
  private func settle(_ manager: NetworkReachabilityManager) {
    manager.reachabilityQueue.sync {}
    queue.sync {}
  }

  @Test("The status is the current network's") func status() throws {
    let manager = try manager()
    #expect(manager.status == .reachable(.ethernetOrWiFi))
    #expect(manager.isReachable && manager.isReachableOnEthernetOrWiFi && !manager.isReachableOnCellular)
    #expect(manager.flags == .reachable)
    network.become(ScriptedNetwork.online(over: .cellular))
    #expect(manager.status == .reachable(.cellular))
    #expect(manager.isReachable && manager.isReachableOnCellular && !manager.isReachableOnEthernetOrWiFi)
    #expect(manager.flags == [.reachable, .isWWAN])
    network.become(ScriptedNetwork.offline)
    #expect(manager.status == .notReachable)
    #expect(!manager.isReachable && !manager.isReachableOnCellular && !manager.isReachableOnEthernetOrWiFi)
    #expect(manager.flags == [])
    network.become(nil)
    #expect(manager.status == .unknown)
    #expect(!manager.isReachable && !manager.isReachableOnCellular && !manager.isReachableOnEthernetOrWiFi)
    #expect(manager.flags == nil)
    #expect(network.watchCount == 0)
  }

  @Test("The first call has the status, and later calls have changes only") func calls() async throws {
    let manager = try manager()
    let listens = manager.startListening(onQueue: queue) { [heard] in heard.add($0) }
    #expect(listens)
    #expect(await heard.wait(for: 1) == [.reachable(.ethernetOrWiFi)])
    network.become(ScriptedNetwork.online(over: .wifi))
    settle(manager)
    #expect(heard.count == 1)
    network.become(ScriptedNetwork.offline)
    #expect(await heard.wait(for: 2).last == .notReachable)
    network.become(ScriptedNetwork.offline)
    settle(manager)
    network.become(ScriptedNetwork.online(over: .cellular))
    #expect(await heard.wait(for: 3).last == .reachable(.cellular))
    settle(manager)
    #expect(heard.count == 3)
  }

  @Test("The listener runs on its queue") func listenerQueue() async throws {
    let key = DispatchSpecificKey<Bool>()
    queue.setSpecific(key: key, value: true)
    let onQueue = Recorder<Bool>()
    let manager = try manager()
    manager.startListening(onQueue: queue) { _ in onQueue.add(DispatchQueue.getSpecific(key: key) == true) }
    #expect(await onQueue.wait(for: 1) == [true])
    #expect(manager.reachabilityQueue.label == "org.alamofire.reachabilityQueue")
  }

  @Test("Another listener replaces the first") func replacement() async throws {
    let manager = try manager()
    let second = Recorder<Status>()
    manager.startListening(onQueue: queue) { [heard] in heard.add($0) }
    await heard.wait(for: 1)
    manager.startListening(onQueue: queue) { second.add($0) }
    await second.wait(for: 1)
    #expect(network.watchCount == 1)
    network.become(ScriptedNetwork.offline)
    #expect(await second.wait(for: 2) == [.reachable(.ethernetOrWiFi), .notReachable])
    settle(manager)
    #expect(heard.count == 1)
  }

  @Test("The listener is not called after the stop") func stop() async throws {
    let manager = try manager()
    manager.startListening(onQueue: queue) { [heard] in heard.add($0) }
    await heard.wait(for: 1)
    queue.sync {
      network.become(ScriptedNetwork.offline)
      // Pending calls wait for this queue.
      manager.reachabilityQueue.sync {}
      manager.stopListening()
    }
    settle(manager)
    manager.stopListening()
    #expect(heard.count == 1)
    #expect(network.watchCount == 0)
    manager.startListening(onQueue: queue) { [heard] in heard.add($0) }
    #expect(await heard.wait(for: 2).last == .notReachable)
  }

  @Test("A released manager stops") func release() async throws {
    var manager: NetworkReachabilityManager? = try manager()
    manager?.startListening(onQueue: queue) { [heard] in heard.add($0) }
    await heard.wait(for: 1)
    manager = nil
    #expect(network.watchCount == 0)
    network.become(ScriptedNetwork.offline)
    queue.sync {}
    #expect(heard.count == 1)
  }

  @Test("Threads start and stop concurrently") func concurrency() async throws {
    let manager = try manager()
    DispatchQueue.concurrentPerform(iterations: 200) { index in
      if index % 2 == 0 {
        manager.startListening(onQueue: queue) { [heard] in heard.add($0) }
      } else {
        manager.stopListening()
      }
    }
    manager.stopListening()
    settle(manager)
    #expect(network.watchCount == 0)
  }

  @Test("A system without netlink has no manager") func noNetlink() throws {
    let silent = ScriptedNetwork(isAvailable: false)
    #expect(NetworkReachabilityManager(target: .anywhere, source: silent) == nil)
    #expect(NetworkReachabilityManager(host: "") == nil)
    network.refuseWatches()
    let deaf = try manager()
    let listens = deaf.startListening(onQueue: queue) { [heard] in heard.add($0) }
    #expect(!listens)
    queue.sync {}
    #expect(heard.count == 0)
  }

  @Test("A name is resolved on another thread") func resolution() async throws {
    let network = ScriptedNetwork(holdsLookups: true)
    network.set("example.com", [try #require(ScriptedNetwork.address)])
    let manager = try #require(
      NetworkReachabilityManager(target: .host("example.com"), source: network))
    #expect(manager.status == .unknown)
    #expect(manager.status == .unknown)
    manager.startListening(onQueue: queue) { [heard] in heard.add($0) }
    await network.lookups.wait(for: 1)
    #expect(heard.count == 0)
    for _ in 0..<3 { network.gate?.signal() }
    #expect(await heard.wait(for: 1) == [.reachable(.ethernetOrWiFi)])
    #expect(manager.status == .reachable(.ethernetOrWiFi))
  }

  @Test("A name is resolved again after each change") func repeatedResolution() async throws {
    let manager = try manager(.host("example.com"))
    manager.startListening(onQueue: queue) { [heard] in heard.add($0) }
    #expect(await heard.wait(for: 1) == [.notReachable])
    network.set("example.com", [try #require(ScriptedNetwork.address)])
    network.become(ScriptedNetwork.online())
    #expect(await heard.wait(for: 2).last == .reachable(.ethernetOrWiFi))
    // A name that temporarily cannot be resolved has its previous addresses.
    network.set("example.com", [])
    network.become(ScriptedNetwork.offline)
    #expect(await heard.wait(for: 3).last == .notReachable)
    network.become(ScriptedNetwork.online(over: .cellular))
    #expect(await heard.wait(for: 4).last == .reachable(.cellular))
  }

  @Test("One reachable address of a host is sufficient, wherever it is", arguments: 0..<3)
  func severalAddresses(reachable: Int) async throws {
    let addresses = (1...3).compactMap { IPAddress(.v4, bytes: [192, 0, 2, 10 + $0]) }
    network.set("example.com", addresses)
    for (index, address) in addresses.enumerated() where index != reachable {
      network.set(address, index == 1 ? .link(9, hasGateway: true) : .unreachable)
    }
    let manager = try manager(.host("example.com"))
    manager.startListening(onQueue: queue) { [heard] in heard.add($0) }
    #expect(await heard.wait(for: 1) == [.reachable(.ethernetOrWiFi)])
    #expect(manager.flags == .reachable)
    network.set(addresses[reachable], .unreachable)
    network.become(ScriptedNetwork.online())
    #expect(await heard.wait(for: 2).last == .notReachable)
    #expect(!manager.isReachable && manager.flags == [])
  }

  @Test("An address is not resolved") func address() throws {
    #expect(try manager(.host("192.0.2.1")).status == .reachable(.ethernetOrWiFi))
    #expect(network.lookups.count == 0)
  }

  @Test(
    "localhost is reachable at once, without a look-up",
    arguments: ["localhost", "LocalHost", "localhost.", "app.localhost", "App.LOCALHOST."])
  func localhost(host: String) throws {
    #expect(try manager(.host(host)).status == .reachable(.ethernetOrWiFi))
    network.become(nil)
    #expect(try manager(.host(host)).status == .unknown)
    #expect(network.lookups.count == 0)
  }

  @Test(
    "Names that resemble localhost are looked up",
    arguments: ["notlocalhost", "localhost.test", ".localhost"])
  func otherNames(host: String) throws {
    #expect(try manager(.host(host)).status == .unknown)
  }

  private static let meanings: [(NetworkReachabilityFlags, Bool)] = [
    ([.reachable], true), ([], false), ([.reachable, .connectionRequired], false),
    ([.reachable, .connectionRequired, .connectionOnDemand], true),
    ([.reachable, .connectionRequired, .connectionOnTraffic], true),
    ([.reachable, .connectionRequired, .connectionOnTraffic, .interventionRequired], false),
    ([.connectionOnTraffic], false),
  ]

  @Test("Flags have their meaning on Apple's systems", arguments: meanings)
  func flags(flags: NetworkReachabilityFlags, isReachable: Bool) {
    #expect(flags.isActuallyReachable == isReachable)
  }

  @Test("This machine is reachable") func localMachine() async throws {
    guard let manager = NetworkReachabilityManager() else { return }
    #expect(manager.status != .unknown)
    let before = openDescriptors()
    let listens = manager.startListening(onQueue: queue) { [heard] in heard.add($0) }
    #expect(listens)
    #expect(await heard.wait(for: 1) == [manager.status])
    manager.stopListening()
    let local = try #require(NetworkReachabilityManager(host: "127.0.0.1"))
    #expect(local.status != .unknown)
    #expect(NetworkReachabilityManager(host: "localhost")?.status == local.status)
    #expect(NetworkReachabilityManager.default != nil)
    // Other tests open and close descriptors concurrently, but few netlink sockets.
    #expect(await eventually { openDescriptors() <= before })
  }

  /// Returns the number of netlink sockets of this process.
  private func openDescriptors() -> Int {
    let table = (try? String(contentsOfFile: "/proc/self/net/netlink", encoding: .utf8)) ?? ""
    let inodes = Set(
      table.split(separator: "\n").compactMap { $0.split(separator: " ").last.map(String.init) })
    let folder = "/proc/self/fd"
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return names.count { name in
      guard let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\(name)"),
        target.hasPrefix("socket:[")
      else { return false }
      return inodes.contains(String(target.dropFirst(8).dropLast()))
    }
  }
}
