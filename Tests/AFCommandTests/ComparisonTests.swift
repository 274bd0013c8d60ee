import ChildProcesses
import Foundation
import HTTPTestServer
import Testing

/// The behaviour of `af` compared with HTTPie and curl, if installed: the request that reaches the server, the output,
/// and the exit status.
@Suite(.timeLimit(.minutes(10))) struct ComparisonTests {
  /// The arguments of one request in the language of each program; `{url}` is the address of the server.
  struct Row: Sendable, CustomTestStringConvertible {
    let name: String
    let af: [String]
    /// None if HTTPie cannot send this.
    let http: [String]
    let curl: [String]
    var input = ""
    var reply: Reply?
    let method: String
    let target: String
    var body = ""
    /// Fields that the request has to have.
    var fields: [String: String] = [:]
    /// Whether the body is compared; programs compress differently.
    var comparesBody = true
    /// Names that occur several times, and their values.
    var repeatedFields: [String: [String]] = [:]
    /// Fields that the request must not have.
    var absentFields: [String] = []
    /// The beginnings of the values by which HTTPie's library replaces those fields.
    var replacedFields: [String: String] = [:]
    /// The output of all programs; `nil` if it is not compared.
    var output: String?
    /// Whether the programs end with a failure.
    var fails = false

    var testDescription: String { name }
  }

  private static let longText = String(repeating: "text ", count: 1000)

  static let rows: [Row] = [
    Row(
      name: "a query", af: ["{url}/get", "q==a b"], http: ["{url}/get", "q==a b"],
      curl: ["-G", "--data-urlencode", "q=a b", "{url}/get"], method: "GET", target: "/get?q=a%20b"),
    Row(
      name: "a JSON object", af: ["{url}/post", "a=b", "n:=1"], http: ["{url}/post", "a=b", "n:=1"],
      curl: ["-H", "Content-Type: application/json", "-d", #"{"a": "b", "n": 1}"#, "{url}/post"],
      method: "POST", target: "/post", body: #"{"a": "b", "n": 1}"#,
      fields: ["Content-Type": "application/json"]),
    Row(
      name: "nested JSON", af: ["{url}/post", "a[b][]=1", "a[b][]:=2", "a[c]=x"],
      http: ["{url}/post", "a[b][]=1", "a[b][]:=2", "a[c]=x"],
      curl: ["-d", #"{"a": {"b": ["1", 2], "c": "x"}}"#, "{url}/post"], method: "POST", target: "/post",
      body: #"{"a": {"b": ["1", 2], "c": "x"}}"#),
    Row(
      name: "a form", af: ["-f", "{url}/post", "a=1", "b=x&y"], http: ["-f", "{url}/post", "a=1", "b=x&y"],
      curl: ["-d", "a=1", "--data-urlencode", "b=x&y", "{url}/post"], method: "POST", target: "/post",
      body: "a=1&b=x%26y"),
    Row(
      name: "a header field", af: ["{url}/get", "X-A:b c"], http: ["{url}/get", "X-A:b c"],
      curl: ["-H", "X-A: b c", "{url}/get"], method: "GET", target: "/get", fields: ["X-A": "b c"]),
    Row(
      name: "a default field is left out", af: ["{url}/get", "User-Agent:", "Accept-Encoding:"],
      http: ["{url}/get", "User-Agent:", "Accept-Encoding:"],
      curl: ["-H", "User-Agent:", "-H", "Accept-Encoding:", "{url}/get"], method: "GET", target: "/get",
      absentFields: ["User-Agent", "Accept-Encoding"],
      replacedFields: ["User-Agent": "python-urllib3", "Accept-Encoding": "identity"]),
    Row(
      name: "the type of a body is left out", af: ["{url}/post", "a=b", "Content-Type:"],
      http: ["{url}/post", "a=b", "Content-Type:"],
      curl: ["-H", "Content-Type:", "-d", #"{"a": "b"}"#, "{url}/post"], method: "POST", target: "/post",
      body: #"{"a": "b"}"#, absentFields: ["Content-Type"]),
    Row(
      name: "a field that is left out and one that is not there",
      af: ["{url}/get", "X-A:1", "X-A:", "X-B:", "X-C:", "X-C:2"],
      http: ["{url}/get", "X-A:1", "X-A:", "X-B:", "X-C:", "X-C:2"], curl: ["-H", "X-C: 2", "{url}/get"],
      method: "GET", target: "/get", fields: ["X-C": "2"], absentFields: ["X-A", "X-B"]),
    Row(
      name: "fields without a value", af: ["{url}/get", "X-A;", "User-Agent;"],
      http: ["{url}/get", "X-A;", "User-Agent;"],
      curl: ["-H", "X-A;", "-H", "User-Agent;", "{url}/get"], method: "GET", target: "/get",
      fields: ["X-A": "", "User-Agent": ""]),
    Row(
      name: "two fields of a name", af: ["{url}/get", "X-A:b", "X-A:c"],
      http: ["{url}/get", "X-A:b", "X-A:c"],
      curl: ["-H", "X-A: b", "-H", "X-A: c", "{url}/get"], method: "GET", target: "/get",
      repeatedFields: ["X-A": ["b", "c"]]),
    Row(
      name: "a compressed body", af: ["--compress", "POST", "{url}/post", "--raw", longText],
      http: ["--compress", "POST", "{url}/post", "--raw", longText], curl: [], method: "POST",
      target: "/post",
      fields: ["Content-Encoding": "deflate"], comparesBody: false),
    Row(
      name: "the status code for a script", af: ["--status", "{url}/x"], http: [],
      curl: ["-o", "/dev/null", "-w", "%{http_code}\\n", "{url}/x"], reply: .text("page"), method: "GET",
      target: "/x", output: "200\n"),
    Row(
      name: "IPv4 alone", af: ["-4", "{url}/get"], http: [], curl: ["-4", "{url}/get"], method: "GET",
      target: "/get"),
    Row(
      name: "another method", af: ["PATCH", "{url}/patch", "--raw", "x"],
      http: ["PATCH", "{url}/patch", "--raw", "x"],
      curl: ["-X", "PATCH", "-d", "x", "{url}/patch"], method: "PATCH", target: "/patch", body: "x"),
    Row(
      name: "standard input", af: ["POST", "{url}/post"], http: ["POST", "{url}/post"],
      curl: ["--data-binary", "@-", "{url}/post"], input: "typed\n", method: "POST", target: "/post",
      body: "typed\n"),
    Row(
      name: "Basic credentials", af: ["-a", "u:p", "{url}/basic-auth/u/p"],
      http: ["-a", "u:p", "{url}/basic-auth/u/p"],
      curl: ["-u", "u:p", "{url}/basic-auth/u/p"], method: "GET", target: "/basic-auth/u/p",
      fields: ["Authorization": "Basic dTpw"]),
    Row(
      name: "a bearer token", af: ["-A", "bearer", "-a", "t", "{url}/bearer"],
      http: ["-A", "bearer", "-a", "t", "{url}/bearer"], curl: ["--oauth2-bearer", "t", "{url}/bearer"],
      method: "GET", target: "/bearer", fields: ["Authorization": "Bearer t"]),
    Row(
      name: "bytes in a pipe are unchanged", af: ["{url}/x"], http: ["{url}/x"], curl: ["{url}/x"],
      reply: .json(#"{"b":1,  "a":2}"#), method: "GET", target: "/x", output: #"{"b":1,  "a":2}"#),
    Row(
      name: "a status of a failure", af: ["{url}/status/404"], http: ["--check-status", "{url}/status/404"],
      curl: ["-f", "{url}/status/404"], method: "GET", target: "/status/404", fails: true),
    Row(
      name: "a redirect is not followed", af: ["--no-follow", "{url}/redirect/1"], http: ["{url}/redirect/1"],
      curl: ["{url}/redirect/1"], method: "GET", target: "/redirect/1"),
    Row(
      name: "a body in a file", af: ["-o", "/dev/null", "{url}/bytes/10"],
      http: ["-o", "/dev/null", "{url}/bytes/10"],
      curl: ["-o", "/dev/null", "{url}/bytes/10"], method: "GET", target: "/bytes/10", output: ""),
  ]

  @Test("af, HTTPie and curl send the same request and write the same output", arguments: rows)
  func row(_ row: Row) async throws {
    let programs = [("af", Programs.af, row.af), ("http", "http", row.http), ("curl", "curl", row.curl)]
    for (name, path, arguments) in programs
    where !arguments.isEmpty && (name == "af" || Programs.isInstalled(name)) {
      let server = try HTTPTestServer()
      if let reply = row.reply { server.enqueue(reply) }
      let folder = try Folder()
      let input = URL(fileURLWithPath: try folder.file("input", row.input))
      var words = [path] + arguments.map { $0.replacingOccurrences(of: "{url}", with: server.baseURL) }
      if name == "http", row.input.isEmpty { words.insert("--ignore-stdin", at: 1) }
      if name == "curl" { words.insert("-sS", at: 1) }
      let run = try await ChildRun(words, environment: ["HTTPIE_CONFIG_DIR": folder.path], input: input)
      let request = try #require(server.recordedRequests.first, "\(name): \(run.complaints)")
      #expect(request.method == row.method, "\(name)")
      #expect(Self.canonical(request.target) == Self.canonical(row.target), "\(name)")
      if row.comparesBody { #expect(request.bodyText == row.body, "\(name)") }
      for (field, values) in row.repeatedFields {
        #expect(request.headers(named: field) == values, "\(name)")
      }
      for (field, value) in row.fields { #expect(request.header(field) == value, "\(name)") }
      for field in row.absentFields {
        // With some versions of its library, HTTPie sends the library's field.
        let start = name == "http" ? row.replacedFields[field] : nil
        #expect(
          request.header(field).map { value in start.map(value.hasPrefix) ?? false } ?? true,
          "\(name): \(field)")
      }
      if let output = row.output { #expect(String(decoding: run.output, as: UTF8.self) == output, "\(name)") }
      if row.fails { #expect(run.status != 0, "\(name)") }
    }
  }

  /// Returns the target with `%20` for each space, which clients write as `+` or as `%20`.
  private static func canonical(_ target: String) -> String {
    target.replacingOccurrences(of: "+", with: "%20")
  }

  // MARK: The process

  /// `Scripts/soak pipe` sets the bytes, and measures the command as it is installed.
  private static let soakBytes = ProcessInfo.processInfo.environment["ALAMOFIRE_SOAK_BYTES"].flatMap {
    Int($0)
  }

  @Test("A large body passes through the command in constant memory, both ways")
  func memory() async throws {
    let server = try HTTPTestServer()
    let count = Self.soakBytes ?? 300_000_000
    let folder = try Folder()
    let script = """
      head -c \(count) /dev/zero | "$0" "$1/upload-sink" @- > /dev/null &&
      "$0" "$1/bytes/\(count)" | wc -c
      """
    let run = try await ChildRun(
      ["/usr/bin/env", "python3", "-c", Self.measure, script, Programs.af, server.baseURL],
      environment: ["HOME": folder.path])
    let lines = String(decoding: run.output, as: UTF8.self).split(separator: "\n")
    #expect(lines.first == "\(count)", "\(run.complaints)")
    let peak = try #require(lines.last.flatMap { Int($0) })
    if Self.soakBytes != nil { print("Peak of the command: \(peak) kB for \(count) bytes each way") }
    #if THREAD_SANITIZER  // It needs several bytes for each byte.
      #expect(peak < 150_000, "kilobytes")
    #elseif !ADDRESS_SANITIZER  // It delays the reuse of freed memory.
      #expect(peak < (Self.soakBytes == nil ? 60_000 : 40_000), "kilobytes")
    #endif
    #expect(server.recordedRequests.first?.bodyLength == count)
  }

  /// Runs a script and prints the largest resident size of its processes.
  private static let measure = """
    import resource, subprocess, sys
    status = subprocess.run(["bash", "-o", "pipefail", "-c", *sys.argv[1:]]).returncode
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
    sys.exit(status)
    """

  @Test("The first event of an endless stream is written although the server never continues")
  func firstEvent() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(
      Reply(headers: [.contentType("text/event-stream")], body: .parts(["data: 1\n\n", .gate(gate)])))
    let pipe = Pipe()
    let program = try ChildProgram(
      [Programs.af, server.url("/")], output: pipe.fileHandleForWriting.fileDescriptor)
    try pipe.fileHandleForWriting.close()
    // Waits for the event; the body does not end before it has arrived.
    #expect(try pipe.fileHandleForReading.read(upToCount: 9) == Data("data: 1\n\n".utf8))
    gate.open()
    #expect(await program.end() == .exited(0))
  }
}
