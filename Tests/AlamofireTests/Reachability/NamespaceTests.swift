import Alamofire
import Foundation
import Glibc
import HTTPSystem
import HTTPWire
import Scenarios
import Testing

/// A network of the kernel, in a separate namespace. Skipped if the process may not create one.
@Suite(.timeLimit(.minutes(5))) struct NamespaceTests {
  @Test("An interface that goes down and up is reported", .steps) func interface() async throws {
    guard let space = await NetworkNamespace.make() else { return }
    let heard = Recorder<NetworkReachabilityManager.NetworkReachabilityStatus>()
    let queue = DispatchQueue(label: "namespace.test")
    let manager = try #require(NetworkReachabilityManager(target: .anywhere, source: space))
    let host = try #require(NetworkReachabilityManager(target: .host("198.51.100.9"), source: space))
    step("no network")
    #expect(manager.status == .notReachable)
    let listens = manager.startListening(onQueue: queue) { heard.add($0) }
    #expect(listens)
    #expect(await heard.wait(for: 1) == [.notReachable])
    #expect(host.status == .notReachable)

    step("network")
    await space.run("link set v0 up", "link set v1 up", "address add 192.0.2.2/24 dev v0")
    await space.run("route add default via 192.0.2.1")
    #expect(await heard.wait(for: 2).last == .reachable(.ethernetOrWiFi))
    #expect(host.status == .reachable(.ethernetOrWiFi))
    #expect(host.flags == .reachable)

    step("link that is down")
    // The link goes down at the other end.
    await space.run("link set v1 down")
    #expect(await heard.wait(for: 3).last == .notReachable)
    step("link that is up")
    await space.run("link set v1 up")
    #expect(await heard.wait(for: 4).last == .reachable(.ethernetOrWiFi))

    step("no route")
    await space.run("route del default")
    #expect(await heard.wait(for: 5).last == .notReachable)
    #expect(host.status == .notReachable)
    let neighbour = try #require(
      NetworkReachabilityManager(target: .host("192.0.2.77"), source: space))
    #expect(neighbour.flags == [.reachable, .isDirect])
    manager.stopListening()
  }

  @Test("A retrier is called when the network is available again") func retrier() async throws {
    guard let space = await NetworkNamespace.make() else { return }
    let results = Recorder<PathResult>()
    let monitor = NetworkPathMonitor(source: space, maximumWait: .seconds(60)) { $0 == .wiredEthernet }
    monitor.start { results.add($0) }
    await space.run("link set v0 up", "link set v1 up", "address add 192.0.2.2/24 dev v0")
    #expect(results.count == 0)
    await space.run("route add default via 192.0.2.1")
    #expect(await results.wait(for: 1) == [.pathAvailable])
  }
}

/// A network namespace with two connected interfaces, `v0` and `v1`, both down. One thread belongs to it, and so do
/// sockets and programs that are opened on this thread.
private final class NetworkNamespace: NetworkSource, @unchecked Sendable {
  private let network: SystemNetwork
  // Used on the thread of the namespace only. Appending is protected by its own lock.
  private let jobs: Jobs

  private init(_ network: SystemNetwork, _ jobs: Jobs) {
    self.network = network
    self.jobs = jobs
  }

  deinit { jobs.add(nil) }

  static func make() async -> NetworkNamespace? {
    let jobs = Jobs()
    let network: SystemNetwork? = await withCheckedContinuation { continuation in
      Thread {
        guard leavesNetwork(), ip("link add v0 type veth peer name v1") else {
          return continuation.resume(returning: nil)
        }
        continuation.resume(returning: SystemNetwork.ofCallingThread())
        while let job = jobs.next() { job() }
      }.start()
    }
    return network.map { NetworkNamespace($0, jobs) }
  }

  /// Moves the calling thread into a separate network namespace (unshare(2)) if that is permitted.
  private static func leavesNetwork() -> Bool {
    typealias Unshare = @convention(c) (Int32) -> Int32
    // The module Glibc does not declare the function.
    guard let symbol = dlsym(nil, "unshare") else { return false }
    let newNetwork: Int32 = 0x4000_0000
    return unsafeBitCast(symbol, to: Unshare.self)(newNetwork) == 0
  }

  /// Runs `ip` with each of these arguments.
  func run(_ commands: String...) async {
    await withCheckedContinuation { continuation in
      jobs.add {
        for command in commands {
          let isDone = Self.ip(command)
          #expect(isDone, "ip \(command)")
        }
        continuation.resume()
      }
    }
  }

  // Foundation's Process opens sockets on the calling thread, and uses them on other threads afterwards.
  private static func ip(_ arguments: String) -> Bool {
    let words = ["ip"] + arguments.split(separator: " ").map(String.init)
    var pointers: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    defer { for pointer in pointers { free(pointer) } }
    var process = pid_t()
    guard posix_spawnp(&process, "ip", nil, nil, &pointers, nil) == 0 else { return false }
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0 {
      guard errno == EINTR else { return false }
    }
    return status == 0
  }

  var isAvailable: Bool { true }
  func state() -> NetworkState? { network.state() }
  func route(to address: IPAddress) -> RouteAnswer { network.route(to: address) }
  func addresses(of host: String, literalsOnly: Bool) -> [IPAddress] {
    network.addresses(of: host, literalsOnly: true)
  }

  func watch(on queue: DispatchQueue, _ changed: @escaping @Sendable () -> Void) -> (any NetworkWatch)? {
    let opened = DispatchSemaphore(value: 0)
    nonisolated(unsafe) var watch: (any NetworkWatch)?
    jobs.add { [network] in
      watch = network.watch(on: queue, changed)
      opened.signal()
    }
    opened.wait()
    return watch
  }

  /// The queue of the thread; `nil` ends the thread.
  private final class Jobs: @unchecked Sendable {
    private let lock = NSLock()
    private let ready = DispatchSemaphore(value: 0)
    private var jobs: [(@Sendable () -> Void)?] = []

    func add(_ job: (@Sendable () -> Void)?) {
      lock.withLock { jobs.append(job) }
      ready.signal()
    }

    func next() -> (@Sendable () -> Void)? {
      ready.wait()
      return lock.withLock { jobs.removeFirst() }
    }
  }
}
