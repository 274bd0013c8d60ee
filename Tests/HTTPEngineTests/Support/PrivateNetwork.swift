import Glibc
import HTTPEngine
import HTTPSystem
import HTTPWire

/// A network namespace that has a loopback interface alone. The threads that are started in it belong to it, and so do
/// the sockets that they open.
enum PrivateNetwork {
  /// Runs a closure on a thread in a new namespace. Returns `nil` if the process may not make one.
  static func run<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async -> Value? {
    await withCheckedContinuation { continuation in
      Thread {
        let isReady = leaveNetwork() && ip("link set lo up")
        continuation.resume(returning: isReady ? (try? body()) : nil)
      }.start()
    }
  }

  /// Gives the addresses of the system's name servers to the interface, and binds the port of DNS. Returns the socket,
  /// which stays open as long as the process; `nil` if that is not permitted.
  static func bindNameServers() -> Int32? {
    for server in nameServers() where !server.hasPrefix("127.") && server != "::1" {
      _ = ip("address add \(server)/\(server.contains(":") ? 128 : 32) dev lo")
    }
    let listener = socket(AF_INET6, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard listener >= 0 else { return nil }
    var address = sockaddr_in6()
    address.sin6_family = sa_family_t(AF_INET6)
    address.sin6_port = in_port_t(53).bigEndian
    let isBound = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, socklen_t(MemoryLayout<sockaddr_in6>.size)) == 0
      }
    }
    return isBound ? listener : nil
  }

  /// Lets a name service answer the questions of the system's resolver. Returns false if the resolver does not ask it.
  static func answerLookups(by names: NameService) -> Bool {
    guard let listener = bindNameServers() else { return false }
    Thread {
      var message = [UInt8](repeating: 0, count: 4096)
      var peer = sockaddr_storage()
      while true {
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        withUnsafeMutablePointer(to: &peer) { pointer in
          pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { peer in
            let count = recvfrom(listener, &message, message.count, 0, peer, &length)
            guard count > 0, let answer = names.answer(to: Array(message[..<count])) else { return }
            _ = sendto(listener, answer, answer.count, 0, peer, length)
          }
        }
      }
    }.start()
    names.set("probe.example", [.loopback4])
    return HostLookup.addresses(of: "probe.example") == [IPAddress.loopback4]
  }

  /// Runs a command of ip(8). Returns whether it succeeded.
  static func ip(_ arguments: String) -> Bool {
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

  /// Moves the calling thread into a separate network namespace (unshare(2)) if that is permitted.
  private static func leaveNetwork() -> Bool {
    typealias Unshare = @convention(c) (Int32) -> Int32
    // The module Glibc does not declare the function.
    guard let symbol = dlsym(nil, "unshare") else { return false }
    let newNetwork: Int32 = 0x4000_0000
    return unsafeBitCast(symbol, to: Unshare.self)(newNetwork) == 0
  }
}

extension EventLoop {
  private final class Nothing: LoopWork {
    func runOnLoop() {}
  }

  /// Starts the thread of the loop, which inherits the caller's namespace.
  func startThread() { enqueue(Nothing()) }
}
