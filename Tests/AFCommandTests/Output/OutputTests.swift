import AFCommand
import Alamofire
import Foundation
import Testing

@Suite struct OutputTests {
  private let plain = Palette(isOn: false)

  // MARK: Progress

  @Test(
    "The progress line fits the width, and omits its bar first",
    arguments: [
      (100, " 25%  ██████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  2.0 MB of 8.0 MB  1.0 MB/s  6 s left"),
      (60, " 25%  ███░░░░░░░░░░░░  2.0 MB of 8.0 MB  1.0 MB/s  6 s left"),
      (50, "25%  2.0 MB of 8.0 MB  1.0 MB/s  6 s left"), (20, "25%  2.0 MB of 8.0 "),
    ])
  func progressLines(width: Int, expected: String) {
    let text = ProgressLine(completed: 2_000_000, total: 8_000_000, elapsed: 2).text(width: width)
    #expect(text == expected)
    #expect(text.count < width)
  }

  @Test("An unknown total, no bytes and more bytes than the total are shown")
  func oddProgress() {
    #expect(ProgressLine(completed: 1500, total: -1, elapsed: 1).text(width: 80) == "1.5 kB  1.5 kB/s")
    #expect(ProgressLine(completed: 0, total: 100, elapsed: 0).text(width: 80).hasPrefix("  0%  ░"))
    #expect(ProgressLine(completed: 200, total: 100, elapsed: 1).text(width: 80).hasPrefix("100%  █"))
    #expect(ProgressLine(completed: 1, total: 100_000_000, elapsed: 1).text(width: 80).hasSuffix("min left"))
  }

  // MARK: Timing

  private let table = TimingTable(
    hops: [
      .init(
        title: "GET http://x/a → 302", details: ["HTTP/1.1"],
        phases: [.init("look-up", from: 0, to: 5), .init("waiting", from: 5, to: 20)]),
      .init(title: "GET http://x/b → 200", details: [], phases: [.init("waiting", from: 20, to: 40)]),
    ], total: 40)

  @Test("Bars begin and end with their phases")
  func timingTable() {
    #expect(
      table.text(width: 49, palette: plain) == """
        GET http://x/a → 302
          HTTP/1.1
          look-up           5.0 ms  ███
          waiting          15.0 ms    ████████
        GET http://x/b → 200
          waiting          20.0 ms            ██████████
          total            40.0 ms

        """)
  }

  @Test("Bars use the width of the terminal, and are omitted without room or duration")
  func timingWidths() {
    for (width, bar) in [(80, 25), (120, 30), (400, 30)] {
      #expect(
        table.text(width: width, palette: plain).contains("20.0 ms  " + String(repeating: " ", count: bar)))
      let longest = table.text(width: width, palette: plain).split(separator: "\n").map(\.count).max()
      #expect(longest.map { $0 < width } == true)
    }
    #expect(!table.text(width: 30, palette: plain).contains("█"))
    #expect(!TimingTable(hops: table.hops, total: 0).text(width: 80, palette: plain).contains("█"))
  }

  // MARK: Heads

  @Test("A head is shown without control characters of the server")
  func heads() {
    let head = Head(
      start: .response(status: 404), version: "HTTP/2", fields: [("A", "b"), ("X", "evil\u{1B}[2Jü\tx")])
    #expect(head.text(plain) == "HTTP/2 404 Not Found\nA: b\nX: evil\\u001B[2Jü\\tx\n")
    #expect(
      head.text(Palette(isOn: true)).hasPrefix(
        "\u{1B}[2mHTTP/2\u{1B}[0m \u{1B}[1;31m404 Not Found\u{1B}[0m\n\u{1B}[36mA\u{1B}[0m: b\n"))
    let request = Head(start: .request(method: "GET", target: "/x"), version: "HTTP/1.1", fields: [])
    #expect(request.text(plain) == "GET /x HTTP/1.1\n")
    #expect(
      Head(start: .response(status: 799), version: "HTTP/1.1", fields: []).text(plain) == "HTTP/1.1 799\n")
  }

  @Test(
    "Secrets are masked, and their schemes and names are shown",
    arguments: [
      ("Authorization", "Basic dTpw", "Basic <redacted>"), ("authorization", "token", "<redacted>"),
      ("Proxy-Authorization", "Bearer abc", "Bearer <redacted>"),
      ("Cookie", "a=1; b=2=3", "a=<redacted>; b=<redacted>"),
      ("Set-Cookie", "a=1; Path=/", "a=<redacted>; Path=/"), ("X-API-Key", "abc", "<redacted>"),
      ("X-Auth-Token", "abc", "<redacted>"),
      ("Accept", "text/html", "text/html"),
    ])
  func secrets(name: String, value: String, expected: String) {
    #expect(Redaction.standard.value(value, ofHeaderField: name) == expected)
  }

  // MARK: Bodies

  private func body(_ bytes: [UInt8], _ type: String?, width: Int = 80) -> String {
    BodyText.format(Data(bytes), contentType: type, layout: .init(palette: plain, width: width))
  }

  @Test("JSON is formatted, other text is unchanged, and each ends with a line break")
  func bodies() {
    #expect(body(Array(#"{"a":1}"#.utf8), "application/json; charset=utf-8") == "{\n  \"a\": 1\n}\n")
    #expect(body(Array(#"[1]"#.utf8), "application/problem+JSON") == "[\n  1\n]\n")
    #expect(body(Array(#"{"a":1}"#.utf8), "text/plain") == "{\"a\":1}\n")
    #expect(body(Array(#"{"a":1"#.utf8), "application/json") == "{\"a\":1\n")
    #expect(body(Array("a\n".utf8), nil) == "a\n")
    #expect(body([], nil) == "")
  }

  @Test("A binary body is replaced by a note, on two lines if one is too long")
  func binaryBodies() {
    let wide = "Not text: 1.2 kB of image/png. Write it to a file with --output FILE, or to a program.\n"
    #expect(body([0] + Array(repeating: 1, count: 1233), "image/png", width: 100) == wide)
    #expect(
      body([0] + Array(repeating: 1, count: 1233), "image/png", width: 40)
        == "Not text: 1.2 kB of image/png.\nWrite it to a file with --output FILE, or to a program.\n")
    #expect(body([0xFF, 0xFE], nil).hasPrefix("Not text: 2 B."))
  }
}
