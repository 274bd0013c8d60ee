import HTTPWire
import Testing

@Suite struct FieldMarksTests {
  static func marks(_ text: String) -> FieldMarks { FieldBlock(bytes: Array(text.utf8)).marks }

  @Test(
    "Fields about caching are found at any position",
    arguments: ["ETag", "etag", "EXPIRES", "Last-modified", "cache-Control"])
  func cachingFields(name: String) {
    #expect(Self.marks("A: b\r\n\(name): x\r\n") == .reusable)
    #expect(Self.marks("\(name): x\nA: b\n") == .reusable)
    #expect(Self.marks("\(name):") == .reusable)
  }

  @Test("Cookies and codings are found") func cookiesAndCodings() {
    #expect(Self.marks("set-cookie: a=1\r\n") == .setCookie)
    #expect(Self.marks("Content-Encoding: br\r\nSET-COOKIE:a=1\r\n") == [.setCookie, .contentEncoding])
  }

  @Test("Fields about the connection are found") func connectionFields() {
    #expect(Self.marks("connection: close\r\n") == .connection)
    #expect(Self.marks("Proxy-Connection: close\r\n") == .connection)
    #expect(Self.marks("Keep-Alive: timeout=5\r\n") == .keepAlive)
    #expect(Self.marks("Connection: x\r\nKEEP-ALIVE: timeout=5\r\n") == [.connection, .keepAlive])
    #expect(Self.marks("Connection: keep-alive, close\r\n") == .connection)
    #expect(Self.marks("Connection: Keep-Alive \r\nConnection: close\r\n") == .connection)
    #expect(Self.marks("Connection:\t Keep-Alive \r\nA: b\r\n") == [])
  }

  @Test(
    "Other lines have no mark",
    arguments: [
      "", "\r\n", "X-ETag: 1", "ETagged: 1", "Content-Type: cache-control: x", "E: etag:", "Set-Cookie2: a",
      "Set-Cookie",
      " Set-Cookie: a=1", "Content-Length: 4",
    ])
  func otherLines(line: String) {
    #expect(Self.marks(line) == [])
    #expect(Self.marks("A: b\r\n\(line)\r\nC: d\r\n") == [])
  }

  @Test("A folded field is looked at as a whole", arguments: [1, 7, 200]) func foldedField(piece: Int) {
    let bytes = Array("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n , close\r\n\r\n".utf8)
    var reader = HTTP1Reader(method: "GET")
    var head: ResponseHead?
    for start in stride(from: 0, to: bytes.count, by: piece) {
      bytes[start..<min(start + piece, bytes.count)].withUnsafeBytes { bytes in
        var position = 0
        while case .head(let read) = reader.read(bytes, from: &position) { head = read }
      }
    }
    #expect(head?.block.marks == .connection)
    #expect(
      head.map { ConnectionPersistence($0, framing: reader.framing, isFromProxy: false).isPersistent }
        == false)
  }

  @Test("A head that is read line by line has the same marks") func lines() throws {
    var assembly = ResponseAssembly()
    let lines = [
      "HTTP/1.1 103 Early\r\n", "Set-Cookie: a=1\r\n", "\r\n", "HTTP/1.1 200 OK\r\n", "ETag: 1\r\n", "\r\n",
    ]
    for line in lines { _ = Array(line.utf8).withUnsafeBytes { assembly.lineReceived($0) } }
    let head = try #require(assembly.head)
    #expect(head.block.marks == .reusable)
    #expect(head.block == FieldBlock(bytes: head.block.bytes))
  }
}
