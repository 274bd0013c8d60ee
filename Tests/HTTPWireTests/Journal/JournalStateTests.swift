import HTTPWire
import Randomness
import Testing

/// The way in which a new process continues a transfer.
struct JournalStateTests {
  private static func description(_ method: String, boot: String = "boot") -> TransferDescription {
    TransferDescription(
      kind: method == "GET" ? .download : .upload, url: "https://example.com", method: method, fields: [:],
      created: 1000, boot: boot)
  }

  private static func head(_ status: Int = 200) -> StoredHead { StoredHead(ResponseHead(status: status)) }

  private func transfer(_ method: String = "GET", _ records: JournalRecord...) throws -> JournalState {
    try #require(JournalState([.described(Self.description(method))] + records))
  }

  private func continuation(
    _ transfer: JournalState, fileSize: Int64? = nil, isAtDestination: Bool = false, boot: String = "boot"
  ) -> JournalState.Continuation {
    transfer.continuation(boot: boot, fileSize: fileSize, isAtDestination: isAtDestination)
  }

  @Test("A journal without a description is none") func noDescription() {
    #expect(JournalState([]) == nil)
    #expect(JournalState([.sent, .described(Self.description("GET"))]) == nil)
  }

  @Test("A journal may note many bytes in any order", .timeLimit(.minutes(2))) func manyBytes() throws {
    // Each note has every thousandth byte, so that it is between the ranges of the others.
    let notes = (0..<1000).map { note in
      JournalRecord.wrote(ByteRanges((0..<1000).map { $0 * 2000 + note * 2..<$0 * 2000 + note * 2 + 1 }))
    }
    let version = JournalRecord.identified(Representation(length: 2_000_000, validator: nil), boot: "boot")
    let begun = [JournalRecord.described(Self.description("GET")), .wrote(ByteRanges([1..<2])), version]
    let state = try #require(JournalState(begun + notes))
    #expect(state.received(boot: "boot", fileSize: .max).ranges.count == 1_000_000)
    #expect(state.received(boot: "boot", fileSize: 3).ranges == [0..<1, 2..<3])
    #expect(state.received(boot: "other", fileSize: 3).ranges == [])
  }

  @Test("Options that only an earlier process knew stay noted, whatever follows") func ownOptions() throws {
    #expect(try !transfer().hasOwnOptions)
    for record in JournalTests.records {
      let state = try transfer("GET", .configured, record)
      #expect(state.hasOwnOptions, "\(record)")
      #expect(JournalState(state.records)?.hasOwnOptions == true, "\(record)")
    }
  }

  @Test("A download without a response begins, one with a part continues") func downloads() throws {
    #expect(continuation(try transfer()) == .send)
    #expect(continuation(try transfer(), fileSize: 10) == .send)
    let received = try transfer("GET", .responded(Self.head(), offset: 0, boot: "boot"))
    #expect(continuation(received) == .send)
    #expect(continuation(received, fileSize: 0) == .send)
    #expect(continuation(received, fileSize: 70) == .resume(received: 70))
  }

  @Test("A resumable upload may be complete in another boot, and if the boot is not known")
  func completeness() throws {
    for boot in ["", "boot"] {
      let upload = JournalState(Self.description("POST", boot: boot))
      #expect(upload.mayBeComplete(boot: boot) == boot.isEmpty)
      #expect(upload.mayBeComplete(boot: "other") && upload.mayBeComplete(boot: ""))
    }
    #expect(try transfer("POST", .sent).mayBeComplete(boot: "boot"))
  }

  @Test("A file that has its size is complete, although the end was not noted") func unnotedEnd() throws {
    let whole = StoredHead(
      ResponseHead(status: 200, fields: [HTTPHeader(name: "Content-Length", value: "70")]))
    let received = try transfer("GET", .responded(whole, offset: 0, boot: "boot"))
    #expect(continuation(received, fileSize: 69) == .resume(received: 69))
    #expect(continuation(received, fileSize: 70) == .deliver)
    #expect(continuation(received, fileSize: 70, boot: "new") == .send)
    let rest = StoredHead(
      ResponseHead(status: 206, fields: [HTTPHeader(name: "Content-Range", value: "bytes 30-69/70")]))
    let resumed = try transfer("GET", .responded(rest, offset: 30, boot: "boot"))
    #expect(continuation(resumed, fileSize: 70) == .deliver)
    for (name, value) in [("Content-Length", "7x"), ("Content-Length", ""), ("Content-Encoding", "gzip")] {
      let fields = [HTTPHeader(name: "Content-Length", value: "70"), HTTPHeader(name: name, value: value)]
      let odd = StoredHead(ResponseHead(status: 200, fields: fields))
      #expect(
        continuation(try transfer("GET", .responded(odd, offset: 0, boot: "boot")), fileSize: 70)
          == .resume(received: 70))
    }
    let empty = StoredHead(
      ResponseHead(status: 200, fields: [HTTPHeader(name: "Content-Length", value: "0")]))
    let nothing = try transfer("GET", .responded(empty, offset: 0, boot: "boot"))
    #expect(continuation(nothing, fileSize: 0) == .deliver)
    #expect(continuation(nothing) == .send, "there is no file to deliver")
  }

  @Test("After a restart of the machine only synchronized bytes count") func otherBoot() throws {
    let head = JournalRecord.responded(Self.head(), offset: 0, boot: "boot")
    #expect(continuation(try transfer("GET", head), fileSize: 70, boot: "new") == .send)
    let synced = try transfer("GET", head, .synced(size: 50))
    #expect(continuation(synced, fileSize: 70, boot: "new") == .resume(received: 50))
    #expect(continuation(synced, fileSize: 20, boot: "new") == .resume(received: 20))
    #expect(continuation(synced, fileSize: 70) == .resume(received: 70))
    // The bytes before the offset of a later response were trusted then. No more of them are on the disk than before.
    let later = try transfer(
      "GET", head, .synced(size: 50), .responded(Self.head(206), offset: 50, boot: "new"))
    #expect(continuation(later, fileSize: 90, boot: "third") == .resume(received: 50))
    let again = try transfer("GET", head, .synced(size: 50), .responded(Self.head(), offset: 0, boot: "boot"))
    #expect(continuation(again, fileSize: 90, boot: "new") == .send)
  }

  @Test("A response without a URL does not have the URL of the one before") func location() throws {
    let head = JournalRecord.responded(Self.head(), offset: 0, boot: "boot")
    let located = try transfer("GET", head, .located(url: "https://example.com/there"))
    #expect(located.location == "https://example.com/there")
    #expect(try transfer("GET", head, .located(url: "https://example.com/there"), head).location == nil)
  }

  @Test("A complete file is delivered if it has its size") func completed() throws {
    let complete = try transfer(
      "GET", .responded(Self.head(), offset: 0, boot: "boot"), .completed(size: 80))
    #expect(continuation(complete, fileSize: 80) == .deliver)
    #expect(continuation(complete, fileSize: 80, boot: "new") == .deliver)
    #expect(continuation(complete, fileSize: 79) == .send)
    #expect(continuation(complete) == .send)
  }

  @Test("A file that is being moved is where it was or at its destination") func moving() throws {
    let moving = try transfer(
      "GET", .responded(Self.head(), offset: 0, boot: "boot"), .completed(size: 80),
      .moving(to: "/a", options: 2))
    #expect(moving.phase == .moving(to: "/a", options: 2))
    #expect(continuation(moving, fileSize: 80) == .deliver)
    #expect(continuation(moving, isAtDestination: true) == .deliver)
    #expect(continuation(moving) == .send)
    var moved = moving
    moved.apply(.moved)
    #expect(moved.phase == .moved(to: "/a"))
    #expect(continuation(moved, isAtDestination: true) == .deliver)
    #expect(continuation(moved) == .send, "the file has gone since")
    moved.apply(.delivering)
    #expect(continuation(moved) == .deliver, "a handler may have taken it away")
    let replaced = moved.continuation(boot: "boot", fileSize: nil, isAtDestination: false, isReplaced: true)
    #expect(replaced == .send, "what is there now is not the downloaded file")
  }

  @Test("A request that may have reached the server is not repeated, unless it is idempotent")
  func lost() throws {
    #expect(continuation(try transfer("POST")) == .send)
    #expect(continuation(try transfer("POST", .sent)) == .lost)
    #expect(continuation(try transfer("PATCH", .sent)) == .lost)
    #expect(continuation(try transfer("PUT", .sent)) == .send)
    #expect(continuation(try transfer("POST"), boot: "new") == .lost, "records may be missing")
    #expect(continuation(try transfer("PUT"), boot: "new") == .send)
    #expect(continuation(try transfer("POST", .sent, .answered(hasBody: false))) == .deliver)
    #expect(continuation(try transfer("POST", .sent, .restarted)) == .send, "the caller requested a retry")
  }

  @Test("A file that could not be moved does not undo that its request was sent") func failedMove() throws {
    let continuations: [(String, JournalState.Continuation)] = [
      ("POST", .lost), ("GET", .send), ("PUT", .send),
    ]
    for (method, expected) in continuations {
      let head = JournalRecord.responded(Self.head(), offset: 0, boot: "boot")
      var failed = try transfer(
        method, .sent, head, .completed(size: 80), .moving(to: "/a", options: 0), .restarted)
      #expect(failed.phase == .waiting, "\(method)")
      #expect(continuation(failed) == expected, "\(method)")
      #expect(continuation(failed, fileSize: 80, isAtDestination: true) == expected, "\(method)")
      #expect(JournalState(failed.records) == failed, "\(method)")
      failed.apply(.restarted)
      #expect(continuation(failed) == .send, "\(method): the caller requested a retry")
    }
  }

  static let upload = UploadResource(url: "https://example.com/files/1").flatMap { resource in
    UploadResource(url: "https://example.com/files").map {
      StoredUpload(resource, creation: $0, dialect: .tus)
    }
  }

  private static let uploading = JournalRecord.uploading(upload, mayBeComplete: false)

  @Test("A resumable upload that the server has named continues, whatever was sent") func resumable() throws {
    for method in ["POST", "PUT"] {
      let begun = try transfer(method, Self.uploading)
      #expect(begun.upload == Self.upload)
      #expect(continuation(begun) == .send && continuation(begun, boot: "new") == .send && begun.mayRepeat)
      #expect(!begun.mayBeComplete(boot: "boot") && begun.mayBeComplete(boot: "new"))
      let sent = try transfer(method, Self.uploading, .sent)
      #expect(continuation(sent) == .send && sent.mayRepeat && sent.mayBeComplete(boot: "boot"))
      let named = try transfer(method, .sent, .uploading(Self.upload, mayBeComplete: true))
      #expect(continuation(named) == .send && named.mayBeComplete(boot: "boot"))
    }
    #expect(continuation(try transfer("POST", Self.uploading, .sent, .answered(hasBody: false))) == .deliver)
  }

  @Test("A retry of a resumable upload does not forget what was sent") func resumableRetry() throws {
    let retried = try transfer("POST", Self.uploading, .sent, .restarted)
    #expect(retried.mayBeComplete(boot: "boot") && continuation(retried) == .send)
    let asked = try transfer("POST", Self.uploading, .sent, .restarted, Self.uploading)
    #expect(!asked.mayBeComplete(boot: "boot"))
  }

  @Test("An upload that the server has lost, or that would leave TLS, is none") func forgottenUpload() throws
  {
    let forgotten = try transfer("POST", Self.uploading, .uploading(nil, mayBeComplete: false))
    #expect(forgotten.upload == nil && continuation(forgotten) == .send)
    let again = try transfer("POST", Self.uploading, .uploading(nil, mayBeComplete: false), .sent)
    #expect(continuation(again) == .lost)
    let plain = try #require(UploadResource(url: "http://example.com/files/1"))
    let secure = try #require(UploadResource(url: "https://example.com/files"))
    let downgraded = StoredUpload(plain, creation: secure, dialect: .draft)
    let unsafe = try transfer("POST", .uploading(downgraded, mayBeComplete: true))
    #expect(unsafe.upload == nil && continuation(unsafe) == .lost)
  }

  @Test("A retry of a complete transfer begins from the start, one of a part goes on") func retries() throws {
    let head = JournalRecord.responded(Self.head(503), offset: 0, boot: "boot")
    let complete = try transfer("GET", head, .completed(size: 80), .restarted)
    #expect(continuation(complete, fileSize: 80) == .send)
    let answered = try transfer("PUT", head, .answered(hasBody: true), .restarted)
    #expect(continuation(answered) == .send)
    let part = try transfer("GET", head, .restarted)
    #expect(continuation(part, fileSize: 30) == .resume(received: 30))
  }

  @Test("A response is not complete if its body is gone") func lostBody() throws {
    let post = try transfer("POST", .sent, .answered(hasBody: true))
    #expect(continuation(post) == .deliver)
    let description = Self.description("PUT")
    for (first, expected) in [
      (Self.description("POST"), JournalState.Continuation.lost), (description, .send),
    ] {
      let stored = try #require(JournalState([.described(first), .sent, .answered(hasBody: true)]))
      #expect(
        stored.continuation(boot: "boot", fileSize: nil, isAtDestination: false, hasResponseBody: false)
          == expected)
    }
  }

  @Test("The shortest journal of a transfer has its state", .seeded) func shortest() throws {
    var generator = Seed.generator()
    let steps: [JournalRecord] = [
      .responded(Self.head(), offset: 0, boot: "boot"), .responded(Self.head(206), offset: 40, boot: "other"),
      .identified(Representation(length: 90, validator: "\"a\""), boot: "boot"),
      .wrote(ByteRanges([20..<50])),
      .present(ByteRanges([0..<10, 60..<70])), .responded(Self.head(), offset: -7, boot: ""),
      .synced(size: 30), .synced(size: 90), .synced(size: -1), .completed(size: .max), .sent,
      .located(url: "https://example.com/b"),
      .completed(size: 70),
      .moving(to: "/a", options: 2), .moved, .answered(hasBody: true), .restarted, .delivering,
      Self.uploading, .uploading(Self.upload, mayBeComplete: true), .uploading(nil, mayBeComplete: true),
    ]
    for _ in 0..<2000 {
      let count = Int.random(in: 0...12, using: &generator)
      let records = (0..<count).compactMap { _ in steps.randomElement(using: &generator) }
      let stored = try #require(JournalState([.described(Self.description("POST"))] + records))
      #expect(JournalState(stored.records) == stored, "\(records)")
      #expect(stored.records.count <= 9)
    }
  }

  @Test("The delivery is noted") func delivering() throws {
    #expect(!(try transfer().isDelivering))
    #expect(try transfer("GET", .delivering).isDelivering)
  }

  @Test(
    "A wait ends at its date, and does not become longer when the clock is set back",
    arguments: [
      (1000.0, 60.0), (1030, 30), (1059.5, 0.5), (1060, 0), (5000, 0), (500, 60), (-1e12, 60),
    ])
  func waits(now: Double, seconds: Double) {
    var description = Self.description("GET")
    #expect(description.wait(at: now) == 0)
    description.earliestBegin = 1060
    #expect(description.wait(at: now) == seconds)
    #expect(description.age(at: now) == max(0, now - 1000))
  }
}
