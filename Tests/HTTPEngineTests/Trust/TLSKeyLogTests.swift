import Glibc
import HTTPTestServer
import HTTPWire
import Testing

/// The files with the secrets of connections, in the format that Wireshark reads.
@Suite("Key logs of TLS", .timeLimit(.minutes(2))) struct TLSKeyLogTests {
  /// Returns the first word of each line.
  private static func labels(_ folder: TemporaryFolder, _ name: String) throws -> [String] {
    String(decoding: try folder.read(name), as: UTF8.self).split(separator: "\n").map { line in
      String(line.prefix { $0 != " " })
    }
  }

  @Test(
    "The secrets of each connection are appended to a file that only its owner can read",
    arguments: [
      (TLSOptions.Version.tls1_2, ["CLIENT_RANDOM"]),
      (
        .tls1_3,
        [
          "CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_HANDSHAKE_TRAFFIC_SECRET", "CLIENT_TRAFFIC_SECRET_0",
          "SERVER_TRAFFIC_SECRET_0",
        ]
      ),
    ])
  func option(version: TLSOptions.Version, expected: [String]) async throws {
    let folder = try TemporaryFolder()
    let file = folder.path + "/keys"
    let server = try HTTPTestServer(.tls(.localhost, TLSOptions(maximumVersion: version)))
    for round in 1...2 {
      #expect(try await Client { $0.tlsKeyLogFile = file }.get(server.url("/get")).status == 200)
      let labels = try Self.labels(folder, "keys")
      for label in expected { #expect(labels.count { $0 == label } == round, "\(label) in \(labels)") }
    }
    var facts = stat()
    #expect(stat(file, &facts) == 0 && facts.st_mode & 0o777 == 0o600)
  }

  @Test("The secrets of a stream are in the file of its options") func stream() async throws {
    let folder = try TemporaryFolder()
    let server = try StreamTestServer(.tls(.localhost))
    let client = Client { $0.tlsKeyLogFile = folder.path + "/keys" }
    let (stream, probe) = client.stream("localhost", port: server.port, isSecure: true)
    #expect(try await stream.echo([1]).get() == [1])
    stream.cancel()
    _ = await probe.end()
    #expect(try Self.labels(folder, "keys").contains("CLIENT_TRAFFIC_SECRET_0"))
  }

  @Test("Nothing is written to a file that is not regular, because a pipe could block the loop")
  func pipe() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/keys"
    try #require(mkfifo(path, 0o600) == 0)
    let server = try HTTPTestServer(.tls(.localhost))
    // If the loop waits for a reader of the pipe, this one ends the wait, and stays for the lines that follow.
    let status = try await WaitLimit.watch(
      "a response", #_sourceLocation, orElse: { _ = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) }
    ) {
      try await Client { $0.tlsKeyLogFile = path }.get(server.url("/get")).status
    }
    #expect(status == 200)
    let reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    try #require(reader >= 0)
    defer { close(reader) }
    #expect(try await Client { $0.tlsKeyLogFile = path }.get(server.url("/get")).status == 200)
    var byte: UInt8 = 0
    #expect(read(reader, &byte, 1) == 0, "no process writes to the pipe")
  }

  @Test("SSLKEYLOGFILE names a file for all connections, in addition to the option's") func environment()
    async
  {
    await #expect(processExitsWith: .success) {
      let folder = try TemporaryFolder()
      setenv("SSLKEYLOGFILE", folder.path + "/all", 1)
      let server = try HTTPTestServer(.tls(.localhost))
      #expect(try await Client().get(server.url("/get")).status == 200)
      let first = try Self.labels(folder, "all")
      #expect(first.contains("CLIENT_TRAFFIC_SECRET_0"))
      let own = folder.path + "/own"
      #expect(try await Client { $0.tlsKeyLogFile = own }.get(server.url("/get")).status == 200)
      #expect(try Self.labels(folder, "all") == first + first)
      #expect(try Self.labels(folder, "own") == first)
    }
  }
}
