import Alamofire
import Foundation
import Randomness
import Testing

/// Forms as third-party readers parse them.
@Suite(.needsMultipartReaders, .timeLimit(.minutes(5))) final class MultipartReaderTests {
  typealias Part = MultipartReader.Part

  private let folder: URL

  init() throws { folder = try ServerProcess.makeFolder("multipart") }

  deinit { try? FileManager.default.removeItem(at: folder) }

  private func file(_ name: String, _ content: Data = Data()) throws -> URL {
    let url = folder.appendingPathComponent(name)
    try content.write(to: url)
    return url
  }

  /// Returns the parts of a form, which both encoders must encode equally.
  private func read(_ form: MultipartFormData, by reader: MultipartReader) async throws -> [Part] {
    let body = folder.appendingPathComponent("body-\(reader)")
    let encoded = try form.encode()
    try form.writeEncodedData(to: body)
    #expect(try Data(contentsOf: body) == encoded)
    return try await reader.parts(of: body, contentType: form.contentType)
  }

  @Test("Parts of every kind are read", arguments: MultipartReader.allCases) func parts(
    reader: MultipartReader
  ) async throws {
    let content = Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
    let form = MultipartFormData()
    form.append(Data("Zoë\r\n".utf8), withName: "text")
    form.append(Data(), withName: "empty")
    form.append(content, withName: "data", fileName: "data.bin", mimeType: "application/x-data")
    form.append(try file("picture.png", content), withName: "picture")
    form.append(
      InputStream(data: content), withLength: 300_000, name: "stream", fileName: "s", mimeType: "a/b; c=d")
    form.append(
      InputStream(data: Data("own".utf8)), withLength: 3,
      headers: ["X-Own": "1", "Content-Disposition": "form-data; name=own", "Content-Type": "text/x-own"])
    form.append(try file("empty.txt"), withName: "file")
    #expect(
      try await read(form, by: reader) == [
        Part(name: "text", body: Data("Zoë\r\n".utf8)),
        Part(name: "empty", body: Data()),
        Part(name: "data", fileName: "data.bin", type: "application/x-data", body: content),
        Part(name: "picture", fileName: "picture.png", type: "image/png", body: content),
        Part(name: "stream", fileName: "s", type: "a/b; c=d", body: content),
        Part(name: "own", type: "text/x-own", body: Data("own".utf8)),
        Part(name: "file", fileName: "empty.txt", type: "text/plain", body: Data()),
      ])
  }

  @Test("Names are read unchanged", arguments: MultipartReader.allCases) func names(
    reader: MultipartReader
  )
    async throws
  {
    let names: [(String, String)] = [
      ("plain name", "plain name"), ("日本👩‍👩‍👧ä", "日本👩‍👩‍👧ä"), ("say \"hi\"", "say %22hi%22"),
      ("semi;colon=x", "semi;colon=x"),
      ("a\r\nX-Evil: 1\r\n\r\nbody", "a%0D%0AX-Evil: 1%0D%0A%0D%0Abody"), ("nul\0", "nul%00"),
      ("100%", "100%"),
      ("end\\", "end%5C"), ("\"; filename=\"evil", "%22; filename=%22evil"),
      ("'single'", "'single'"), ("\u{2028}", "\u{2028}"), (" ", " "),
    ]
    let form = MultipartFormData()
    var expected: [Part] = []
    for (name, written) in names {
      form.append(Data("f".utf8), withName: name)
      form.append(Data("v".utf8), withName: name, fileName: "; name=b; filename=c")
      form.append(Data("w".utf8), withName: "n", fileName: name, mimeType: "a/b")
      expected += [
        Part(name: written, body: Data("f".utf8)),
        Part(name: written, fileName: "; name=b; filename=c", body: Data("v".utf8)),
        Part(name: "n", fileName: written, type: "a/b", body: Data("w".utf8)),
      ]
    }
    form.append(Data(), withName: "")
    expected.append(Part(name: "", body: Data()))
    #expect(try await read(form, by: reader) == expected)
  }

  @Test("Readers disagree about backslashes") func backslashes() async throws {
    // Browsers send them unchanged. Werkzeug reads an escape (RFC 9110 §5.6.4), python-multipart a character.
    let form = MultipartFormData()
    form.append(Data(), withName: "back\\slash")
    #expect(try await read(form, by: .werkzeug).map(\.name) == ["backslash"])
    #expect(try await read(form, by: .pythonMultipart).map(\.name) == ["back\\slash"])
  }

  @Test("A form without parts is complete", arguments: MultipartReader.allCases) func emptyForm(
    reader: MultipartReader
  )
    async throws
  {
    #expect(try await read(MultipartFormData(), by: reader) == [])
  }

  @Test("Ten thousand parts are read", arguments: MultipartReader.allCases) func manyParts(
    reader: MultipartReader
  ) async throws {
    let form = MultipartFormData()
    for index in 0..<10_000 { form.append(Data("\(index)".utf8), withName: "n\(index)") }
    let expected = (0..<10_000).map { Part(name: "n\($0)", body: Data("\($0)".utf8)) }
    let parts = try await read(form, by: reader)
    // Compared outside of the expectation, because a message with 10,000 parts would be unreadable.
    let isEqual = parts == expected
    #expect(isEqual)
  }

  @Test("Boundaries of every form are understood", arguments: MultipartReader.allCases) func boundaries(
    reader: MultipartReader
  ) async throws {
    for boundary in [
      "B", "----WebKitFormBoundaryx", "a b", "0'()+_,-./:=?", String(repeating: "x", count: 70),
    ] {
      let form = MultipartFormData(boundary: boundary)
      form.append(Data("1".utf8), withName: "a")
      let body = folder.appendingPathComponent(UUID().uuidString)
      try form.writeEncodedData(to: body)
      let parts = try await reader.parts(of: body, contentType: form.contentType)
      #expect(parts == [Part(name: "a", body: Data("1".utf8))], "\(boundary)")
    }
  }

  @Test("Text that resembles a boundary is not one", arguments: MultipartReader.allCases)
  func textsLikeBoundaries(
    reader: MultipartReader
  ) async throws {
    let form = MultipartFormData()
    var generator = SeededGenerator(seed: 27)
    var expected: [Part] = []
    for index in 0..<200 {
      let body = Self.lookAlike(form.boundary, &generator)
      form.append(body, withName: "n\(index)")
      expected.append(Part(name: "n\(index)", body: body))
    }
    #expect(expected.map(\.body.count).max() ?? 0 > 10_000)
    let parts = try await read(form, by: reader)
    let wrong = zip(parts, expected).first { $0 != $1 }
    #expect(parts.count == expected.count)
    #expect(wrong == nil, "part \(wrong?.1.name ?? "") was read otherwise")
  }

  /// Returns random bytes with prefixes and suffixes of a boundary, but without a complete one.
  private static func lookAlike(_ boundary: String, _ generator: inout SeededGenerator) -> Data {
    let almost = "--\(boundary.dropLast())"
    let pieces = [
      "\r\n", "\r", "\n", "-", "--", "\r\n--", "\r\n\(almost)", "\r\n\(almost)--\r\n", "\n\(almost)", almost,
      "\(boundary)--",
      "\r\n-\(boundary)", "\r\n\r\n--", "\r\n--\(boundary.uppercased())--\r\n", String(boundary.prefix(9)),
    ]
    let whole = Data("--\(boundary)".utf8)
    while true {
      var body = Data()
      for _ in 0..<Int.random(in: 0...60, using: &generator) {
        if Bool.random(using: &generator) {
          body += Data(pieces.randomElement(using: &generator)?.utf8 ?? "".utf8)
        } else {
          let count = Int.random(in: 0...1000, using: &generator)
          body += Data((0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) })
        }
      }
      if body.range(of: whole) == nil { return body }
    }
  }
}
