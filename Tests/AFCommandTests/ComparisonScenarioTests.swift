import ChildProcesses
import Foundation
import HTTPTestServer
import Testing

/// The behaviour of `af` compared with HTTPie and curl, where a single request does not show it: several requests,
/// files, TLS, terminals.
@Suite(.timeLimit(.minutes(10))) struct ComparisonScenarioTests {
  /// The effects of a program.
  struct Outcome {
    let program: String
    let server: HTTPTestServer
    let folder: Folder
    let runs: [ChildRun]

    var output: String { String(decoding: runs.last?.output ?? Data(), as: UTF8.self) }
    var statuses: [Int32] { runs.map(\.status) }

    func content(_ name: String) -> String? {
      try? String(contentsOfFile: folder.path(name), encoding: .utf8)
    }
  }

  /// The commands of each program, without its name. `{url}`, `{port}` and `{folder}` are the test's.
  struct Scenario: Sendable, CustomTestStringConvertible {
    let name: String
    let af: [[String]]
    /// None if HTTPie has nothing of the kind.
    let http: [[String]]
    /// None if curl has nothing of the kind.
    let curl: [[String]]
    var files: [String: String] = [:]
    var replies: [Reply] = []
    var variables: [String: String] = [:]
    var isSecure = false
    var isOnTerminal = false
    let check: @Sendable (Outcome) throws -> Void

    var testDescription: String { name }

    func commands(of program: String) -> [[String]] {
      switch program {
      case "af": af
      case "http": http
      default: curl
      }
    }
  }

  @Test(
    "af, HTTPie and curl have the same effect",
    arguments: accessScenarios + fileScenarios + connectionScenarios + outputScenarios)
  func scenario(_ scenario: Scenario) async throws {
    for program in ["af", "http", "curl"] where program == "af" || Programs.isInstalled(program) {
      let commands = scenario.commands(of: program)
      guard !commands.isEmpty else { continue }
      let outcome = try await run(commands, of: program, scenario)
      try scenario.check(outcome)
    }
  }

  private func run(_ commands: [[String]], of program: String, _ scenario: Scenario) async throws -> Outcome {
    let folder = try Folder()
    for (name, text) in scenario.files { _ = try folder.file(name, text) }
    let server = try Self.server(scenario, folder)
    for reply in scenario.replies { server.enqueue(reply) }
    func filled(_ text: String) -> String {
      text.replacingOccurrences(of: "{url}", with: server.baseURL)
        .replacingOccurrences(of: "{port}", with: "\(server.port)")
        .replacingOccurrences(of: "{folder}", with: folder.path)
    }
    var environment = scenario.variables.mapValues(filled)
    environment["HTTPIE_CONFIG_DIR"] = folder.path
    var runs: [ChildRun] = []
    for command in commands {
      var words = ["/usr/bin/env", "-C", folder.path, program == "af" ? Programs.af : program]
      if program == "http", !scenario.isOnTerminal { words.append("--ignore-stdin") }
      if program == "curl", !scenario.isOnTerminal { words.append("-sS") }
      words += command.map(filled)
      runs.append(
        scenario.isOnTerminal
          ? try await Programs.runOnTerminal(words, environment: environment)
          : try await ChildRun(words, environment: environment))
    }
    return Outcome(program: program, server: server, folder: folder, runs: runs)
  }

  /// Makes the server. A secure server requires a client certificate. The folder gets the authority and the certificate
  /// with its key.
  private static func server(_ scenario: Scenario, _ folder: Folder) throws -> HTTPTestServer {
    guard scenario.isSecure else { return try HTTPTestServer() }
    let authority = try TestIdentity(.init(commonName: "Clients", isCA: true))
    let identity = try TestIdentity(.init(commonName: "Ada", issuer: authority))
    _ = try folder.file("ca.pem", TestIdentity.localhost.caPEM)
    _ = try folder.file("ada.pem", identity.certificatePEM + identity.privateKeyPEM)
    return try HTTPTestServer(.tls(.localhost, TLSOptions(clientAuthority: authority.certificatePEM)))
  }

  // MARK: Credentials and cookies

  private static let accessScenarios = [
    Scenario(
      name: "Digest", af: [["-A", "digest", "-a", "u:p", "{url}/digest-auth/auth/u/p"]],
      http: [["-A", "digest", "-a", "u:p", "{url}/digest-auth/auth/u/p"]],
      curl: [["--digest", "-u", "u:p", "{url}/digest-auth/auth/u/p"]]
    ) { outcome in
      let field = outcome.server.recordedRequests.last?.header("Authorization")
      #expect(field?.hasPrefix("Digest ") == true && outcome.statuses == [0], "\(outcome.program)")
      #expect(outcome.output.contains("\"authenticated\": true"), "\(outcome.program)")
    },
    Scenario(
      // HTTPie takes the file from a variable.
      name: "netrc", af: [["--netrc-file", "netrc", "{url}/get"]], http: [["{url}/get"]],
      curl: [["--netrc-file", "netrc", "{url}/get"]],
      files: ["netrc": "machine 127.0.0.1 login u password p\n"], variables: ["NETRC": "{folder}/netrc"]
    ) { outcome in
      let field = outcome.server.recordedRequests.last?.header("Authorization")
      #expect(field == "Basic dTpw", "\(outcome.program)")
    },
    Scenario(
      name: "cookies of an earlier run",
      af: [["--session", "{folder}/s", "{url}/cookies/set/k/v"], ["--session", "{folder}/s", "{url}/get"]],
      http: [
        ["--session", "{folder}/s", "{url}/cookies/set/k/v"], ["--session", "{folder}/s", "{url}/get"],
      ],
      curl: [["-b", "jar", "-c", "jar", "{url}/cookies/set/k/v"], ["-b", "jar", "-c", "jar", "{url}/get"]]
    ) { outcome in
      #expect(outcome.server.recordedRequests.last?.target == "/get", "\(outcome.program)")
      #expect(outcome.server.recordedRequests.last?.header("Cookie") == "k=v", "\(outcome.program)")
    },
  ]

  // MARK: Files

  private static let fileScenarios = [
    Scenario(
      name: "a file of a form", af: [["-f", "{url}/post", "a=1", "f@x.txt"]],
      http: [["-f", "{url}/post", "a=1", "f@x.txt"]], curl: [["-F", "a=1", "-F", "f=@x.txt", "{url}/post"]],
      files: ["x.txt": "content"]
    ) { outcome in
      let request = try #require(outcome.server.recordedRequests.first)
      #expect(request.header("Content-Type")?.hasPrefix("multipart/form-data; boundary=") == true)
      let parts = request.bodyText.components(separatedBy: "\r\n--").map { $0.lowercased() }
      #expect(parts.count == 3, "\(outcome.program)")
      #expect(parts.first?.contains("form-data; name=\"a\"\r\n") == true, "\(outcome.program)")
      #expect(parts.first?.hasSuffix("\r\n\r\n1") == true, "\(outcome.program)")
      let file = parts.dropFirst().first ?? ""
      #expect(file.contains("form-data; name=\"f\"; filename=\"x.txt\"\r\n"), "\(outcome.program)")
      #expect(file.contains("content-type: text/plain\r\n"), "\(outcome.program)")
      #expect(file.hasSuffix("\r\n\r\ncontent"), "\(outcome.program)")
    },
    Scenario(
      // HTTPie writes the body to a standard output that is not a terminal.
      name: "the name that the server suggests", af: [["-d", "{url}/x"]], http: [["-d", "{url}/x"]],
      curl: [["-OJ", "{url}/x"]],
      replies: [
        Reply.text("content").with(header: "Content-Disposition", value: "attachment; filename=\"y.txt\"")
      ], isOnTerminal: true
    ) { outcome in
      #expect(outcome.content("y.txt") == "content", "\(outcome.program)")
      #expect(outcome.statuses == [0], "\(outcome.program)")
    },
    Scenario(
      name: "the rest of a file", af: [["-c", "-o", "part", "{url}/x"]],
      http: [["-d", "-c", "-o", "part", "{url}/x"]],
      curl: [["-C", "-", "-o", "part", "{url}/x"]], files: ["part": "abc"],
      replies: [Reply.text("def").with(status: 206).with(header: "Content-Range", value: "bytes 3-5/6")]
    ) { outcome in
      #expect(outcome.server.recordedRequests.first?.header("Range") == "bytes=3-", "\(outcome.program)")
      #expect(outcome.content("part") == "abcdef", "\(outcome.program)")
      #expect(outcome.statuses == [0], "\(outcome.program)")
    },
  ]

  // MARK: Connections

  private static let connectionScenarios = [
    Scenario(
      name: "redirects are followed", af: [["{url}/redirect/2"]], http: [["--follow", "{url}/redirect/2"]],
      curl: [["-L", "{url}/redirect/2"]]
    ) { outcome in
      let targets = outcome.server.recordedRequests.map(\.target)
      #expect(targets.count == 3 && targets.last == "/get", "\(outcome.program): \(targets)")
      #expect(outcome.statuses == [0], "\(outcome.program)")
    },
    Scenario(
      name: "a client certificate, without verification of the server",
      af: [["-k", "--cert", "ada.pem", "{url}/get"]],
      http: [["--verify=no", "--cert", "ada.pem", "{url}/get"]],
      curl: [["-k", "--cert", "ada.pem", "{url}/get"]], isSecure: true
    ) { outcome in
      #expect(outcome.statuses == [0] && outcome.server.requestCount == 1, "\(outcome.program)")
    },
    Scenario(
      name: "an authority of its own, and no client certificate",
      af: [
        ["--ca", "ca.pem", "--cert", "ada.pem", "{url}/get"], ["--ca", "ca.pem", "{url}/get"], ["{url}/get"],
      ],
      http: [
        ["--verify", "ca.pem", "--cert", "ada.pem", "{url}/get"], ["--verify", "ca.pem", "{url}/get"],
        ["{url}/get"],
      ],
      curl: [
        ["--cacert", "ca.pem", "--cert", "ada.pem", "{url}/get"], ["--cacert", "ca.pem", "{url}/get"],
        ["{url}/get"],
      ],
      isSecure: true
    ) { outcome in
      #expect(outcome.statuses.map { $0 == 0 } == [true, false, false], "\(outcome.program)")
      #expect(outcome.server.requestCount == 1, "\(outcome.program)")
    },
    Scenario(
      name: "a proxy", af: [["--proxy", "{url}", "http://any.example/x"]],
      http: [["--proxy", "http:{url}", "http://any.example/x"]],
      curl: [["--proxy", "{url}", "http://any.example/x"]],
      replies: [.text("from the proxy")]
    ) { outcome in
      #expect(outcome.output == "from the proxy", "\(outcome.program)")
      #expect(outcome.server.recordedRequests.first?.target == "http://any.example/x", "\(outcome.program)")
    },
    Scenario(
      // HTTPie has no such option.
      name: "another address of a host",
      af: [["--resolve", "any.example:{port}:127.0.0.1", "http://any.example:{port}/get"]], http: [],
      curl: [["--resolve", "any.example:{port}:127.0.0.1", "http://any.example:{port}/get"]]
    ) { outcome in
      let host = outcome.server.recordedRequests.first?.header("Host")
      #expect(host == "any.example:\(outcome.server.port)", "\(outcome.program)")
    },
  ]

  @Test("af and curl connect to a socket of the file system, not to a proxy; HTTPie has no such option")
  func unixSocket() async throws {
    for (program, path) in [("af", Programs.af), ("curl", "curl")]
    where program == "af" || Programs.isInstalled(program) {
      let folder = try Folder()
      let pipe = Pipe()
      let server = try ChildProgram(
        ["/usr/bin/env", "python3", "-uc", ProcessTests.socketServer, folder.path("s")],
        output: pipe.fileHandleForWriting.fileDescriptor)
      try pipe.fileHandleForWriting.close()
      #expect(try pipe.fileHandleForReading.read(upToCount: 6) == Data("ready\n".utf8))
      let run = try await ChildRun(
        [path, "--unix-socket", folder.path("s"), "http://any.example/item?a=b"],
        environment: ["http_proxy": "http://ann:pw@127.0.0.1:9"])
      #expect(String(decoding: run.output, as: UTF8.self) == "through the socket", "\(program)")
      let request = try pipe.fileHandleForReading.readToEnd().map { String(decoding: $0, as: UTF8.self) }
      #expect(request?.hasPrefix("GET /item?a=b HTTP/1.1\r\nHost: any.example\r\n") == true, "\(program)")
      #expect(request?.contains("Proxy-Authorization") == false, "\(program)")
      #expect(await server.end() == .exited(0))
    }
  }

  // MARK: Output

  private static let outputScenarios = [
    Scenario(
      // curl has no such option.
      name: "a request that is not sent", af: [["--offline", "-p", "HB", "{url}/post", "a=b"]],
      http: [["--offline", "-p", "HB", "{url}/post", "a=b"]], curl: []
    ) { outcome in
      #expect(outcome.server.requestCount == 0 && outcome.statuses == [0], "\(outcome.program)")
      #expect(outcome.output.hasPrefix("POST /post HTTP/1.1"), "\(outcome.program)")
      #expect(outcome.output.contains("{\"a\": \"b\"}"), "\(outcome.program): \(outcome.output)")
    },
    Scenario(
      name: "bytes are kept from a terminal", af: [["{url}/x"]], http: [["{url}/x"]], curl: [["{url}/x"]],
      replies: [Reply.data([0x61, 0, 0x62]).with(header: "Content-Type", value: "application/octet-stream")],
      isOnTerminal: true
    ) { outcome in
      #expect(
        outcome.server.requestCount == 1 && outcome.runs.last?.output.contains(0) == false,
        "\(outcome.program)")
      let note = outcome.output.lowercased()
      #expect(note.contains("binary") || note.contains("not text"), "\(outcome.program): \(outcome.output)")
    },
    Scenario(
      name: "the exit status of a class of responses",
      af: [["{url}/get"], ["--no-follow", "{url}/status/304"], ["{url}/status/404"], ["{url}/status/503"]],
      http: ["get", "status/304", "status/404", "status/503"].map { ["--check-status", "{url}/\($0)"] },
      curl: ["get", "status/304", "status/404", "status/503"].map { ["--fail", "{url}/\($0)"] }
    ) { outcome in
      #expect(
        outcome.statuses == (outcome.program == "curl" ? [0, 0, 22, 22] : [0, 3, 4, 5]), "\(outcome.program)")
    },
  ]
}
