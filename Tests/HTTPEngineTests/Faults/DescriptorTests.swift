import Glibc
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

/// Transfers of a process without free file descriptors.
@Suite(.serialized, .timeLimit(.minutes(5))) struct DescriptorTests {
  @Test(
    "A connection without a free descriptor says so, and the next one works",
    arguments: ["127.0.0.1", "localhost"])
  func connections(host: String) async {
    await #expect(processExitsWith: .success) { [host] in
      let server = try HTTPTestServer()
      let client = Client()
      // The loop and its descriptors exist after the first request.
      _ = try await client.get(server.url("/get"))
      let url = "http://\(host):\(server.port)/get?other"
      let port = try HTTPTestServer.refusedPort()
      let other = "http://\(host):\(port)/"
      let taken = Descriptors.takeAll()
      let failure = try await client.failure(of: other)
      Descriptors.giveBack(taken)
      #expect(failure.kind == .resourceUnavailable)
      #expect(failure.message.contains("file descriptors"), "\(failure.message)")
      #expect(failure.message.contains("ulimit -n"), "\(failure.message)")
      _ = try await client.get(url)
      #expect(try await client.failure(of: other).kind == .cannotConnectToHost)
    }
  }

  @Test("A name that cannot be looked up without a free descriptor says so", arguments: [false, true])
  func names(isProxy: Bool) async {
    await #expect(processExitsWith: .success) { [isProxy] in
      let server = try HTTPTestServer()
      let client = Client()
      _ = try await client.get(server.url("/get"))
      let profile = Client.profile { if isProxy { $0.proxy = .http("no-such-host.invalid", port: 1) } }
      let request = try client.request("http://no-such-host.invalid/", profile: profile)
      let taken = Descriptors.takeAll()
      let failure = try await client.failure(of: request)
      Descriptors.giveBack(taken)
      #expect(failure.kind == .resourceUnavailable)
      #expect(failure.message.contains("ulimit -n"), "\(failure.message)")
      let next = try await client.failure(of: request)
      #expect(next.kind == (isProxy ? .cannotFindProxy : .cannotFindHost), "\(next.message)")
    }
  }
}

/// All descriptors that a process may still open.
private enum Descriptors {
  static func takeAll() -> [Int32] {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = min(limit.rlim_cur, 256)
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    var taken: [Int32] = []
    while true {
      let descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
      guard descriptor >= 0 else { return taken }
      taken.append(descriptor)
    }
  }

  static func giveBack(_ descriptors: [Int32]) {
    for descriptor in descriptors { close(descriptor) }
  }
}
