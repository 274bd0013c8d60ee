import ChildProcesses
import Foundation
import HTTPTestServer
import Testing

@testable import AFCommand

/// Secrets that other users could read in the list of processes.
@Suite(.timeLimit(.minutes(5))) struct SecretArgumentTests {
  /// Returns the arguments as the list of processes has them.
  private func hidden(_ arguments: [String]) -> [String] {
    var bytes = arguments.map { Array($0.utf8) }
    for part in OptionReader.secrets(in: arguments) {
      for position in part.bytes { bytes[part.index][position] = UInt8(ascii: "*") }
    }
    return bytes.map { String(decoding: $0, as: UTF8.self) }
  }

  private static let cases: [([String], [String])] = [
    (["-a", "ann:top", "x.example"], ["-a", "*******", "x.example"]),
    (["-aann:top", "x"], ["-a*******", "x"]), (["--auth=ann:top", "x"], ["--auth=*******", "x"]),
    (["--auth", "é:ü", "x"], ["--auth", "*****", "x"]), (["-vqa", "t", "x"], ["-vqa", "*", "x"]),
    (["-vqat", "x"], ["-vqa*", "x"]),
    (["-A", "bearer", "-a", "t:k", "x"], ["-A", "bearer", "-a", "***", "x"]),
    (["--bearer", "t", "x"], ["--bearer", "*", "x"]), (["--bearer=t", "x"], ["--bearer=*", "x"]),
    (["--cert-key-pass", "tea", "x"], ["--cert-key-pass", "***", "x"]),
    (["--proxy", "http://u:p@h:1", "x"], ["--proxy", "http://***@h:1", "x"]),
    (["--proxy=u:p@h:1", "x"], ["--proxy=***@h:1", "x"]),
    (["--proxy", "http:socks5://u:p@h", "x"], ["--proxy", "http:socks5://***@h", "x"]),
    (["--proxy", "none", "x"], ["--proxy", "none", "x"]),
    (["https://u:p@h/a?b=c@d"], ["https://***@h/a?b=c@d"]), (["u:p@h/x"], ["***@h/x"]),
    (["x", "https://a@b@c/"], ["x", "https://***@c/"]),
    (["tok@h/user"], ["***@h/user"]), (["me@h/x?access_token=s"], ["**@h/x?access_token=*"]),
    (["GET", "tok@h", "-f"], ["GET", "***@h", "-f"]), (["get", "tok@h"], ["get", "***@h"]),
    (["ws", "tok@h"], ["ws", "***@h"]), (["sse", "PUT", "tok@h"], ["sse", "PUT", "***@h"]),
    (["image", "info", "tok@h"], ["image", "info", "***@h"]), (["--", "tok@h"], ["--", "***@h"]),
    (["-f", "--no-such", "tok@h", "a@b"], ["-f", "--no-such", "***@h", "a@b"]),
    (["Authorization:t"], ["Authorization:*"]), (["image", "tok@h"], ["image", "***@h"]),
    (["x?token=abc&a=b&password=d#e"], ["x?token=***&a=b&password=*#e"]),
    (["x", "Authorization:Bearer t"], ["x", "Authorization:********"]),
    (["x", "authorization: t"], ["x", "authorization:**"]), (["x", "Cookie:a=b"], ["x", "Cookie:***"]),
    (["x", "X-Api-Key:k"], ["x", "X-Api-Key:*"]),
    (["x", "Proxy-Authorization:k"], ["x", "Proxy-Authorization:*"]),
    (["x", "password=p"], ["x", "password=*"]), (["x", "access_token==t"], ["x", "access_token==*"]),
    (["x", "secret:=[1]"], ["x", "secret:=***"]),
    (["-f", "x", "password=@file"], ["-f", "x", "password=@file"]),
    (["x", "Authorization:@file"], ["x", "Authorization:@file"]),
    (["-f", "x", "photo@a.png"], ["-f", "x", "photo@a.png"]),
    (["x", "X-A:b", "a=b"], ["x", "X-A:b", "a=b"]),
    (["--", "x", "Cookie:a"], ["--", "x", "Cookie:*"]), (["x", "Authorization:"], ["x", "Authorization:"]),
    (["--no-such", "-a", "t", "x"], ["--no-such", "-a", "*", "x"]), (["--auth"], ["--auth"]),
    (["-a", ""], ["-a", ""]),
    (["--timeout", "x", "--bearer", "t"], ["--timeout", "x", "--bearer", "*"]),
    (["-H", "x"], ["-H", "x"]), ([], []), (["--verbose=1", "-a", "t"], ["--verbose=1", "-a", "*"]),
  ]

  @Test("The secrets of arguments are found, and nothing else", arguments: cases)
  func parts(arguments: [String], expected: [String]) { #expect(hidden(arguments) == expected) }

  @Test("The list of processes has no secrets while a request is sent")
  func processList() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    defer { gate.open() }
    server.enqueue(Reply(body: .parts([.gate(gate), "x"])))
    let user = server.url("/get").replacingOccurrences(of: "http://", with: "http://user:planted@")
    let program = try ChildProgram(
      [
        Programs.af, "-a", "ann:planted", "--cert-key-pass=planted", "--proxy", "none", user,
        "Authorization:Bearer planted", "password==planted", "X-A:kept",
      ].filter { !$0.hasPrefix("--cert") })
    _ = try await server.takeRequest()
    let list = try String(contentsOfFile: "/proc/\(program.identifier)/cmdline", encoding: .utf8)
    #expect(!list.contains("planted"), "\(list)")
    #expect(list.contains("X-A:kept") && list.contains("-a\0***********\0"), "\(list)")
    gate.open()
    #expect(await program.end() == .exited(0))
  }

  @Test("Secrets are sent as typed, although they are hidden")
  func sent() async throws {
    let server = try HTTPTestServer()
    let run = try await ChildRun([Programs.af, "-a", "ann:tüp", server.url("/get"), "X-Api-Key:k"])
    #expect(run.status == 0, "\(run.complaints)")
    let request = try await server.takeRequest()
    #expect(request.header("Authorization") == "Basic \(Data("ann:tüp".utf8).base64EncodedString())")
    #expect(request.header("X-Api-Key") == "k")
  }
}
