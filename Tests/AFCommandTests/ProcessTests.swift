import AFCommand
import ChildProcesses
import Foundation
import HTTPTestServer
import Testing

/// Behaviour that needs a process: a terminal, a socket in the file system, an installation.
@Suite(.timeLimit(.minutes(5))) struct ProcessTests {
  private let folder: Folder

  init() throws {
    folder = try Folder()
  }

  // MARK: Client certificates

  private struct Client {
    let server: HTTPTestServer
    let identity: TestIdentity
    let authority: String
  }

  /// Starts a server that requires a client certificate, with an identity that it accepts.
  private func client() throws -> Client {
    let authority = try TestIdentity(.init(commonName: "Clients", isCA: true))
    let identity = try TestIdentity(.init(commonName: "Ada", issuer: authority))
    let options = TLSOptions(clientAuthority: authority.certificatePEM)
    return Client(
      server: try HTTPTestServer(.tls(.localhost, options)), identity: identity,
      authority: try folder.file("ca.pem", TestIdentity.localhost.caPEM))
  }

  /// Returns a file with the key under the passphrase "tea".
  private func encryptedKey(_ identity: TestIdentity) async throws -> String {
    let plain = try folder.file("plain.pem", identity.privateKeyPEM)
    let key = folder.path("key.pem")
    let run = try await ChildRun(
      ["openssl", "pkcs8", "-topk8", "-v2", "aes256", "-passout", "pass:tea", "-in", plain, "-out", key])
    try #require(run.status == 0, "\(run.complaints)")
    return key
  }

  @Test("--cert presents a certificate with its key from the same file or from --cert-key")
  func certificate() async throws {
    let client = try client()
    let (certificate, key) = (client.identity.certificatePEM, client.identity.privateKeyPEM)
    let both = try folder.file("both.pem", certificate + key)
    let (first, second) = (try folder.file("a.pem", certificate), try folder.file("b.pem", key))
    for arguments in [["--cert", both], ["--cert", first, "--cert-key", second], ["--cert=\(both)"]] {
      let run = await Terminal.pipe.run(arguments + ["--ca", client.authority, client.server.url("/get")])
      #expect(run.status == .success, "\(run.error)")
    }
    let none = await Terminal.pipe.run("--ca", client.authority, client.server.url("/get"))
    #expect(none.status == .failure)
    #expect(none.error.contains("--cert FILE"))
    let keyless = await Terminal.pipe.run(
      "--cert", first, "--ca", client.authority, client.server.url("/get"))
    #expect(keyless.status == .usage)
    #expect(keyless.error.contains(first))
  }

  @Test(
    "The passphrase of a key is asked for on the terminal, and is not shown",
    .enabled(if: Programs.isInstalled("openssl") && Programs.isInstalled("python3")))
  func passphrase() async throws {
    let client = try client()
    let certificate = try folder.file("a.pem", client.identity.certificatePEM)
    let key = try await encryptedKey(client.identity)
    let words =
      [Programs.af, "-b", "--no-color", "--ca", client.authority, "--cert", certificate, "--cert-key", key]
      + [client.server.url("/bearer"), "Authorization:Bearer t"]
    let run = try await Programs.runOnTerminal(words, answer: "tea")
    let output = String(decoding: run.output, as: UTF8.self)
    #expect(run.status == 0, "\(output)")
    #expect(output.hasPrefix("Passphrase of \(key): \r\n"))
    #expect(output.contains("\"authenticated\": true"))
    let wrong = try await Programs.runOnTerminal(words, answer: "coffee")
    #expect(wrong.status == 2)
    let complaint = String(decoding: wrong.output, as: UTF8.self)
    #expect(complaint.contains("passphrase") && !complaint.contains("coffee"))
    let silent = await Terminal.pipe.run(Array(words.dropFirst()))
    #expect(silent.status == .usage)
    #expect(silent.error.contains("--cert-key-pass PASS"))
  }

  @Test("A PKCS#12 file is read with its passphrase", .enabled(if: Programs.isInstalled("openssl")))
  func archive() async throws {
    let client = try client()
    let (certificate, key) = (
      try folder.file("a.pem", client.identity.certificatePEM),
      try folder.file("b.pem", client.identity.privateKeyPEM)
    )
    let file = folder.path("ada.p12")
    let made = try await ChildRun(
      [
        "openssl", "pkcs12", "-export", "-passout", "pass:tea", "-in", certificate, "-inkey", key, "-out",
        file,
      ])
    try #require(made.status == 0, "\(made.complaints)")
    var terminal = Terminal.pipe
    terminal.secret = "tea"
    let arguments = ["--cert", file, "--ca", client.authority, client.server.url("/get")]
    let run = await terminal.run(arguments)
    #expect(run.status == .success, "\(run.error)")
    #expect(await Terminal.pipe.run(["--cert-key-pass", "tea"] + arguments).status == .success)
    #expect(await terminal.run(["--cert-key-pass", "coffee"] + arguments).status == .usage)
  }

  @Test("The password of --auth is asked for on the terminal", .enabled(if: Programs.isInstalled("python3")))
  func password() async throws {
    let server = try HTTPTestServer()
    let run = try await Programs.runOnTerminal(
      [Programs.af, "-h", "-a", "ann", server.url("/basic-auth/ann/top")], answer: "top")
    let output = String(decoding: run.output, as: UTF8.self)
    #expect(run.status == 0, "\(output)")
    #expect(output.hasPrefix("Password of ann: \r\n"))
    #expect(!output.contains("top"))
  }

  @Test(
    "Nothing is sent if the input ends before a password, as with Ctrl-D",
    .enabled(if: Programs.isInstalled("python3")), arguments: ["\u{4}", "to\u{4}\u{4}"])
  func passwordWithoutEnd(answer: String) async throws {
    let server = try HTTPTestServer()
    let run = try await Programs.runOnTerminal(
      [Programs.af, "-h", "-a", "ann", server.url("/get")], answer: answer)
    let output = String(decoding: run.output, as: UTF8.self)
    #expect(run.status == 2, "\(output)")
    #expect(output.contains("ended before an answer"))
    #expect(server.requestCount == 0)
  }

  @Test(
    "Nothing is sent if a password is not UTF-8, because its bytes would be other ones",
    .enabled(if: Programs.isInstalled("python3")))
  func passwordInLatin1() async throws {
    let server = try HTTPTestServer()
    let run = try await Programs.runOnTerminal(
      [Programs.af, "-h", "-a", "ann", server.url("/get")], answer: "caf\u{E9}", encoding: "latin-1")
    let output = String(decoding: run.output, as: UTF8.self)
    #expect(run.status == 2, "\(output)")
    #expect(output.contains("The answer is not text in UTF-8") && !output.contains("caf"), "\(output)")
    #expect(server.requestCount == 0)
  }

  @Test("The variables of the environment are read", .enabled(if: Programs.isInstalled("python3")))
  func environment() async throws {
    let server = try HTTPTestServer()
    let words = [Programs.af, "--session", "me", server.url("/get"), "X-A:1"]
    // `swift test` sets NO_COLOR if its output is not a terminal.
    let home = ["XDG_DATA_HOME": folder.path, "TERM": "xterm", "NO_COLOR": ""]
    let colours = try await Programs.runOnTerminal(words, environment: home)
    #expect(String(decoding: colours.output, as: UTF8.self).contains("\u{1B}[1;32m200 OK"))
    #expect(
      FileManager.default.fileExists(atPath: folder.path("af/sessions/127.0.0.1_\(server.port)/me.json")))
    for variable in ["NO_COLOR": "1", "TERM": "dumb"] {
      let run = try await Programs.runOnTerminal(
        words, environment: home.merging([variable.key: variable.value]) { $1 })
      // Without colours, a slow machine still shows progress, and removes it.
      let shown = String(decoding: run.output, as: UTF8.self)
      let kept = variable.key == "NO_COLOR" ? shown.replacing("\u{1B}[K", with: "") : shown
      #expect(run.status == 0 && !kept.contains("\u{1B}"))
    }
    let paged = try await Programs.runOnTerminal(
      words + ["--pager"], environment: home.merging(["PAGER": "tr a-z A-Z"]) { $1 })
    #expect(String(decoding: paged.output, as: UTF8.self).contains("CONTENT-TYPE"))
  }

  @Test("Without the pager the output is shown directly", .enabled(if: Programs.isInstalled("python3")))
  func noPager() async throws {
    let server = try HTTPTestServer()
    let words = ["/usr/bin/env", "PATH=\(folder.path)", "TERM=dumb"]
    let request = [Programs.af, "--pager", "-b", server.url("/bytes/0"), "X-A:1"]
    for (pager, name) in [("PAGER=", "less"), ("PAGER=LESS=R none -R", "LESS=R none -R")] {
      server.enqueue(.text("shown"))
      let run = try await Programs.runOnTerminal(words + [pager] + request)
      let output = String(decoding: run.output, as: UTF8.self)
      #expect(run.status == 0 && output.contains("shown"), "\(output)")
      #expect(output.contains("The pager '\(name)' is not installed"))
    }
  }

  @Test("A pager that fails is a failure", .enabled(if: Programs.isInstalled("python3")))
  func failingPager() async throws {
    let server = try HTTPTestServer()
    for (pager, reason) in [
      ("false", "exit status 1"), ("'no such'", "exit status 127"), ("kill -9 $$", "signal 9"),
    ] {
      let run = try await Programs.runOnTerminal(
        [Programs.af, "--pager", server.url("/get")], environment: ["PAGER": pager, "TERM": "dumb"])
      let output = String(decoding: run.output, as: UTF8.self)
      #expect(run.status == 1, "\(output)")
      #expect(output.contains("The pager '\(pager)' ") && output.contains(reason), "\(output)")
    }
  }

  @Test(
    "Ctrl-C at the question for a password ends the process and restores the echo",
    .enabled(if: Programs.isInstalled("python3")))
  func interruptedPassword() async throws {
    let run = try await ChildRun(
      ["/usr/bin/env", "python3", "-c", Self.interruption, Programs.af, "-a", "ann", "http://127.0.0.1:1/"])
    #expect(run.status == 0, "\(run.complaints)")
    #expect(String(decoding: run.output, as: UTF8.self) == "-2 False True\n")
  }

  /// Types Ctrl-C at the first question of a program. Prints its exit code, whether the terminal echoed before, and
  /// whether it does after the end.
  private static let interruption = """
    import os, pty, signal, sys, termios
    process, terminal = pty.fork()
    if process == 0:
        # The tests may run in a background job, whose children ignore SIGINT.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.execvp(sys.argv[1], sys.argv[1:])
    def echoes():
        return bool(termios.tcgetattr(terminal)[3] & termios.ECHO)
    shown = b""
    while not shown.endswith(b": "):
        shown += os.read(terminal, 4096)
    before = echoes()
    # If the signal is lost, the program is killed and the test fails.
    signal.alarm(60)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(process, signal.SIGKILL))
    os.write(terminal, b"\\x03")
    status = os.waitpid(process, 0)[1]
    print(os.waitstatus_to_exitcode(status), before, echoes())
    """

  @Test(
    "A signal after the question for a password ends the process, also while it reads its input",
    .enabled(if: Programs.isInstalled("python3")), arguments: [SIGINT, SIGTERM])
  func interruptedInput(signal: Int32) async throws {
    let run = try await ChildRun(
      ["/usr/bin/env", "python3", "-c", Self.interruptedInput, "\(signal)", Programs.af, "-a", "ann"]
        + ["POST", "http://127.0.0.1:1/"])
    #expect(run.status == 0, "\(run.complaints)")
    #expect(String(decoding: run.output, as: UTF8.self) == "-\(signal)\n")
  }

  /// Answers the first question of a program, and sends it a signal while it reads a pipe. Prints its exit code.
  private static let interruptedInput = """
    import os, pty, signal, sys
    source, sink = os.pipe()
    process, terminal = pty.fork()
    if process == 0:
        # The tests may run in a background job, whose children ignore SIGINT.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.dup2(source, 0)
        os.close(sink)
        os.execvp(sys.argv[2], sys.argv[2:])
    # If the signal is lost, the program is killed and the test fails.
    signal.alarm(60)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(process, signal.SIGKILL))
    shown = b""
    while not shown.endswith(b": "):
        shown += os.read(terminal, 4096)
    os.write(terminal, b"secret\\n")
    # More than the pipe holds, so that the program has read some of it.
    rest = b"x" * 100000
    while rest:
        rest = rest[os.write(sink, rest):]
    os.kill(process, int(sys.argv[1]))
    status = os.waitpid(process, 0)[1]
    print(os.waitstatus_to_exitcode(status))
    """

  // MARK: Streams

  /// Returns the screen of a new terminal, and the terminal itself. The Glibc module declares no `openpty`.
  private static func openTerminal() throws -> (screen: FileHandle, terminal: Int32) {
    let screen = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
    let (setLock, getNumber) = (UInt(0x4004_5431), UInt(0x8004_5430))
    var (lock, number) = (Int32(0), Int32(0))
    let isOpen = screen >= 0 && ioctl(screen, setLock, &lock) == 0 && ioctl(screen, getNumber, &number) == 0
    try #require(isOpen)
    let terminal = open("/dev/pts/\(number)", O_RDWR | O_NOCTTY | O_CLOEXEC)
    try #require(terminal >= 0)
    return (FileHandle(fileDescriptor: screen, closeOnDealloc: true), terminal)
  }

  @Test("An event is on the terminal before the server sends the next one", arguments: ["GET", "sse"])
  func firstEvent(word: String) async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(
      Reply(
        headers: [.contentType("text/event-stream")],
        body: .parts(["data: one\n\n", .gate(gate), "data: two\n\n"])),
      .status(204))
    let (screen, terminal) = try Self.openTerminal()
    let program = try ChildProgram([Programs.af, "-b", word, server.url("/x")], output: terminal)
    func waitFor(_ text: String) throws {
      var shown = ""
      while !shown.contains(text), let piece = try screen.read(upToCount: 1), !piece.isEmpty {
        shown += String(decoding: piece, as: UTF8.self)
      }
      #expect(shown.contains(text))
    }
    try waitFor("one\r\n")
    gate.open()
    try waitFor("two\r\n")
    close(terminal)
    #expect(await program.end() == .exited(0))
  }

  @Test("A standard input and output that do not block lose nothing")
  func nonBlocking() async throws {
    let server = try HTTPTestServer()
    server.enqueue(
      .webSocket(
        WebSocketEndpoint { connection in
          try connection.send("hello")
          for _ in 0..<100 { try connection.send(String(repeating: "-", count: 99_999)) }
          try connection.echo()
        }))
    let (input, output) = (Pipe(), Pipe())
    for end in [input.fileHandleForReading, output.fileHandleForWriting] {
      #expect(fcntl(end.fileDescriptor, F_SETFL, O_NONBLOCK | fcntl(end.fileDescriptor, F_GETFL)) == 0)
    }
    let program = try ChildProgram(
      [Programs.af, "ws", server.url("/")], input: input.fileHandleForReading.fileDescriptor,
      output: output.fileHandleForWriting.fileDescriptor)
    try output.fileHandleForWriting.close()
    let reader = output.fileHandleForReading
    func read(_ count: Int) throws -> Data {
      var data = Data()
      while data.count < count, let piece = try reader.read(upToCount: count - data.count) { data += piece }
      return data
    }
    #expect(try read(6) == Data("hello\n".utf8))
    #expect(try read(10_000_000).count == 10_000_000)
    // The program has tried to read before this line is there.
    try input.fileHandleForWriting.write(contentsOf: Data("typed\n".utf8))
    #expect(try read(6) == Data("typed\n".utf8))
    try input.fileHandleForWriting.close()
    #expect(await program.end() == .exited(0))
  }

  @Test("The home folder is the one in HOME, for sessions, netrc and paths that begin with ~")
  func home() async throws {
    let server = try HTTPTestServer()
    _ = try folder.file(".netrc", "machine 127.0.0.1 login ann password top\n")
    _ = try folder.file("body", "from home")
    let words = ["env", "-u", "XDG_DATA_HOME", "HOME=\(folder.path)", Programs.af]
    let first = try await ChildRun(
      words + ["--session", "s", "--netrc", server.url("/basic-auth/ann/top")])
    #expect(first.status == 0, "\(first.complaints)")
    let session = folder.path(".local/share/af/sessions/127.0.0.1_\(server.port)/s.json")
    #expect(FileManager.default.fileExists(atPath: session))
    let second = try await ChildRun(
      words + ["--cookie-jar", "~/jar", server.url("/anything"), "@~/body"])
    #expect(second.status == 0, "\(second.complaints)")
    #expect(FileManager.default.fileExists(atPath: folder.path("jar")))
    #expect(server.recordedRequests.last?.bodyText == "from home")
  }

  @Test("Nothing is sent or saved if an argument or the path in a variable is not UTF-8")
  func otherEncoding() async throws {
    let server = try HTTPTestServer()
    let name = #"name="$1/$(printf 'nm\351')"; "#
    for (command, reason) in [
      (#"exec "$0" -o "$name" "$2""#, "Argument 2 is not UTF-8"),
      (#"exec "$0" -b "$2" X-A:"$name""#, "Argument 3 is not UTF-8"),
      (#"exec env HOME="$name" "$0" "$2""#, "HOME is not UTF-8"),
      (#"exec env XDG_DATA_HOME="$name" "$0" --session s "$2""#, "XDG_DATA_HOME is not UTF-8"),
    ] {
      let run = try await ChildRun(
        ["sh", "-c", name + command, Programs.af, folder.path, server.url("/get")])
      #expect(run.status == 2 && run.complaints.contains(reason), "\(command): \(run.complaints)")
    }
    #expect(server.requestCount == 0)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
  }

  // MARK: Connections

  @Test("--unix-socket sends the request through it", .enabled(if: Programs.isInstalled("python3")))
  func unixSocket() async throws {
    let path = folder.path("s")
    let pipe = Pipe()
    let server = try ChildProgram(
      ["/usr/bin/env", "python3", "-uc", Self.socketServer, path],
      output: pipe.fileHandleForWriting.fileDescriptor)
    try pipe.fileHandleForWriting.close()
    #expect(try pipe.fileHandleForReading.read(upToCount: 6) == Data("ready\n".utf8))
    let run = await Terminal.pipe.run("--unix-socket", path, "http://any.example/item?a=b")
    #expect(run.status == .success, "\(run.error)")
    #expect(run.output == "through the socket")
    let request = try pipe.fileHandleForReading.readToEnd().map { String(decoding: $0, as: UTF8.self) }
    #expect(request?.hasPrefix("GET /item?a=b HTTP/1.1\r\nHost: any.example\r\n") == true)
    #expect(await server.end() == .exited(0))
  }

  /// A server for one request through the socket at the path of its argument.
  static let socketServer = """
    import socket, sys
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[1])
    listener.listen()
    print("ready")
    connection = listener.accept()[0]
    request = b""
    while b"\\r\\n\\r\\n" not in request:
        request += connection.recv(4096)
    sys.stdout.buffer.write(request)
    connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 18\\r\\n\\r\\nthrough the socket")
    connection.recv(1)
    """

  @Test("--http2 uses HTTP/2 for an http URL, and --http1.1 never does")
  func http2() async throws {
    let server = try StreamTestServer { connection in
      let http2 = try HTTP2TestConnection(connection)
      let stream = try http2.request()
      try http2.respond(200, on: stream, endsStream: false)
      try http2.send(Array("two".utf8), on: stream, endsStream: true)
      _ = try connection.readToEnd()
    }
    let run = await Terminal.pipe.run("-v", "--http2", "http://127.0.0.1:\(server.port)/x")
    #expect(run.status == .success, "\(run.error)")
    #expect(run.output.hasPrefix("GET /x HTTP/2\n"))
    #expect(run.output.contains("\n\nHTTP/2 200 OK\n"))
    #expect(run.output.hasSuffix("\n\ntwo"))
    let plain = try HTTPTestServer()
    #expect(await Terminal.pipe.run("--http1.1", plain.url("/get")).status == .success)
    let refused = await Terminal.pipe.run("--http2", plain.url("/get"))
    #expect(refused.status == .failure)
    #expect(refused.error.hasSuffix(" Without --http2, the request uses HTTP/1.1.\n"))
    #expect(await Terminal.pipe.run("--http1.1", "--http2", plain.url("/get")).status == .usage)
  }

  // MARK: Installation

  @Test("Scripts/install-af installs the program, its manual page and completions, and --remove removes them")
  func installation() async throws {
    let prefix = folder.path("a prefix")
    let variables = ["PATH": "\(try fakeSwift()):\(ProcessInfo.processInfo.environment["PATH"] ?? "")"]
    let script = HTTPBinServer.packageRoot.appendingPathComponent("Scripts/install-af").path
    let run = try await ChildRun([script, prefix], environment: variables)
    let said = String(decoding: run.output, as: UTF8.self)
    #expect(run.status == 0, "\(run.complaints)")
    #expect(
      said.hasPrefix("Installed \(Help.version.trimmingCharacters(in: .newlines)) in \(prefix)/bin/af.\n"))
    #expect(said.contains("Add \(prefix)/bin to PATH"))
    #expect(try files(prefix) == Self.installed)
    let help = try await ChildRun(["\(prefix)/bin/af", "--help"])
    #expect(String(decoding: help.output, as: UTF8.self) == Help.text)
    let manual = FileManager.default.contents(atPath: "\(prefix)/share/man/man1/af.1")
    #expect(manual == Data(ManualPage.text.utf8))
    try Data().write(to: URL(fileURLWithPath: "\(prefix)/bin/other"))
    let removal = try await ChildRun([script, "--remove", prefix], environment: variables)
    #expect(removal.status == 0, "\(removal.complaints)")
    #expect(try files(prefix) == ["bin/other"])
    #expect(try await ChildRun([script, "--frob"], environment: variables).status == 2)
  }

  private static let installed = [
    "bin/af", "share/bash-completion/completions/af", "share/fish/vendor_completions.d/af.fish",
    "share/man/man1/af.1", "share/zsh/site-functions/_af",
  ]

  private func files(_ prefix: String) throws -> [String] {
    try FileManager.default.subpathsOfDirectory(atPath: prefix).filter { path in
      var isFolder: ObjCBool = false
      return FileManager.default.fileExists(atPath: "\(prefix)/\(path)", isDirectory: &isFolder)
        && !isFolder.boolValue
    }.sorted()
  }

  /// Makes a `swift` that builds nothing and names the folder of the command that is built. Returns its folder.
  private func fakeSwift() throws -> String {
    let built = URL(fileURLWithPath: Programs.af).deletingLastPathComponent().path
    let program = try folder.file(
      "swift", "#!/bin/sh\ncase \"$*\" in *--show-bin-path*) echo '\(built)' ;; esac\n")
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program)
    return folder.path
  }
}
