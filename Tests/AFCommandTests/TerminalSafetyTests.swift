import AFCommand
import Foundation
import HTTPTestServer
import Testing

/// The effects of a server on the terminal of a person who looks at its answer.
@Suite(.timeLimit(.minutes(5))) struct TerminalSafetyTests {
  private let server: HTTPTestServer

  init() throws {
    server = try HTTPTestServer()
  }

  /// Sequences that clear a screen, set the clipboard, colour text, turn it round and overwrite a line.
  private static let evil =
    "a\u{1B}[2Jb\u{1B}]52;c;ZXZpbA==\u{07}c\u{9B}31md\u{202E}e\u{2066}f\u{7F}g\u{08}h\u{85}i\u{2028}j\rk"
  /// The part of them that a header field can hold.
  private static let evilField = "a\u{9B}31mb\u{202E}c\u{2066}d\u{85}e\u{9D}52;c;ZXZpbA==\u{9C}f"

  private static func raw(_ head: String, _ body: String = "body\n") -> Reply {
    .raw("HTTP/1.1 \(head)\r\nContent-Length: \(body.utf8.count)\r\nConnection: close\r\n\r\n\(body)")
  }

  private static func body(_ text: String, _ type: String = "text/plain; charset=utf-8") -> Reply {
    Reply(headers: [.contentType(type)], body: .parts([.bytes(Array(text.utf8))]))
  }

  /// An answer, the arguments with which it is asked for, and a text that the output contains; empty for any.
  private static let answers: [(name: String, reply: Reply, arguments: [String], shown: String)] = [
    ("body", body(evil), ["-b"], #"a\u001B[2Jb\u001B]52;c;ZXZpbA==\u0007c\u009B31md\u202Ee\u2066f\u007Fg"#),
    ("body without a type", Reply(body: .parts([.bytes(Array(evil.utf8))])), [], #"\u001B[2J"#),
    ("page", body("<p>\(evil)</p>", "text/html"), [], #"<p>a\u001B[2J"#),
    (
      "JSON", body("{\"a\": \"x\u{9B}31m\u{202E}\u{7F}\"}", "application/json"), [],
      #""a": "x\u009B31m\u202E\u007F""#
    ),
    ("broken JSON", body("{\"a\": \"\(evil)", "application/json"), [], #"\u001B[2J"#),
    ("JSON with an escape sequence", body("[\"\u{1B}[2J\"]", "application/json"), ["-b"], #""\u001B[2J""#),
    (
      "other charset",
      Reply(
        headers: [.contentType("text/plain; charset=iso-8859-1")],
        body: .parts([.bytes([0x61, 0x9B, 0x33, 0x31, 0x6D, 0xFC])])), ["-b"], "31mü"
    ),
    (
      "bytes beyond UTF-8",
      Reply(
        headers: [.contentType("text/plain")], body: .parts([.bytes([0x61, 0x9B, 0x33, 0x31, 0x6D])])),
      ["-b"], "a\u{FFFD}31m"
    ),
    ("value of a field", raw("200 OK\r\nX-A: \(evilField)"), [], #"X-A: a\u009B31mb\u202Ec\u2066d\u0085e"#),
    ("value with an escape", raw("200 OK\r\nX-A: a\u{1B}[2Jb"), [], ""),
    ("name of a field", raw("200 OK\r\nX-\u{9B}31m\u{202E}: a"), [], ""),
    ("reason", raw("200 \(evil.prefix { $0 != "\r" })"), [], ""),
    ("status line", raw("\u{1B}[2J OK"), [], ""),
    ("version", .raw("HTTP/1.\u{9B}31m 200 OK\r\n\r\n"), [], ""),
    ("no HTTP", .raw("\u{1B}]52;c;ZXZpbA==\u{07}\r\n"), [], ""),
    (
      "media type of a binary body", raw("200 OK\r\nContent-Type: image/\(evilField)"), ["-b"], #"Not text: "#
    ),
    ("location", raw("302 Found\r\nLocation: /\(evilField)"), ["--no-follow"], #"Location: /a\u009B31m"#),
    ("scheme of a location", raw("302 Found\r\nLocation: x\u{9B}31m\u{202E}y:z"), [], ""),
    ("challenge", raw("401 No\r\nWWW-Authenticate: Basic realm=\"\(evilField)\""), [], #"realm="a\u009B31m"#),
    ("cookie", raw("200 OK\r\nSet-Cookie: n\u{9B}31m\u{202E}=\(evilField)"), [], #"n\u009B31m\u202E="#),
    (
      "coding of the transfer", .raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: x\u{9B}31m\u{202E}\r\n\r\n"), [],
      ""
    ),
    ("coding of the content", raw("200 OK\r\nContent-Encoding: x\u{9B}31m\u{202E}"), [], ""),
    ("length", .raw("HTTP/1.1 200 OK\r\nContent-Length: 1\u{1B}[2J\r\n\r\n"), [], ""),
    ("verbose body", body(evil), ["-v"], #"a\u001B[2Jb"#),
    (
      "verbose trailers",
      Reply(body: .parts(["text\n"])).framed(.chunked)
        .with(trailers: [HTTPHeader(name: "X-T", value: evilField)]), ["-v"], #"X-T: a\u009B31m"#
    ),
    ("timing", raw("200 OK\r\nX-A: \(evilField)"), ["--timing"], ""),
  ]

  @Test("No answer reaches a terminal as a command", arguments: Self.answers.indices)
  func answer(index: Int) async {
    let (name, reply, arguments, shown) = Self.answers[index]
    server.enqueue(reply)
    let run = await Terminal(isErrorTerminal: true).run(arguments + ["--retry", "0", server.url("/")])
    expectReadable(run, name)
    #expect(shown.isEmpty || run.output.contains(shown), "\(name): \(run.output.debugDescription)")
    #expect(!(run.output + run.error).isEmpty, "\(name)")
  }

  @Test("A body that is cut inside a sequence is still shown as text")
  func pieces() async {
    let bytes = Array("é\u{9B}31m\u{202E}\u{1B}[2J日\r\nend".utf8)
    server.enqueue(
      Reply(headers: [.contentType("text/plain")], body: .parts(bytes.map { .bytes([$0]) })))
    let run = await Terminal().run("-b", server.url("/"))
    expectReadable(run, "pieces")
    #expect(run.output == #"é\u009B31m\u202E\u001B[2J日"# + "\nend\n")
  }

  @Test("A character that the body does not complete ends the output with a line break")
  func incompleteCharacter() async {
    server.enqueue(
      Reply(headers: [.contentType("text/plain")], body: .parts([.bytes([0x61, 0x0A, 0xE2, 0x80])])))
    #expect(await Terminal().run("-b", server.url("/")).output == "a\n\u{FFFD}\n")
  }

  @Test("Types and data of events are shown as text") func events() async {
    let text = "retry: 1\nevent: t\u{1B}[2J\u{202E}\ndata: d\u{1B}]52;c;eA==\u{07}\u{9B}31m\ndata: two\n\n"
    server.enqueue(
      Reply(headers: [.contentType("text/event-stream")], body: .parts([.bytes(Array(text.utf8))])),
      .status(204))
    let run = await Terminal().run("sse", server.url("/"))
    expectReadable(run, "events")
    #expect(run.output == #"t\u001B[2J\u202E: d\u001B]52;c;eA==\u0007\u009B31m"# + "\ntwo\n")
  }

  @Test("A type of a refused event stream is shown as text") func refusedEvents() async {
    server.enqueue(Self.raw("200 OK\r\nContent-Type: text/\(Self.evilField)"))
    let run = await Terminal(isErrorTerminal: true).run("sse", server.url("/"))
    expectReadable(run, "refused events")
    #expect(run.error.contains(#"text/a\u009B31mb\u202E"#), "\(run.error)")
  }

  @Test("Messages of a WebSocket and the reason of its end are shown as text") func messages() async {
    server.enqueue(
      .webSocket(
        WebSocketEndpoint { connection in
          try connection.send("m\u{1B}[2J\u{9B}31m\u{202E}\nn")
          try connection.close(4001, reason: "r\u{1B}]52;c;eA==\u{07}\u{202E}\ns")
        }))
    let run = await Terminal(isErrorTerminal: true).run("-I", "ws", server.url("/"))
    expectReadable(run, "messages")
    #expect(run.output == #"m\u001B[2J\u009B31m\u202E"# + "\nn\n")
    #expect(run.error.contains(#"4001: r\u001B]52;c;eA==\u0007\u202E\ns"#), "\(run.error)")
  }

  @Test(
    "Fields of a refused handshake are shown as text",
    arguments: [
      "Upgrade: x\u{9B}31m\u{202E}\r\nConnection: Upgrade",
      "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Protocol: x\u{9B}31m\u{202E}",
      "Upgrade: websocket\r\nConnection: x\u{9B}31m\u{202E}",
    ])
  func handshake(fields: String) async {
    server.enqueue(.raw("HTTP/1.1 101 \u{9B}31m\r\n\(fields)\r\n\r\n"))
    let run = await Terminal(isErrorTerminal: true).run("-I", "ws", server.url("/"))
    expectReadable(run, fields)
    #expect(run.status == .failure && !run.error.isEmpty)
  }

  @Test("The name of a saved file is shown as text") func savedFile() async throws {
    let folder = try Folder()
    server.enqueue(
      Self.raw("200 OK\r\nContent-Disposition: attachment; filename*=UTF-8''a%1B%5B2J%C2%9B31m%E2%80%AEb.txt")
    )
    var terminal = Terminal(isErrorTerminal: true)
    terminal.folder = folder.path("")
    let run = await terminal.run("-d", server.url("/"))
    expectReadable(run, "saved file")
    #expect(run.status == .success && run.error.contains("Saved in "), "\(run.error)")
  }

  @Test("Arguments of a person are shown as text in errors") func arguments() async {
    for text in ["http://h\u{1B}[2J\u{202E}/", "x\u{9B}31m://h/", "http://h:\u{1B}]52;c;eA==\u{07}/"] {
      let run = await Terminal(isErrorTerminal: true).run(text)
      expectReadable(run, text.debugDescription)
      #expect(run.status != .success)
    }
    let run = await Terminal(isErrorTerminal: true).run("--\u{1B}[2J", ":1")
    expectReadable(run, "option")
  }

  @Test("A command of curl has no cookie that a terminal cannot show") func curlCookies() async throws {
    let folder = try Folder()
    let values = ["a": "x\u{9B}31m", "b": "y\u{202E}", "c": "plain"]
    let lines = values.map { "127.0.0.1\\tFALSE\\t/\\tFALSE\\t0\\t\($0.key)\\t\($0.value)" }
    let cookies = lines.map { "\"\($0)\"" }.joined(separator: ", ")
    let path = try folder.file("s", #"{"headers": [], "cookies": [\#(cookies)]}"#)
    let words = ["--curl", "--session", path, server.url("/")]
    let run = await Terminal(isErrorTerminal: true).run(words)
    expectReadable(run, "cookies of curl")
    #expect(run.output.contains("c=plain") && !run.output.contains("a=") && !run.output.contains("b="))
    #expect(run.error.contains("lacks cookies"), "\(run.error)")
    let pipe = await Terminal.pipe.run(words)
    #expect(pipe.error.isEmpty && values.values.allSatisfy { pipe.output.contains($0) }, "\(pipe.output)")
  }

  // MARK: Bytes that stay

  @Test("Pipes and files receive every byte", arguments: ["pipe", "-o -", "file", "--control-codes"])
  func exactBytes(kind: String) async throws {
    let folder = try Folder()
    let bytes = Array(Self.evil.utf8) + [0xFF, 0x9B, 0x0D, 0x0A, 0xE2]
    server.enqueue(Reply(headers: [.contentType("text/plain")], body: .parts([.bytes(bytes)])))
    let url = server.url("/")
    switch kind {
    case "file":
      _ = await Terminal().run("-o", folder.path("f"), url)
      #expect(try Array(Data(contentsOf: URL(fileURLWithPath: folder.path("f")))) == bytes)
    case "pipe": #expect(Array(await Terminal.pipe.run(url).bytes) == bytes)
    case "-o -": #expect(Array(await Terminal().run("-o", "-", url).bytes) == bytes)
    default:
      // The charset is the terminal's, and the line is ended for the prompt.
      let shown = String(decoding: bytes, as: UTF8.self) + "\n"
      #expect(await Terminal().run("-b", kind, url).output == shown)
    }
  }

  @Test("Pipes receive events and messages unchanged") func exactStreams() async {
    let data = "d\u{1B}[2J\u{9B}31m\u{202E}"
    server.enqueue(
      Reply(
        headers: [.contentType("text/event-stream")],
        body: .parts([.bytes(Array("retry: 1\ndata: \(data)\n\n".utf8))])), .status(204))
    #expect(await Terminal.pipe.run("sse", server.url("/")).output == "\(data)\n")
    for terminal in [Terminal.pipe, Terminal()] {
      server.enqueue(.webSocket(WebSocketEndpoint { try $0.send(data) }))
      let run = await terminal.run("-I", "--control-codes", "ws", server.url("/"))
      #expect(run.output == "\(data)\n")
    }
  }

  /// Expects that nothing but line breaks and tabs of the output can move a cursor or reorder text.
  private func expectReadable(_ run: Run, _ name: String) {
    for (place, text) in [("output", run.output), ("error", run.error)] {
      let bad = text.unicodeScalars.filter { scalar in
        let category = scalar.properties.generalCategory
        return scalar != "\n" && scalar != "\t"
          && (category == .control || category == .format || category == .lineSeparator)
      }
      #expect(bad.isEmpty, "\(name): \(place) has \(bad.map { $0.escaped(asASCII: true) })")
    }
  }
}
