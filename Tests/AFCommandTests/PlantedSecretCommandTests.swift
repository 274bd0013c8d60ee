import AFCommand
import Foundation
import HTTPTestServer
import Testing

/// Secrets of arguments and answers: what `af` shows of requests and failures has none.
@Suite("Planted secrets of the command", .timeLimit(.minutes(5))) struct PlantedSecretCommandTests {
  private let server: HTTPTestServer

  init() throws {
    server = try HTTPTestServer()
  }

  private static let arguments: [[String]] = [
    ["-a", "ann:planted"], ["-A", "bearer", "-a", "planted"], ["--bearer", "planted"],
    ["Authorization:planted"], ["Authorization:planted planted"], ["Authorization:X-Planted planted"],
    ["Proxy-Authorization:planted"], ["Cookie:planted"], ["Cookie: =planted; a=planted; planted"],
    ["X-API-Key:planted"], ["X-Auth:planted"], ["Referer:https://h/#access_token=planted"],
    ["Refresh:1;url=/#token=planted"], ["Origin:https://ann:planted@h"], ["X-A:{\"token\":\"planted\"}"],
    ["token==planted"], ["next==https://ann:planted@h/?token=planted"], ["q=={\"password\":\"planted\"}"],
    ["password=planted"], ["inner:={\"token\":{\"a\":\"planted\"}}"],
    ["u=https://ann:planted@h/?a=1&token=planted"],
    ["-f", "password=planted"], ["-f", "next=https://ann:planted@h/"], ["-f", "a={\"secret\":\"planted\"}"],
    ["--multipart", "token=planted", "a=b"], ["--raw", "{\"pass\\u0077ord\": \"planted\"}"],
    ["--raw", "a=1;password=planted", "Content-Type:application/x-www-form-urlencoded"],
    ["--raw", "see https://ann:planted@planted@h/"],
  ]

  @Test("Requests are shown without secrets", arguments: ["--offline", "-v"])
  func requests(option: String) async {
    for arguments in Self.arguments {
      let run = await Terminal().run([option, "-I", server.url("/status/204")] + arguments)
      #expect(!(run.output + run.error).contains("planted"), "\(arguments): \(run.output)\(run.error)")
      #expect(run.output.contains(" HTTP/1.1"), "\(arguments): \(run.error)")
    }
  }

  @Test(
    "Targets are shown without secrets",
    arguments: [
      "/a?token=planted", "/a?a=1;key=planted", "/a;jsessionid=planted?b=c", "/a#access_token=planted",
      "/a?next=https%3A%2F%2Fann%3Aplanted%40h%2F", "/a?q=%257B%2522token%2522%253A%2522planted%2522%257D",
    ])
  func targets(target: String) async {
    server.enqueue(.redirect(to: target), .text("end"), .redirect(to: target))
    for arguments in [["--offline"], ["-v", "--timing"], ["-v", "--max-redirects", "0"]] {
      let run = await Terminal().run(arguments + ["-I", server.url(target)])
      #expect(!(run.output + run.error).contains("planted"), "\(arguments): \(run.output)\(run.error)")
    }
    #expect(server.requestCount == 3)
  }

  @Test("A challenge that was answered is shown without secrets") func challenge() async {
    server.enqueue(
      Reply.status(401).with(
        header: "WWW-Authenticate", value: "Digest realm=\"r\", nonce=\"n\", qop=\"auth\""
      )
      .with(header: "Set-Cookie", value: "sid=planted"), .text("end"))
    let run = await Terminal().run("-v", "-I", "-A", "digest", "-a", "ann:top", server.url("/a"))
    #expect(run.output.contains("401") && run.output.contains("sid="), "\(run.output)")
    #expect(!run.output.contains("planted"), "\(run.output)")
  }

  @Test(
    "Failures are shown without secrets",
    arguments: [
      "http://ann:planted@127.0.0.1:1/", "http://planted@127.0.0.1:1/?token=planted",
      "http://ann:planted@planted@127.0.0.1:1/",
      "http://ann:planted/x@127.0.0.1:1/", "http://ann:pla nted@h/", "ftp://ann:planted@h/",
      "http://ann:planted@h:99999/",
      "http://127.0.0.1:1/#access_token=planted", "http://127.0.0.1:1/?next=https%3A%2F%2Fann%3Aplanted%40h",
      "http://ann:planted@[h/", "http://ann:planted@/",
    ])
  func failures(url: String) async {
    for option in ["-b", "-v"] {
      let run = await Terminal(isErrorTerminal: true).run(option, "-I", "--retry", "0", url)
      #expect(run.status != .success && !run.error.isEmpty)
      #expect(!(run.output + run.error).contains("planted"), "\(run.output)\(run.error)")
      #expect(!(run.output + run.error).contains("nted@"), "\(run.output)\(run.error)")
    }
  }

  @Test(
    "Faults of arguments are shown without secrets",
    arguments: [
      ["--proxy", "http://ann:planted@h:x"], ["--proxy", "ann:planted@h:99999"],
      ["--proxy", "ftp://ann:planted@h"], ["password:=planted"], ["u:=https://ann:planted@h/"],
    ])
  func usage(arguments: [String]) async {
    let run = await Terminal(isErrorTerminal: true).run([":1"] + arguments)
    #expect(run.status != .success && !run.error.contains("planted"), "\(run.error)")
  }

  @Test("A body that is not UTF-8 is shown without secrets, or not at all") func otherBytes() async throws {
    let folder = try Folder()
    var bytes = Data(#"{"a": "x"#.utf8)
    bytes.append(0xFF)
    bytes += Data(#"", "token": "planted"}"#.utf8)
    try bytes.write(to: URL(fileURLWithPath: folder.path("f")))
    for option in ["--offline", "-v"] {
      let run = await Terminal().run(
        option, "-I", "PUT", server.url("/status/204"), "Content-Type:application/json",
        "@\(folder.path("f"))")
      #expect(!run.output.contains("planted"), "\(run.output)")
    }
    var input = Terminal()
    input.isInputRedirected = true
    input.input = #"{"token": "planted"}"#
    #expect(
      !(await input.run("--offline", "PUT", server.url("/"), "Content-Type:application/json").output)
        .contains("planted"))
  }

  @Test(
    "Text that is not UTF-8 is shown without secrets",
    arguments: [
      ("application/x-www-form-urlencoded", "&password=planted"), ("text/plain", " https://ann:planted@h/"),
      ("application/xml", " https://h/?token=planted"), ("application/yaml", " https://ann:planted@h/"),
    ])
  func otherText(type: String, secret: String) async throws {
    let folder = try Folder()
    let bytes = Data("name=J".utf8) + [0xFC] + Data("rgen\(secret)".utf8)
    try bytes.write(to: URL(fileURLWithPath: folder.path("f")))
    for option in ["--offline", "-v"] {
      // To be compressed, the file is read, and so it is shown.
      let run = await Terminal().run(
        option, "-I", "--compress", "PUT", server.url("/status/204"), "Content-Type:\(type)",
        "@\(folder.path("f"))")
      #expect(!run.output.contains("planted"), "\(run.output)")
      #expect(run.output.contains("name=J\u{FFFD}rgen"), "\(run.output)")
    }
  }

  @Test("An archive of the command has no secrets") func archive() async throws {
    let folder = try Folder()
    server.enqueue(
      .redirect(to: "/b#access_token=planted"),
      .raw(
        "HTTP/1.1 200 OK\r\nSet-Cookie: planted\r\nRefresh: 1; url=/#token=planted\r\nContent-Length: 0\r\n\r\n"
      ))
    _ = await Terminal.pipe.run(
      "--har", folder.path("h"), "-I", server.url("/?key=planted"), "Cookie:planted",
      "Authorization:planted planted",
      "Referer:https://ann:planted@h/#token=planted")
    let text = try String(contentsOfFile: folder.path("h"), encoding: .utf8)
    #expect(text.contains("access_token=redacted") && !text.contains("planted"), "\(text)")
  }
}
