import HTTPWire
import Randomness
import Testing

@Suite("Reading of event streams") struct EventStreamReaderTests {
  /// Reads bytes in chunks that end at the given positions.
  private static func read(
    _ bytes: [UInt8], splits: [Int] = [], reader: inout EventStreamReader
  ) throws -> [ServerSentEvent] {
    var events: [ServerSentEvent] = []
    var start = 0
    for end in splits + [bytes.count] {
      try Array(bytes[start..<end]).withUnsafeBytes { chunk in
        var position = 0
        while let event = try reader.read(chunk, from: &position) { events.append(event) }
        #expect(position == chunk.count)
      }
      start = end
    }
    return events
  }

  private static func read(_ text: String, lastEventID: String = "") throws -> [ServerSentEvent] {
    var reader = EventStreamReader(lastEventID: lastEventID)
    return try read(Array(text.utf8), reader: &reader)
  }

  @Test("Encoded events are read as they were, also after an ID that was reset") func encoded() throws {
    let events = try Self.read(
      "id: 1\ndata: a\n\nid:\ndata: b\n\ndata: c\n\nevent: x\nid: 2\ndata: d\ndata\n\ndata: e\n\n")
    #expect(events.map(\.id) == ["1", "", "", "2", "2"])
    var (text, last) = ([UInt8](), "")
    for event in events {
      text += event.encoded(after: last)
      last = event.id
    }
    var reader = EventStreamReader()
    #expect(try Self.read(text, reader: &reader) == events)
    #expect(String(decoding: ServerSentEvent(data: "a").encoded(after: ""), as: UTF8.self) == "data: a\n\n")
  }

  @Test("An ID is written only if its bytes differ from those of the ID before it") func changedID() {
    func encoded(_ id: String, after last: String) -> String {
      String(decoding: ServerSentEvent(data: "a", id: id).encoded(after: last), as: UTF8.self)
    }
    let long = String(repeating: "x", count: 1000)
    #expect(encoded(long, after: long) == "data: a\n\n")
    #expect(encoded("1", after: "") == "id: 1\ndata: a\n\n")
    #expect(encoded("", after: "1") == "id: \ndata: a\n\n")
    let (composed, decomposed) = ("jos\u{E9}", "jose\u{301}")
    #expect(Array(encoded(composed, after: decomposed).utf8) == Array("id: \(composed)\ndata: a\n\n".utf8))
  }

  private static let streams: [([UInt8], [ServerSentEvent])] =
    [
      // The examples of the standard.
      (
        "data: YHOO\ndata: +2\ndata: 10\n\n", [ServerSentEvent(data: "YHOO\n+2\n10")]
      ),
      (
        ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
        [
          ServerSentEvent(data: "first event", id: "1"), ServerSentEvent(data: "second event"),
          ServerSentEvent(data: " third event"),
        ]
      ),
      ("data\n\ndata\ndata\n\ndata:", [ServerSentEvent(data: ""), ServerSentEvent(data: "\n")]),
      ("data:test\n\ndata: test\n\n", [ServerSentEvent(data: "test"), ServerSentEvent(data: "test")]),
      // Line ends, also mixed.
      ("data:a\r\n\r\ndata:b\r\rdata:c\n\n", ["a", "b", "c"].map { ServerSentEvent(data: $0) }),
      ("data:a\r\ndata:b\rdata:c\n\r\n", [ServerSentEvent(data: "a\nb\nc")]),
      ("data:a\n\r\n\r\rdata:b\r\n\n", ["a", "b"].map { ServerSentEvent(data: $0) }),
      // Byte order marks.
      ("\u{FEFF}data:a\n\n", [ServerSentEvent(data: "a")]),
      ("\u{FEFF}\u{FEFF}data:a\n\n", []),
      ("data:\u{FEFF}\n\n", [ServerSentEvent(data: "\u{FEFF}")]),
      // Comments and unknown fields.
      (":\n::\n: data:x\ndata:a\n:data:b\n\n", [ServerSentEvent(data: "a")]),
      ("Data:a\nDATA:b\n data:c\ndatax:d\ndata :e\ndat:f\ndata:g\n\n", [ServerSentEvent(data: "g")]),
      // Event types.
      (
        "event: add\ndata: 1\n\ndata: 2\n\n",
        [ServerSentEvent(type: "add", data: "1"), ServerSentEvent(data: "2")]
      ),
      ("event: a\nevent: b\ndata\n\n", [ServerSentEvent(type: "b", data: "")]),
      ("event: a\nevent\ndata\n\n", [ServerSentEvent(data: "")]),
      ("event: a\n\ndata: 1\n\n", [ServerSentEvent(data: "1")]),
      // IDs.
      (
        "id: 1\ndata\n\ndata\n\nid: 2\n\ndata\n\nid: 3\u{0}\ndata\n\nid:\ndata\n\n",
        ["1", "1", "2", "2", ""].map { ServerSentEvent(data: "", id: $0) }
      ),
      // Only blank lines dispatch.
      ("data: a", []), ("data: a\n", []), ("data: a\n\ndata: b\n", [ServerSentEvent(data: "a")]),
      ("\n\n\r\n", []), ("", []),
      ("data:a:b: c\n\n", [ServerSentEvent(data: "a:b: c")]),
      ("data:κόσμε 😀\n\n", [ServerSentEvent(data: "κόσμε 😀")]),
    ].map { (Array($0.0.utf8), $0.1) } + [
      // Invalid UTF-8, and a beginning of the byte order mark that is none.
      (
        Array("data:".utf8) + [0xFF, 0x41, 0xE2, 0x82, 0x0A, 0x0A],
        [ServerSentEvent(data: "\u{FFFD}A\u{FFFD}")]
      ),
      ([0xEF, 0xBB] + Array("data:a\ndata:b\n\n".utf8), [ServerSentEvent(data: "b")]),
      ([0xEF, 0x0A] + Array("data:a\n\n".utf8), [ServerSentEvent(data: "a")]),
    ]

  @Test("Events are the same at each split", arguments: streams)
  func splits(stream: [UInt8], events: [ServerSentEvent]) throws {
    var whole = EventStreamReader()
    #expect(try Self.read(stream, reader: &whole) == events)
    for first in 0...stream.count {
      for second in Set([first, (first + stream.count) / 2, stream.count]) {
        var reader = EventStreamReader()
        #expect(try Self.read(stream, splits: [first, second], reader: &reader) == events)
        #expect(reader.lastEventID == whole.lastEventID)
      }
    }
    var reader = EventStreamReader()
    #expect(try Self.read(stream, splits: Array(0..<stream.count), reader: &reader) == events)
  }

  @Test("The last event ID changes at a blank line") func lastEventID() throws {
    var reader = EventStreamReader(lastEventID: "0")
    #expect(
      try Self.read(Array("data: a\n\nid: 1\ndata: b\n".utf8), reader: &reader) == [
        ServerSentEvent(data: "a", id: "0")
      ])
    #expect(reader.lastEventID == "0")
    #expect(try Self.read([0x0A], reader: &reader) == [ServerSentEvent(data: "b", id: "1")])
    #expect(reader.lastEventID == "1")
    _ = try Self.read(Array("id: 2\n\nid:\n".utf8), reader: &reader)
    #expect(reader.lastEventID == "2")
    _ = try Self.read([0x0A], reader: &reader)
    #expect(reader.lastEventID == "")
  }

  @Test("What the server has said about later connections outlasts a failure") func failedStream() throws {
    var reader = EventStreamReader(lastEventID: "0")
    let long = String(repeating: "x", count: 2 << 20)
    #expect(throws: EventStreamError.self) {
      try Self.read(Array("retry: 5\nid\n\nid: 1\ndata: \(long)\n\n".utf8), reader: &reader)
    }
    #expect(reader.lastEventID == "" && reader.hasReceivedID && reader.retry == 5)
  }

  @Test("An event has its ID even if a field cannot carry it, and the previous ID is sent back to the server")
  func unrepeatableID() throws {
    for (id, isRepeated) in [
      (String(repeating: "x", count: 8000), true), (String(repeating: "x", count: 8001), false),
      ("1\u{1}", false), ("a\tb", true), ("é", true),
    ] {
      var reader = EventStreamReader(lastEventID: "0")
      let events = try Self.read(Array("id: \(id)\ndata\n\ndata\n\n".utf8), reader: &reader)
      #expect(events.map(\.id) == [id, id])
      #expect(reader.lastEventID == (isRepeated ? id : "0"), "\(id.prefix(9))")
      _ = try Self.read(Array("id: 2\n\n".utf8), reader: &reader)
      #expect(reader.lastEventID == "2")
    }
  }

  @Test(
    "The field retry has digits only",
    arguments: [
      ("retry: 1500", 1500), ("retry:0", 0), ("retry: 007", 7), ("retry", 9), ("retry:", 9),
      ("retry: 1.5", 9),
      ("retry: -1", 9), ("retry: +1", 9), ("retry: 1 ", 9), ("retry:  1", 9), ("retry: 10s", 9),
      ("retry: ٣", 9),
      ("retry: 9223372036854775807", Int64.max), ("retry: 9223372036854775808", 9),
    ]) func retry(line: String, expected: Int64) throws
  {
    var reader = EventStreamReader()
    #expect(reader.retry == nil)
    _ = try Self.read(Array("retry: 9\n\(line)\n".utf8), reader: &reader)
    #expect(reader.retry == expected)
  }

  @Test("A line over the limit fails, and stays failed") func longLine() throws {
    var limits = EventStreamReader.Limits()
    limits.line = 10
    for chunk in [1, 3, 100] {
      var reader = EventStreamReader(limits: limits)
      let bytes = Array("data:12345\n\ndata:123456\n\n".utf8)
      let splits = Array(stride(from: chunk, to: bytes.count, by: chunk))
      #expect(throws: EventStreamError.longLine(limit: 10)) {
        try Self.read(bytes, splits: splits, reader: &reader)
      }
      #expect(throws: EventStreamError.longLine(limit: 10)) { try Self.read([0x0A], reader: &reader) }
    }
    var comments = EventStreamReader(limits: limits)
    let comment = Array((":" + String(repeating: "x", count: 10_000) + "\ndata:12345\n\n").utf8)
    #expect(try Self.read(comment, reader: &comments) == [ServerSentEvent(data: "12345")])
  }

  @Test("Data over the limit fails") func largeEvent() throws {
    var limits = EventStreamReader.Limits()
    limits.event = 5
    var reader = EventStreamReader(limits: limits)
    #expect(
      try Self.read(Array("data:12\ndata:34\n\n".utf8), reader: &reader) == [ServerSentEvent(data: "12\n34")])
    #expect(throws: EventStreamError.largeEvent(limit: 5)) {
      try Self.read(Array("data:12\ndata:345\n".utf8), reader: &reader)
    }
    #expect(EventStreamError.largeEvent(limit: 5).message.contains("5 bytes"))
    #expect(EventStreamError.longLine(limit: 6).message.contains("6 bytes"))
  }

  @Test("The owner stops reading between two events") func backPressure() throws {
    var reader = EventStreamReader()
    let bytes = Array("data:a\n\ndata:b\n\n".utf8)
    var positions: [Int] = []
    try bytes.withUnsafeBytes { bytes in
      var position = 0
      while try reader.read(bytes, from: &position) != nil { positions.append(position) }
    }
    #expect(positions == [8, 16])
  }

  @Test("Random streams are read alike in chunks of any size", arguments: 0..<20 as Range<UInt64>)
  func randomStreams(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let pieces = [
      "data", "id", "event", "retry", ":", " ", "\n", "\r", "\r\n", "\n\n", "x", "1", "\u{FEFF}", "é",
    ]
    for _ in 0..<200 {
      let count = Int(random.next() % 40)
      let bytes = (0..<count).flatMap { _ in Array(pieces[Int(random.next() % UInt64(pieces.count))].utf8) }
      var whole = EventStreamReader()
      let events = try Self.read(bytes, reader: &whole)
      let splits = bytes.indices.filter { _ in random.next() % 3 == 0 }
      var reader = EventStreamReader()
      #expect(try Self.read(bytes, splits: splits, reader: &reader) == events)
      #expect(reader.lastEventID == whole.lastEventID && reader.retry == whole.retry)
    }
  }
}
