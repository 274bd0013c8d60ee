import Foundation
import HTTPTestServer
import Testing

@testable import AFCommand

/// Text in other charsets than UTF-8, as a terminal shows it.
@Suite(.timeLimit(.minutes(5))) struct CharsetTests {
  private let server: HTTPTestServer

  init() throws {
    server = try HTTPTestServer()
  }

  struct Sample: Sendable, CustomTestStringConvertible {
    let type: String
    let bytes: [UInt8]
    let text: String
    var testDescription: String { type }

    init(_ type: String, _ bytes: [UInt8], _ text: String) {
      (self.type, self.bytes, self.text) = (type, bytes, text)
    }
  }

  private func reply(_ sample: Sample, parts: [Reply.Part]? = nil) -> Reply {
    Reply(
      headers: [HTTPHeader(name: "Content-Type", value: sample.type)],
      body: .parts(parts ?? [.bytes(sample.bytes)]))
  }

  static let samples = [
    Sample("text/plain; charset=iso-8859-1", [0x63, 0x61, 0x66, 0xE9], "café"),
    // Browsers read this charset as the Windows charset, which has letters in place of controls.
    Sample("text/plain; charset=ISO-8859-1", [0x80, 0x93], "€“"),
    Sample("text/plain; charset=\"windows-1252\"", [0x80, 0x20, 0xE9], "€ é"),
    Sample("text/plain; charset=iso-8859-2", [0xB1, 0xE6], "ąć"),
    Sample("text/plain; charset=windows-1251", [0xCF, 0xF0, 0xE8], "При"),
    Sample("text/plain;charset=KOI8-R", [0xD0, 0xD2, 0xC9], "при"),
    Sample("text/plain; charset=Shift_JIS", [0x93, 0xFA, 0x96, 0x7B], "日本"),
    Sample("text/plain; charset=euc-jp", [0xC6, 0xFC, 0xCB, 0xDC], "日本"),
    Sample("text/plain; charset=gb2312", [0xD6, 0xD0], "中"),
    Sample("text/plain; charset=big5", [0xA4, 0xA4], "中"),
    Sample("text/plain; charset=euc-kr", [0xC7, 0xD1], "한"),
    // The converters of these charsets hold the last letter back, because a mark may follow it.
    Sample("text/plain; charset=windows-1255", [0xF9, 0xEC, 0xE5, 0xED], "שלום"),
    Sample("text/plain; charset=windows-1258", Array(#"{"a":1}"#.utf8), #"{"a":1}"#),
    Sample("text/plain; charset=big5-hkscs", [0x61, 0x88, 0x66], "aÊ"),
    Sample("text/plain; charset=windows-1255", [0xF9, 0xFF, 0xE5], "ש\u{FFFD}ו"),
    Sample("text/plain; charset=cp1251", [0xCF, 0xF0, 0xE8], "При"),
    Sample("text/plain; charset=latin2", [0xB1, 0xE6], "ąć"),
    Sample("text/plain; charset=iso8859-2", [0xB1, 0xE6], "ąć"),
    Sample("text/plain; charset=cp1250", [0xB9, 0xE6], "ąć"),
    Sample("text/plain; charset=x-cp1252", [0x80, 0xE9], "€é"),
    Sample("text/plain; charset=iso_8859-15", [0xA4], "€"),
    Sample("text/plain; charset=iso_8859-7:1987", [0xE1], "α"),
    Sample("text/plain; charset=windows-949", [0xC7, 0xD1], "한"),
    Sample("text/plain; charset=gb_2312-80", [0xD6, 0xD0], "中"),
    Sample("text/plain; charset=x-mac-cyrillic", [0x80, 0xB6], "Аґ"),
    Sample("text/plain; charset=iso-8859-8-i", [0xF9], "ש"),
    Sample("text/plain; charset=unicodefffe", [0x00, 0x61, 0x00, 0xFC], "aü"),
    Sample("text/plain; charset=utf-16", [0xFE, 0xFF, 0x00, 0x61, 0x00, 0xFC], "aü"),
    Sample("text/plain; charset=utf-16", [0xFF, 0xFE, 0x61, 0x00, 0xFC, 0x00], "aü"),
    Sample("text/plain; charset=utf-16le", [0x61, 0x00, 0x3D, 0xD8, 0x00, 0xDE], "a😀"),
    Sample("text/plain; charset=utf-16be", [0x00, 0x61], "a"),
    Sample("text/plain; charset=utf-32le", [0x61, 0, 0, 0], "a"),
    Sample("text/plain", [0xEF, 0xBB, 0xBF, 0x61], "a"),
    Sample("text/plain", [0xFF, 0xFE, 0x61, 0x00], "a"),
    Sample("text/html", Array("<meta charset='koi8-r'>".utf8) + [0xD0], "<meta charset='koi8-r'>п"),
    Sample(
      "text/html", Array("<!DOCTYPE html><html><head><META charset=windows-1251>".utf8) + [0xCF],
      "<!DOCTYPE html><html><head><META charset=windows-1251>П"),
    Sample("text/html", Array("<p>\u{FC}".utf8), "<p>ü"),
    Sample(
      "application/x-text", Array("<?xml version='1.0' encoding='KOI8-R'?>".utf8) + [0xD0],
      "<?xml version='1.0' encoding='KOI8-R'?>п"),
    Sample("text/plain", Array("<?x".utf8), "<?x"),
    // Bytes that are not a character of the charset.
    Sample("text/plain; charset=utf-8", [0x61, 0xFF, 0x62], "a\u{FFFD}b"),
    Sample("text/plain", [0x61, 0xE9, 0x62], "a\u{FFFD}b"),
    Sample("text/plain; charset=windows-1252", [0x61, 0x81, 0x62], "a\u{FFFD}b"),
    Sample("text/plain; charset=utf-16le", [0x00, 0xD8, 0x61, 0x00], "\u{FFFD}a"),
    Sample("text/plain; charset=shift_jis", [0x61, 0x93], "a\u{FFFD}"),
  ]

  @Test("A terminal shows text in the charset of the response", arguments: samples)
  func terminal(sample: Sample) async {
    server.enqueue(reply(sample))
    let run = await Terminal().run("-b", server.url("/"))
    #expect(run.output == sample.text + "\n")
    #expect(run.error.isEmpty)
  }

  @Test(
    "Each piece of a body is shown as it arrives, a divided character once it is whole", arguments: samples)
  func pieces(sample: Sample) async {
    server.enqueue(reply(sample, parts: sample.bytes.map { .bytes([$0]) }))
    let run = await Terminal().run("-b", server.url("/"))
    #expect(run.output == sample.text + "\n")
    #expect(run.status == .success)
  }

  @Test("A character is shown before the body has ended")
  func incremental() async {
    let gate = Gate()
    let sample = Sample("text/plain; charset=shift_jis", [], "日本")
    server.enqueue(
      reply(sample, parts: [.bytes([0x93, 0xFA, 0x96]), .gate(gate), .bytes([0x7B])]))
    var terminal = Terminal()
    // The rest is sent when the first character is on the screen.
    terminal.onOutput = { if String(decoding: $0, as: UTF8.self).contains("日") { gate.open() } }
    let run = await terminal.run("-b", server.url("/"))
    #expect(run.output == "日本\n")
  }

  @Test("A line without a charset is shown before the body has ended", arguments: ["text/plain", "x/y"])
  func incrementalLine(type: String) async {
    let gate = Gate()
    server.enqueue(reply(Sample(type, [], ""), parts: ["a", "\n", .gate(gate), "two"]))
    var terminal = Terminal()
    terminal.onOutput = { if $0.contains(0x0A) { gate.open() } }
    let run = await terminal.run("-b", server.url("/"))
    #expect(run.output == "a\ntwo\n")
  }

  @Test("The whole of a text is converted, also the letter that a mark could follow") func lastLetter() throws
  {
    let charset = try #require(TextCharset(label: "windows-1255"))
    #expect(TextDecoder.text(Data([0xF9, 0xEC, 0xE5, 0xED]), charset) == "שלום")
    // Not two letters: a mark that follows belongs to the one that was held back.
    #expect(TextDecoder.text(Data([0xF9, 0xD1]), charset).map { Array($0.unicodeScalars) } == ["\u{FB2A}"])
  }

  @Test("JSON and XML in another charset are laid out")
  func documents() async {
    server.enqueue(
      reply(Sample("application/json; charset=iso-8859-1", Array(#"{"a":""#.utf8) + [0xE9, 0x22, 0x7D], "")),
      reply(Sample("application/json", [0xFF, 0xFE, 0x5B, 0x00, 0x31, 0x00, 0x5D, 0x00], "")),
      reply(
        Sample(
          "application/xml",
          Array("<?xml version=\"1.0\" encoding=\"KOI8-R\"?><a>".utf8) + [0xD0] + Array("</a>".utf8), "")))
    #expect(await Terminal().run("-b", server.url("/")).output == "{\n  \"a\": \"é\"\n}\n")
    #expect(await Terminal().run("-b", server.url("/")).output == "[\n  1\n]\n")
    #expect(
      await Terminal().run("-b", server.url("/")).output
        == "<?xml version=\"1.0\" encoding=\"KOI8-R\"?>\n<a>п</a>\n")
  }

  @Test("This system has a converter for each charset of the table") func converters() {
    for (label, charset) in CharsetLabels.all.sorted(by: { $0.key < $1.key }) {
      #expect(TextDecoder(charset) != nil, "\(label)")
      #expect(TextCharset(label: " \(label.uppercased()) ") == charset, "\(label)")
    }
    // The labels of the standard but for its error and its charset without text, and UTF-32.
    #expect(CharsetLabels.all.count == 228 - 6 - 1 + 3)
  }

  @Test("An unknown charset is reported, and the body is read as UTF-8", arguments: [false, true])
  func unknown(isLaidOut: Bool) async {
    let type = isLaidOut ? "application/json" : "text/plain"
    for name in ["x-martian", "ISO-2022-CN-EXT", "UTF-7", "utf-8//TRANSLIT", "/etc/passwd", "\u{1B}[2J"] {
      server.enqueue(reply(Sample("\(type); charset=\"\(name)\"", Array("\"ü\"".utf8), "")))
      let run = await Terminal().run("-b", server.url("/"))
      #expect(run.output == "\"ü\"\n", "\(name)")
      #expect(run.error.contains("is not known here; the body is shown as UTF-8.\n"), "\(name)")
    }
  }

  @Test("A pipe and a file get the bytes of the body unchanged")
  func unchanged() async throws {
    let sample = Sample("application/json; charset=iso-8859-1", [0x22, 0xE9, 0xFF, 0x22], "")
    let folder = try Folder()
    server.enqueue(reply(sample), reply(sample))
    #expect(await Terminal.pipe.run(server.url("/")).bytes == Data(sample.bytes))
    _ = await Terminal().run("-o", folder.path("a"), server.url("/"))
    #expect(FileManager.default.contents(atPath: folder.path("a")) == Data(sample.bytes))
  }

  @Test("Bytes without a charset are binary if they have a zero, or are neither UTF-8 nor said to be text")
  func binary() async {
    for (type, bytes) in [("text/plain", [0x61, 0x00]), ("x/y", [0xFF])] as [(String, [UInt8])] {
      server.enqueue(reply(Sample(type, bytes, "")))
      let run = await Terminal().run("-b", "--pretty", "format", server.url("/"))
      #expect(type != "text/plain" || run.output.hasPrefix("Not text"), "\(run.output)")
      #expect(run.status == .success)
    }
  }

  @Test("An incomplete character is recognised at the end of any bytes")
  func incompleteCharacters() {
    let text = Array("aü€😀".utf8)
    for count in 0...text.count {
      let decoder = TextDecoder(.utf8)
      let shown =
        (decoder?.decode(Data(text[..<count])) ?? "") + (decoder?.decode(Data(text[count...])) ?? "")
      #expect(shown == "aü€😀", "\(count)")
      #expect(decoder?.finish() == "", "\(count)")
    }
    for bytes in [[0xC3], [0xE2, 0x82], [0xF0, 0x9F, 0x98]] as [[UInt8]] {
      #expect(TextDecoder.incompleteCount(bytes) == bytes.count, "\(bytes)")
    }
    for bytes in [[], [0x61], [0xC3, 0xBC], [0x82, 0x82, 0x82, 0x82], [0xFF]] as [[UInt8]] {
      #expect(TextDecoder.incompleteCount(bytes) == 0, "\(bytes)")
    }
  }
}
