import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire
import Testing

@testable import Alamofire

/// The data from which a download continues, without a transfer.
@Suite("Resume data") struct ResumeDataTests {
  private static let version = Representation(length: 20, validator: "\"v\"")
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func made(
    _ change: (inout URLRequest) -> Void = { _ in }, version: Representation? = Self.version,
    received: Int64 = 5
  ) throws -> ResumeData? {
    var request = try URLRequest(url: "http://a.test/x", method: .get, headers: ["A": "1"])
    change(&request)
    return ResumeData(request: request, version: version, file: "/Alamofire_x.tmp", received: received)
  }

  @Test("Data are made for a GET without a body, of a version that is known, and with at least one byte")
  func conditions() throws {
    #expect(try made() != nil)
    #expect(try made { $0.httpMethod = "POST" } == nil)
    #expect(try made { $0.httpMethod = "HEAD" } == nil)
    #expect(try made { $0.httpBody = Data("x".utf8) } == nil)
    #expect(try made { $0.url = nil } == nil)
    #expect(try made(version: nil) == nil)
    #expect(try made(received: 0) == nil && made(received: 1) != nil)
  }

  @Test("The request for the whole file has no range, and the one for its rest asks for it") func requests()
    throws
  {
    let data = try #require(
      try made {
        $0.setValue("bytes=1-", forHTTPHeaderField: "range")
        $0.setValue("\"old\"", forHTTPHeaderField: "IF-Range")
      })
    let whole = try data.wholeRequest()
    #expect(whole.url?.absoluteString == "http://a.test/x" && whole.httpMethod == "GET")
    #expect(whole.value(forHTTPHeaderField: "A") == "1")
    #expect(whole.value(forHTTPHeaderField: "Range") == nil)
    #expect(whole.value(forHTTPHeaderField: "If-Range") == nil)
    let rest = data.asksForRest(whole)
    #expect(rest.value(forHTTPHeaderField: "Range") == "bytes=5-")
    #expect(rest.value(forHTTPHeaderField: "If-Range") == "\"v\"")
    let unknown = try #require(try made(version: Representation(length: 20, validator: nil)))
    #expect(unknown.asksForRest(whole) == whole)
  }

  @Test("The request for the whole file has the properties of the first one") func properties() throws {
    let data = try #require(
      try made { request in
        request.timeoutInterval = 300
        request.cachePolicy = .reloadIgnoringLocalCacheData
        request.httpShouldHandleCookies = false
        request.mainDocumentURL = URL(string: "http://b.test/page")
      })
    let request = try ResumeData(try #require(data.data(isOnDisk: true))).wholeRequest()
    #expect(request.timeoutInterval == 300 && request.cachePolicy == .reloadIgnoringLocalCacheData)
    #expect(!request.httpShouldHandleCookies)
    #expect(request.mainDocumentURL?.absoluteString == "http://b.test/page")
    let usual = try #require(try made()).wholeRequest()
    #expect(usual.httpShouldHandleCookies && usual.mainDocumentURL == nil)
  }

  @Test("A file in the temporary folder is named without it, another one with its path") func names() throws {
    var data = try #require(try made())
    #expect(data.path == "/Alamofire_x.tmp")
    let temporary = FileManager.default.temporaryDirectory.appendingPathComponent("Alamofire_y.tmp").path
    data.name(temporary)
    #expect(data.path == temporary)
    let encoded = try #require(data.data(isOnDisk: true))
    let state = try #require(Journal.standard.state(of: encoded))
    #expect(state.description.file == "Alamofire_y.tmp", "the folder may move")
  }

  @Test("Bytes that are not on the disk count until the machine restarts", arguments: [false, true])
  func durability(isOnDisk: Bool) throws {
    let encoded = try #require(try made()?.data(isOnDisk: isOnDisk))
    let state = try #require(Journal.standard.state(of: encoded))
    #expect(state.receivedSize(boot: PartialFile.boot, fileSize: 9) == 5)
    #expect(state.receivedSize(boot: "another", fileSize: 9) == (isOnDisk ? 5 : 0))
  }

  @Test("A response goes to the part of the file that it continues, to a new file, or nowhere") func places()
    throws
  {
    enum Place: Equatable { case new, part(Int64?), refused(TransportFailure.FailureKind) }
    let cannot = Place.refused(.cannotContinue)
    for (status, range, tag, length, hasPart, limit, expected) in [
      (200, nil, "\"v\"", 20, true, nil, .new), (404, nil, "\"v\"", 20, true, nil, .new),
      (206, "5-19/20", "\"v\"", 20, true, nil, .part(20)), (206, "5-19/20", "\"v\"", 20, true, 20, .part(20)),
      (206, "5-19/20", "\"v\"", 20, true, 19, .refused(.dataLengthExceedsMaximum)),
      (206, "5-19/20", "\"v\"", 20, false, nil, cannot), (206, "6-19/20", "\"v\"", 20, true, nil, cannot),
      (206, "5-18/20", "\"v\"", 20, true, nil, cannot), (206, "5-19/20", "\"w\"", 20, true, nil, cannot),
      (206, "5-9/20", "\"v\"", nil, true, nil, cannot), (206, "5-9/*", "\"v\"", nil, true, nil, cannot),
      (206, "5-19/*", "\"v\"", 20, true, nil, .part(20)), (206, "5-9/10", "\"v\"", nil, true, nil, .part(10)),
      (206, nil, "\"v\"", 20, true, nil, cannot), (416, nil, "\"v\"", 20, true, nil, cannot),
    ] as [(Int, String?, String, Int?, Bool, Int64?, Place)] {
      let data = try #require(try made(version: Representation(length: length, validator: "\"v\"")))
      var fields = [HTTPHeader(name: "ETag", value: tag)]
      if let range { fields.append(HTTPHeader(name: "Content-Range", value: "bytes \(range)")) }
      let head = ResponseHead(status: status, fields: fields)
      let place: Place =
        switch data.writePosition(for: head, hasPart: hasPart, limit: limit) {
        case .success(.new), .success(.aside), .success(.range): .new
        case .success(.part(let path, let offset, let end)):
          path == data.path && offset == 5 ? .part(end) : .new
        case .failure(let failure): .refused(failure.kind)
        }
      #expect(place == expected, "\(status) \(range ?? "") \(tag) \(length ?? 0) \(hasPart) \(limit ?? 0)")
    }
  }

  @Test("A part of a file is written to its end if it was asked for, otherwise it has to be the whole file")
  func newFiles() {
    enum Place: Equatable { case new, range(Int64), refused }
    for (status, range, coding, mayBePart, expected) in [
      (200, nil, nil, false, .new), (404, "0-9/20", nil, false, .new), (206, nil, nil, true, .new),
      (206, "0-9/20", nil, true, .range(10)), (206, "5-9/20", nil, true, .range(5)),
      (206, "0-9/*", nil, true, .range(10)), (206, "0-9/20", "gzip", true, .new),
      (206, "0-9/10", nil, false, .range(10)), (206, "0-9/20", nil, false, .refused),
      (206, "5-9/10", nil, false, .refused), (206, "0-9/*", nil, false, .refused),
      (206, "0-9/20", "gzip", false, .refused), (206, nil, nil, false, .refused),
      (206, "0-9/abc", nil, false, .refused), (206, "0-9/abc", nil, true, .new),
    ] as [(Int, String?, String?, Bool, Place)] {
      var fields: [HTTPHeader] = []
      if let range { fields.append(HTTPHeader(name: "Content-Range", value: "bytes \(range)")) }
      if let coding { fields.append(HTTPHeader(name: "Content-Encoding", value: coding)) }
      let head = ResponseHead(status: status, fields: fields)
      let place: Place? =
        switch FileSink.WritePosition.new(for: head, to: "GET", mayBePart: mayBePart) {
        case .success(.new): .new
        case .success(.range(let count)): .range(count)
        case .success(.aside), .success(.part): nil
        case .failure(let failure): failure.kind == .badServerResponse ? .refused : nil
        }
      #expect(place == expected, "\(status) \(range ?? "") \(coding ?? "") \(mayBePart)")
    }
    // A response to HEAD has no body, and other units do not count the bytes of a file.
    for (method, range) in [("HEAD", "bytes 0-9/20"), ("GET", "items 0-9/20"), ("GET", "0-14/20")] {
      let head = ResponseHead(status: 206, fields: [HTTPHeader(name: "Content-Range", value: range)])
      for mayBePart in [true, false] {
        let place = FileSink.WritePosition.new(for: head, to: method, mayBePart: mayBePart)
        guard case .success(.new) = place else {
          Issue.record("\(method) \(range) \(mayBePart): \(place)")
          continue
        }
      }
    }
  }

  @Test("The rest of a file that breaks off has resume data for what is still missing") func brokenRest()
    async throws
  {
    let file = try folder.file("Alamofire_x.tmp", Data("01234".utf8))
    let fields = [
      HTTPHeader(name: "ETag", value: "\"v\""), HTTPHeader(name: "Content-Range", value: "bytes 5-19/20"),
    ]
    let reply = FakeReply(
      status: 206, fields: fields, chunks: [Data("56789".utf8)],
      failure: TransportFailure(.connectionLost, "lost"))
    let session = Session.retained(fake: FakeTransport(reply))
    let response = await session.download(resumingWith: try forged(file: file.path)).ended()
    let rest = try ResumeData(try #require(response.resumeData))
    #expect(rest.received == 10 && rest.path == file.path && rest.version.length == 20)
    #expect(try Data(contentsOf: file) == Data("0123456789".utf8))
  }

  @Test("A download that failed keeps the data that it continued from, as long as their file exists")
  func earlierData() async throws {
    let file = try folder.file("Alamofire_x.tmp", Data("01234".utf8))
    let data = try forged(file: file.path)
    let fake = FakeTransport { _, _ in .failure(.timedOut) }
    let session = Session.retained(fake: fake)
    #expect(await session.download(resumingWith: data).ended().resumeData == data)
    #expect(try Data(contentsOf: file) == Data("01234".utf8))
    try FileManager.default.removeItem(at: file)
    #expect(await session.download(resumingWith: data).ended().resumeData == nil)
    #expect(fake.requests.map { $0.value("Range") } == ["bytes=5-", nil])
  }

  /// Returns data that were forged: a correct journal with other content.
  private func forged(
    kind: TransferDescription.TransferKind = .download, file: String = "Alamofire_x.tmp",
    validator: String? = "\"v\"", hasBodyFile: Bool = false, padding: Int = 0
  ) throws -> Data {
    var description = TransferDescription(
      kind: kind, url: "http://a.test/", method: "GET", fields: ["P": String(repeating: "x", count: padding)],
      created: 0, boot: "")
    description.file = file
    if hasBodyFile { description.bodyFile = .init(path: "/x", isOwned: true, size: 1) }
    return try #require(
      Journal.standard.lines(of: [
        .described(description), .identified(Representation(length: nil, validator: validator), boot: ""),
        .present(ByteRanges(first: 5)),
      ]))
  }

  private func isRefused(_ data: Data) -> Bool {
    do throws(AFError) {
      _ = try ResumeData(data)
      return false
    } catch {
      return (error.underlyingError as? URLError)?.code == .cannotDecodeRawData
    }
  }

  @Test("Forged data are refused") func forgedData() throws {
    #expect(try !isRefused(forged()) && !isRefused(forged(file: "/a/b/Alamofire_x.tmp")))
    #expect(try isRefused(forged(kind: .upload)))
    #expect(try isRefused(forged(validator: nil)))
    #expect(try isRefused(forged(hasBodyFile: true)), "a download has no file to send")
    #expect(try isRefused(forged(padding: 1 << 20)) && !isRefused(forged(padding: 1 << 19)))
    for file in [
      "x.tmp", "Alamofire_x", "", "/", "Alamofire_x.tmp/x", "/Alamofire_x.tmp/", "Alamofire_\0.tmp",
      "/etc/passwd",
    ] {
      #expect(try isRefused(forged(file: file)), "\(file)")
    }
    #expect(isRefused(Data()) && isRefused(Data("x".utf8)))
  }

  @Test("Bytes count if the file has them, and as far as the whole file can have them") func counts() throws {
    let file = try folder.file("Alamofire_x.tmp", Data("012".utf8))
    #expect(try ResumeData(forged(file: file.path)).received == 3)
    try Data("0123456789".utf8).write(to: file)
    #expect(try ResumeData(forged(file: file.path)).received == 5)
    #expect(try !ResumeData(forged(file: folder["Alamofire_gone.tmp"].path)).isUsable)
  }

  @Test("A property list from before the first release counts only if the file has all of its bytes")
  func firstVersion() throws {
    let file = try folder.file("Alamofire_x.tmp", Data("0123".utf8))
    func list(_ changes: [String: Any] = [:]) throws -> Data {
      var list: [String: Any] = [
        "version": 1, "url": "http://a.test/", "method": "GET", "headers": [String: String](),
        "file": file.path, "received": 4, "total": 9, "validator": "\"v\"",
      ]
      for (key, value) in changes { list[key] = value }
      return try PropertyListSerialization.data(fromPropertyList: list, format: .binary, options: 0)
    }
    #expect(try ResumeData(list()).received == 4)
    #expect(try ResumeData(list(["received": 5])).received == 0, "they were not flushed")
    #expect(try !isRefused(list(["total": 4])))
    for changes in [
      ["version": 2], ["received": 0], ["received": -1], ["total": 3], ["validator": ""],
      ["validator": "\"a"],
      ["total": -9],
    ] as [[String: Any]] {
      #expect(try isRefused(list(changes)), "\(changes)")
    }
  }
}
