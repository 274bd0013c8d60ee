import Alamofire
import Foundation
import HTTPTestServer
import Testing

@testable import AFCommand

/// The parts that are printed, and their form.
@Suite(.timeLimit(.minutes(5))) struct OutputOptionTests {
  private let server: HTTPTestServer

  init() throws {
    server = try HTTPTestServer()
  }

  @Test("-v shows every hop before a body that is written as it arrives", arguments: ["-v", "-pHBhb"])
  func streamedHops(option: String) async throws {
    let folder = try Folder()
    let file = try folder.file("a.txt", "text\n")
    server.enqueue(
      .redirect(to: "/there", status: 307),
      .redirect(to: "/end", status: 303),
      Reply(headers: [.contentType("text/plain")], body: .parts(["one\n", "two\n"])))
    let run = await Terminal(isOutputTerminal: false).run(
      option, "-a", "u:p", server.url("/here"), "@\(file)", "Cookie:id=1234")
    let blocks = run.output.components(separatedBy: "\n\n")
    let starts = blocks.map { String($0.prefix { $0 != "\n" }) }
    let note = "(the content of \(file))"
    if option == "-v" {
      #expect(
        starts == [
          "POST /here HTTP/1.1", note, "HTTP/1.1 307 Temporary Redirect", "POST /there HTTP/1.1", note,
          "HTTP/1.1 303 See Other", "GET /end HTTP/1.1", "HTTP/1.1 200 OK", "one",
        ])
    } else {
      #expect(starts == ["GET /end HTTP/1.1", "HTTP/1.1 200 OK", "one"])
    }
    #expect(run.output.contains("\nAuthorization: Basic <redacted>\n"))
    #expect(!run.output.contains("dTpw") && !run.output.contains("1234"))
    #expect(run.output.hasSuffix("\n\none\ntwo\n"))
  }

  @Test(
    "The part of a body that has arrived is shown if the connection breaks",
    arguments: [["-b"], ["-v"], ["-pHb"], ["--pretty", "all"]], ["application/json", "text/plain", "a/b"])
  func brokenOff(options: [String], type: String) async {
    for terminal in [Terminal(), .pipe] {
      var reply = Reply(headers: [.contentType(type)], body: .bytes(Array("{\"a\": 1, \"b\": 2}   ".utf8)))
      reply = reply.with(effect: .closeAfterBody(bytes: 13))
      server.enqueue(reply)
      let run = await terminal.run(options + [server.url("/")])
      #expect(run.status == .failure && run.error.hasPrefix("af: "), "\(run.error)")
      let shown = "{\"a\": 1, \"b\":" + (terminal.isOutputTerminal ? "\n" : "")
      #expect(run.output.hasSuffix(shown), "\(run.output)")
      #expect(options == ["-b"] || !terminal.isOutputTerminal || run.output.hasSuffix("\n\n\(shown)"))
    }
  }

  @Test("Lines of JSON are shown as they arrive", arguments: [["-b"], ["-v"], ["--pretty", "all"]])
  func linesOfJSON(options: [String]) async {
    let gate = Gate()
    defer { gate.open() }
    server.enqueue(
      Reply(
        headers: [.contentType("application/json")],
        body: .parts(["{\"a\": 1}\n", "{\"a\": 2}\n", .gate(gate), "{\"a\": 3}\n"])
      ).framed(.chunked))
    var terminal = Terminal()
    // The rest is sent when the first two lines are on the screen.
    terminal.onOutput = { if String(decoding: $0, as: UTF8.self).contains("2}") { gate.open() } }
    let run = await terminal.run(options + [server.url("/")])
    #expect(run.status == .success, "\(run.error)")
    #expect(run.output.hasSuffix("{\"a\": 1}\n{\"a\": 2}\n{\"a\": 3}\n"), "\(run.output)")
    #expect(options == ["-b"] || run.output.contains("\n\n{\"a\": 1}"))
  }

  @Test(
    "The first line of a stream of JSON is shown as it arrives",
    arguments: ["application/stream+json", "application/x.stream+json"])
  func firstLineOfJSON(type: String) async {
    let gate = Gate()
    defer { gate.open() }
    server.enqueue(
      Reply(headers: [.contentType(type)], body: .parts(["{\"a\": 1}\n", .gate(gate), "{\"a\": 2}\n"])))
    var terminal = Terminal()
    terminal.onOutput = { if String(decoding: $0, as: UTF8.self).contains("1}") { gate.open() } }
    #expect(await terminal.run("-b", server.url("/")).output == "{\"a\": 1}\n{\"a\": 2}\n")
  }

  @Test(
    "JSON whose media type only ends like a stream is laid out",
    arguments: ["application/vnd.upstream+json", "application/bitstream+json"])
  func noStream(type: String) async {
    server.enqueue(Reply(headers: [.contentType(type)], body: .bytes(Array("{\"a\":1}".utf8))))
    #expect(await Terminal().run("-b", server.url("/")).output == "{\n  \"a\": 1\n}\n")
  }

  @Test("-v keeps no pieces of bodies")
  func hopLogSize() async throws {
    let hops = HopLog()
    let session = Session()
    let data = Data(repeating: 0, count: 3_000_000)
    server.enqueue(Reply(body: .parts([.pattern(3_000_000)])))
    let response = await session.upload(data, to: server.url("/")).eventMonitor(hops.log).serializingData()
      .response
    #expect(response.value?.count == 3_000_000)
    #expect((3...4).contains(hops.count))
    #expect(hops.hops.map(\.hasBody) == [true])
  }

  @Test("-v shows a request from standard input and its redirect")
  func streamedInputHops() async throws {
    server.enqueue(
      .redirect(to: "/end", status: 303),
      Reply(headers: [.contentType("text/plain")], body: .parts(["one\n", "two\n"])))
    let run = await Terminal(isOutputTerminal: false, input: "typed").run(
      "-v", "--chunked", server.url("/here"), "@-")
    let starts = run.output.components(separatedBy: "\n\n").map { String($0.prefix { $0 != "\n" }) }
    #expect(
      starts == [
        "POST /here HTTP/1.1", "(the standard input)", "HTTP/1.1 303 See Other", "GET /end HTTP/1.1",
        "HTTP/1.1 200 OK", "one",
      ])
  }

  @Test("-q writes errors and files alone")
  func quiet() async throws {
    let folder = try Folder()
    server.enqueue(.text("body"), .text("body"))
    let run = await Terminal(isErrorTerminal: true).run("-q", server.url("/"))
    #expect(run.status == .success && run.bytes.isEmpty && run.error.isEmpty)
    let saved = await Terminal(isErrorTerminal: true).run("-q", "-o", folder.path("f"), server.url("/"))
    #expect(saved.bytes.isEmpty && saved.error.isEmpty)
    #expect(FileManager.default.contents(atPath: folder.path("f")) == Data("body".utf8))
    let failed = await Terminal().run("-q", server.url("/status/404"))
    #expect(failed.status == .clientError && failed.bytes.isEmpty)
    #expect(failed.error == "af: The server answered 404 Not Found.\n")
    #expect(await Terminal().run("-q", "--curl", server.url("/")).status == .usage)
  }

  @Test("--print chooses the parts, in a pipe as on a terminal")
  func parts() async {
    let item = "a=b"
    for terminal in [Terminal.pipe, Terminal()] {
      server.enqueue(.text("done\n"), .text("done\n"), .text("done\n"), .text("done\n"))
      let request = await terminal.run("-p", "H", server.url("/x"), item).output
      #expect(
        request.hasPrefix("POST /x HTTP/1.1\n") && !request.contains("200") && !request.contains("done"))
      let body = await terminal.run("--print=B", server.url("/x"), item).output
      #expect(body.contains("\"a\": \"b\"") && !body.contains("HTTP"))
      let head = await terminal.run("-ph", server.url("/x"), item).output
      #expect(head.hasPrefix("HTTP/1.1 200 OK\n") && !head.contains("done"))
      let both = await terminal.run("-p", "hb", server.url("/x"), item).output
      #expect(both.hasPrefix("HTTP/1.1 200 OK\n") && both.hasSuffix("\n\ndone\n"))
    }
  }

  @Test("--offline prints the request without its secrets, and sends nothing")
  func offline() async {
    let run = await Terminal.pipe.run(
      "--offline", "-a", "ann:topsecret", server.url("/x?q=1"), "a=b", "Cookie:id=hidden", "X-Api-Key:hidden")
    #expect(run.status == .success)
    #expect(run.output.hasPrefix("POST /x?q=1 HTTP/1.1\n"))
    #expect(run.output.contains("\nAuthorization: Basic <redacted>\n"))
    #expect(run.output.contains("\nContent-Length: 10\n"))
    #expect(run.output.hasSuffix("\n\n{\"a\": \"b\"}\n"))
    #expect(!run.output.contains("hidden") && !run.output.contains("YW5u"))
    #expect(server.requestCount == 0)
  }

  @Test(
    "Secrets of bodies and targets are masked in every output of a request",
    arguments: [["--offline"], ["-v"], ["-p", "HB"]], [["-f"], [], ["--multipart"], ["--raw"]])
  func secretsOfBodies(option: [String], kind: [String]) async throws {
    let items =
      kind == ["--raw"]
      ? [#"{"user":"ann","password":"planted","list":[{"token":"planted"}]}"#]
      : ["user=ann", "password=planted", "api_key=planted"]
    let head = kind == ["--raw"] ? [] : kind
    let url = server.url("/x?token=planted").replacing("http://", with: "http://planted@")
    for reply in [Reply.text("shown"), .json(#"{"password": "shown"}"#)] {
      server.enqueue(reply)
      let run = await Terminal().run(
        option + head + ["POST", url] + (kind == ["--raw"] ? ["--raw"] : []) + items)
      #expect(run.status == .success)
      #expect(!run.output.contains("planted"), "\(run.output)")
      #expect(run.output.contains("redacted") && run.output.contains("ann"), "\(run.output)")
      // The body of a response is the result of the command.
      if option == ["-v"] { #expect(run.output.contains("shown"), "\(run.output)") }
      if option != ["--offline"] {
        let sent = try await server.takeRequest()
        #expect(sent.bodyText.contains("planted") && sent.target == "/x?token=planted")
      }
    }
  }

  @Test("--timing masks secrets of URLs") func secretsOfTimings() async {
    server.enqueue(.text(""))
    let run = await Terminal().run(
      "--timing", server.url("/x?token=planted").replacing("http://", with: "http://planted@"))
    #expect((run.output + run.error).contains("/x?token=redacted →"))
    #expect(!(run.output + run.error).contains("planted"))
  }

  @Test("--pretty decides about colours and layout")
  func pretty() async {
    let json = #"{"a":1}"#
    let expectations: [(String, String)] = [
      ("none", json), ("format", "{\n  \"a\": 1\n}\n"),
      ("colors", "{\u{1B}[36m\"a\"\u{1B}[0m:\u{1B}[35m1\u{1B}[0m}\n"),
      ("all", "{\n  \u{1B}[36m\"a\"\u{1B}[0m: \u{1B}[35m1\u{1B}[0m\n}\n"),
    ]
    for (how, expected) in expectations {
      server.enqueue(.json(json))
      #expect(await Terminal.pipe.run("--pretty", how, server.url("/")).output == expected)
    }
    server.enqueue(.json(json))
    let colourless = await Terminal(hasColours: true).run("--no-color", "-b", server.url("/"))
    #expect(!colourless.output.contains("\u{1B}"))
  }

  @Test("A pipe receives the bytes of what is not the text that it claims to be", arguments: [[], ["-v"]])
  func unreadable(option: [String]) async {
    let invalid: [(type: String, bytes: [UInt8])] = [
      ("application/json", [0x5B, 0, 0x5D]), ("application/json", [0x22, 0xFF, 0x22]),
      ("application/octet-stream", [0, 1, 2]), ("text/plain", [0x61, 0xFF]), ("text/plain", [0x61]),
      ("application/xml", [0x3C, 0]), ("application/json; charset=utf-8", [0x22, 0xFF, 0x22]),
      ("application/json; charset=iso-8859-1", Array("[1]".utf8)),
      ("application/json; charset=x-martian", Array("[1]".utf8)),
      ("application/json", Array(#"{"a":"#.utf8)), ("application/xml", Array("<a><b>".utf8)),
      ("application/xml; charset=utf-8", Array("<a>\u{1}</b>".utf8)),
      ("application/xml", Array(#"<?xml version="1.0" encoding="ISO-8859-1"?><a><b>"#.utf8) + [0xE9]),
      ("application/xml", Array(#"<?xml version="1.0" encoding="ISO-8859-1"?><a><b/></a>"#.utf8)),
      ("application/json", [0xFF, 0xFE, 0x5B, 0, 0x5D, 0]),
    ]
    for (type, bytes) in invalid {
      server.enqueue(Reply(headers: [.contentType(type)], body: .bytes(bytes)))
      let run = await Terminal.pipe.run(option + ["--pretty", "all", server.url("/")])
      #expect(run.bytes.suffix(bytes.count) == Data(bytes), "\(type), \(bytes)")
      if option.isEmpty { #expect(run.bytes.count == bytes.count) }
      #expect(run.error.isEmpty, "\(run.error)")
    }
  }

  @Test(
    "The heads and the empty line come before JSON that is too long for a layout", arguments: [[], ["-v"]])
  func longJSON(option: [String]) async {
    let json = "[\"" + String(repeating: "a", count: 10_000_001) + "\"]"
    server.enqueue(
      Reply(headers: [.contentType("application/json")], body: .parts([.bytes(Array(json.utf8))])))
    let run = await Terminal().run(option + [server.url("/x")])
    let head = run.output.prefix(2000)
    #expect(head.hasPrefix(option.isEmpty ? "HTTP/1.1 200 OK\n" : "GET /x HTTP/1.1\n"), "\(head)")
    #expect(head.components(separatedBy: "HTTP/1.1 200 OK\n").count == 2)
    #expect(head.contains("\n\n[\"aaa"), "\(head)")
    #expect(run.output.hasSuffix("aaa\"]\n"))
  }

  @Test("Fields are shown in the order and the spelling in which they came")
  func fields() async {
    server.enqueue(
      .raw(
        "HTTP/1.1 200 OK\r\nz-last: 1\r\nSet-Cookie: a=1\r\nA-first: 2\r\nSet-Cookie: b=2\r\nContent-Length: 0\r\n\r\n"
      ))
    let run = await Terminal.pipe.run("-h", server.url("/"))
    #expect(
      run.output
        == "HTTP/1.1 200 OK\nz-last: 1\nSet-Cookie: a=1\nA-first: 2\nSet-Cookie: b=2\nContent-Length: 0\n")
  }

  @Test("Spaces that HTTP does not know belong to the value of a field") func spaces() {
    let head = Head(wire: "HTTP/1.1 200 OK\r\nA: \t\u{3000}b\u{A0} \t\r\n\r\n")
    #expect(head?.fields.map(\.value) == ["\u{3000}b\u{A0}"])
  }

  @Test("An endless body under -v is written as it arrives, after the request")
  func verboseStream() async {
    let gate = Gate()
    var terminal = Terminal()
    terminal.onOutput = { data in
      if String(decoding: data, as: UTF8.self).contains("first") { gate.open() }
    }
    server.enqueue(
      Reply(headers: [.contentType("text/event-stream")], body: .parts(["data: first\n\n", .gate(gate)])))
    let run = await terminal.run("-v", server.url("/x"))
    #expect(run.output.hasPrefix("GET /x HTTP/1.1\n"))
    #expect(run.output.contains("\n\nHTTP/1.1 200 OK\n"))
    #expect(run.output.hasSuffix("data: first\n\n"))
  }
}
