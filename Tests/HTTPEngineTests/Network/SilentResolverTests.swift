import Glibc
import HTTPEngine
import HTTPWire
import Testing

/// The system's resolver, whose name servers never answer. Skipped if the process may not make a network namespace.
@Suite("Silent resolvers", .timeLimit(.minutes(5))) struct SilentResolverTests {
  @Test("A name that the resolver does not find in time") func nameLookup() async throws {
    let limit = Duration.milliseconds(300)
    let client = Client(lingering: .seconds(240)) {
      $0.timeLimits = .init(
        nameLookup: limit, connect: .nanoseconds(1), firstByte: .nanoseconds(1))
    }
    defer { client.transport.shutDown() }
    guard await SilentResolver.start(client.transport.loop) else { return }
    let start = ContinuousClock.now
    let failure = try await client.failure(of: "http://silent.example/")
    #expect(failure.kind == .timedOut, "\(failure.message)")
    #expect(failure.phase == .nameLookup, "\(failure.message)")
    #expect(failure.helps(host: "silent.example"))
    #expect(failure.metrics?.values.lookupEnd == -1)
    #expect(ContinuousClock.now - start >= limit)
    // Addresses need no look-up.
    let refused = try await client.failure(of: "http://127.0.0.1:9/")
    #expect(refused.kind == .cannotConnectToHost, "\(refused.message)")
  }
}

/// A network namespace with a loopback interface, which has the addresses of the system's name servers. The threads
/// that are started in it belong to it, and so does the loop of a client.
private enum SilentResolver {
  private struct Nothing: LoopWork {
    func runOnLoop() {}
  }

  /// Starts the thread of a loop in a new namespace. Returns false if that is not permitted.
  static func start(_ loop: EventLoop) async -> Bool {
    await withCheckedContinuation { continuation in
      Thread {
        let isReady = leavesNetwork() && ip("link set lo up") && answersNothing()
        // The thread of the loop starts here, and inherits the namespace.
        if isReady { loop.enqueue(Nothing()) }
        continuation.resume(returning: isReady)
      }.start()
    }
  }

  /// Binds the port of DNS at the addresses of the name servers. The socket stays open as long as the process.
  private static func answersNothing() -> Bool {
    for server in nameServers() where !server.hasPrefix("127.") && server != "::1" {
      _ = ip("address add \(server)/\(server.contains(":") ? 128 : 32) dev lo")
    }
    let listener = socket(AF_INET6, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard listener >= 0 else { return false }
    var address = sockaddr_in6()
    address.sin6_family = sa_family_t(AF_INET6)
    address.sin6_port = in_port_t(53).bigEndian
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, socklen_t(MemoryLayout<sockaddr_in6>.size)) == 0
      }
    }
  }

  private static func nameServers() -> [String] {
    guard let file = fopen("/etc/resolv.conf", "re") else { return [] }
    defer { fclose(file) }
    var servers: [String] = []
    var line = [CChar](repeating: 0, count: 1024)
    while fgets(&line, Int32(line.count), file) != nil {
      let text = line.withUnsafeBufferPointer {
        String(decoding: $0.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
      }
      let words = text.split(whereSeparator: \.isWhitespace)
      if words.count > 1, words[0] == "nameserver" { servers.append(String(words[1])) }
    }
    return servers
  }

  /// Moves the calling thread into a network namespace of its own (unshare(2)) if that is permitted.
  private static func leavesNetwork() -> Bool {
    typealias Unshare = @convention(c) (Int32) -> Int32
    // The module Glibc does not declare the function.
    guard let symbol = dlsym(nil, "unshare") else { return false }
    let newNetwork: Int32 = 0x4000_0000
    return unsafeBitCast(symbol, to: Unshare.self)(newNetwork) == 0
  }

  private static func ip(_ arguments: String) -> Bool {
    let words = ["ip"] + arguments.split(separator: " ").map(String.init)
    var pointers: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    defer { for pointer in pointers { free(pointer) } }
    var process = pid_t()
    guard posix_spawnp(&process, "ip", nil, nil, &pointers, environ) == 0 else { return false }
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0 {
      guard errno == EINTR else { return false }
    }
    return status == 0
  }
}
