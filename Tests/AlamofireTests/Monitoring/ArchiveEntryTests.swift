import Foundation
import HTTPWire
import Testing

@testable import Alamofire

/// The values of an entry of an archive, and of its line in the timeline, for a transfer with known metrics.
@Suite("Entries of an archive") struct ArchiveEntryTests {
  private typealias Entry = HARDocument.HAREntry

  private func entry(
    _ hop: Exchange.Hop, sent: Data? = nil, received: Data? = nil, bodyLimit: Int = 10
  ) throws -> Entry {
    let transaction = try #require(TransactionMetrics(hop: hop, response: nil))
    return Entry(
      transaction, sent: sent, received: received, bodyLimit: bodyLimit, redaction: .standard)
  }

  private func hop(
    _ values: TransferMetrics.Values = TaskMetricsTests.fresh(), path: String = "/a",
    fields: [HTTPHeader] = [],
    status: Int? = 200, responseFields: [HTTPHeader] = [],
    from source: TaskMetrics.ResourceFetchType = .networkLoad
  ) -> Exchange.Hop {
    let metrics = TaskMetricsTests.hop(values, status: status).metrics
    return Exchange.Hop(
      url: "https://h.example\(path)", method: "PUT", fields: fields, metrics: metrics,
      head: status.map { ResponseHead(status: $0, fields: responseFields) }, fetchType: source)
  }

  private func milliseconds(_ timings: HARDocument.Timings) -> [Double] {
    [
      timings.blocked, timings.dns, timings.connect, timings.ssl, timings.send, timings.wait, timings.receive,
      timings.total,
    ].map { ($0 * 1_000).rounded() / 1_000 }
  }

  // MARK: Times

  @Test("The phases of a new connection follow each other, and the handshake is a part of the connection")
  func newConnection() throws {
    var values = TaskMetricsTests.fresh()
    values.queueEnd = 200
    let entry = try entry(hop(values))
    #expect(milliseconds(entry.timings) == [0.26, 0.8, 14.04, 12.04, 0.1, 7.8, 2.5, 25.5])
    #expect(entry.time == entry.timings.total)
  }

  @Test("Phases that did not happen are −1, or take no time where the format has no other value")
  func missingPhases() throws {
    let reused = try entry(hop(TaskMetricsTests.reused()))
    #expect(milliseconds(reused.timings) == [0.01, -1, -1, -1, 0.01, 0.98, 1, 2])
    var values = TransferMetrics.Values()
    values.queueEnd = 500
    values.lookupEnd = 2_500
    let unconnected = try entry(hop(values, status: nil))
    #expect(milliseconds(unconnected.timings) == [0.5, 2, -1, -1, 0, 0, 0, 2.5])
    values.lookupEnd = -1
    values.connectEnd = 1_500
    let plain = try entry(hop(values, status: nil))
    #expect(milliseconds(plain.timings) == [0.5, -1, 1, -1, 0, 0, 0, 1.5])
  }

  @Test("Sending lasts until the response if that comes first, and is no time in the queue")
  func earlyResponse() throws {
    let early = try entry(hop(TaskMetricsTests.early(), status: 413))
    #expect(milliseconds(early.timings) == [5, -1, -1, -1, 20, 0, 1, 26])
    var values = TaskMetricsTests.early()
    values.responseStart = -1
    let failed = try entry(hop(values, status: nil))
    #expect(
      milliseconds(failed.timings) == [26, -1, -1, -1, 0, 0, 0, 26], "nothing tells when sending ended")
  }

  @Test("The beginning has milliseconds") func beginning() throws {
    var values = TaskMetricsTests.fresh()
    values.start = 1_000.25
    #expect(try entry(hop(values)).startedDateTime == "1970-01-01T00:16:40.250Z")
  }

  // MARK: The request and the response

  @Test("An entry has the sizes on the wire, and the size of the decoded body") func sizes() throws {
    let entry = try entry(hop())
    #expect(entry.request.headersSize == 120 && entry.request.bodySize == 7)
    #expect(entry.response.headersSize == 210 && entry.response.bodySize == 5_000)
    #expect(entry.response.content.size == 20_000)
    #expect(entry.connection == "50000" && entry.serverIPAddress == "10.0.0.1")
    #expect(entry.request.method == "PUT")
  }

  @Test("Only a response of a cache has a comment of its own") func cached() throws {
    #expect(try entry(hop()).comment == nil)
    #expect(try entry(hop(from: .localCache)).comment == "The response came from a cache.")
  }

  @Test("An entry has the names of the cookies that were sent, and of those that were set") func cookies()
    throws
  {
    let entry = try entry(
      hop(
        fields: [HTTPHeader(name: "Cookie", value: "a=1; b=2")],
        responseFields: [HTTPHeader(name: "Set-Cookie", value: "c=3; Path=/")]))
    #expect(entry.request.cookies.map(\.name) == ["a", "b"])
    #expect(entry.response.cookies.map(\.name) == ["c"])
    #expect((entry.request.cookies + entry.response.cookies).allSatisfy { $0.value == "<redacted>" })
  }

  @Test("The query ends at the fragment, and a value may have equals signs") func query() throws {
    let pairs = try entry(hop(path: "/a?b=c=d&e&f=#g?h=i")).request.queryString
    #expect(pairs.map(\.name) == ["b", "e", "f"])
    #expect(pairs.map(\.value) == ["c=d", "", ""])
    #expect(try entry(hop(path: "/a")).request.queryString.isEmpty)
  }

  @Test("Text up to the limit is recorded with its type, and without its secrets") func bodies() throws {
    let type = HTTPHeader(name: "Content-Type", value: "application/x-www-form-urlencoded")
    let typed = hop(fields: [type], responseFields: [type])
    let body = Data("password=x".utf8)
    let whole = try entry(typed, sent: body, received: body)
    #expect(whole.request.postData?.mimeType == type.value)
    #expect(whole.request.postData?.text == "password=redacted")
    #expect(whole.response.content.mimeType == type.value)
    #expect(whole.response.content.text == "password=redacted")
    let tooLong = try entry(typed, sent: body, received: body, bodyLimit: 9)
    #expect(tooLong.request.postData == nil && tooLong.response.content.text == nil)
    let untyped = try entry(hop(), sent: Data("a".utf8), received: Data([0xFF]))
    #expect(untyped.request.postData?.mimeType == "" && untyped.request.postData?.text == "a")
    #expect(untyped.response.content.mimeType == "x-unknown" && untyped.response.content.text == nil)
  }

  @Test("The target of a redirect is in the entry, without its secrets") func redirect() throws {
    let location = HTTPHeader(name: "Location", value: "https://b.example/?key=planted")
    let entry = try entry(hop(status: 302, responseFields: [location]))
    #expect(entry.response.redirectURL == "https://b.example/?key=redacted")
  }

  // MARK: The timeline

  /// Returns the cells of each row.
  private func rows(_ entries: [Entry]) -> [[String]] {
    TimelinePage(entries: entries).html.components(separatedBy: "<tr").dropFirst(2).map { row in
      row.components(separatedBy: "<td").dropFirst().map { cell in
        cell.drop { $0 != ">" }.dropFirst().components(separatedBy: "</td>")[0]
      }
    }
  }

  @Test("The timeline begins with the first request and ends with the last one") func span() throws {
    var later = TaskMetricsTests.reused()
    later.start = 1_000.1
    later.end = 50_000
    let entries = [try entry(hop(later, path: "/later", status: 404)), try entry(hop())]
    #expect(TimelinePage(entries: entries).html.contains("<h1>2 requests in 150.0 ms</h1>"))
    let rows = rows(entries)
    #expect(rows.map { $0[0] } == ["PUT https://h.example/later", "PUT https://h.example/a"])
    #expect(
      rows.map { Array($0[1...4]) } == [
        ["404", "5000", "100.0 ms", "50.0 ms"], ["200", "20000", "0.0 ms", "25.5 ms"],
      ])
    #expect(TimelinePage(entries: [entries[1]]).html.contains("<h1>1 request in 25.5 ms</h1>"))
  }

  @Test("The legend names each phase beside its color, and each column has a title") func legend() throws {
    let page = TimelinePage(entries: []).html
    let legend = try #require(page.components(separatedBy: "<p>").last?.components(separatedBy: "</p>").first)
    let phases = [
      ("blocked", "queue"), ("dns", "name look-up"), ("connect", "connection"), ("ssl", "TLS handshake"),
      ("send", "request"), ("wait", "waiting"), ("receive", "response"),
    ]
    let labels = phases.map { "<span><b class=\"\($0)\"></b>\($1)</span>" }
    #expect(legend == labels.joined(separator: " "))
    let colors = phases.map { name, _ in
      page.components(separatedBy: ".\(name){background:").dropFirst().map { $0.prefix { $0 != "}" } }
    }
    #expect(colors.allSatisfy { $0.count == 1 } && Set(colors).count == phases.count, "\(colors)")
    let titles = page.components(separatedBy: "<th>").dropFirst().map {
      $0.components(separatedBy: "</th>")[0]
    }
    #expect(titles == ["Request", "Status", "Size", "Start", "Duration", "Timeline"])
    #expect(page.contains("<h1>0 requests in 0.0 ms</h1>"))
  }

  @Test("The bars of a request follow each other, with the time of each phase") func bars() throws {
    var values = TaskMetricsTests.fresh()
    values.queueEnd = 200
    // The whole page is 25.5 ms wide.
    let line = try #require(rows([try entry(hop(values))]).first?[5])
    let bars = line.components(separatedBy: "<i ").dropFirst().map { bar in
      bar.components(separatedBy: "\"").enumerated().filter { $0.offset % 2 == 1 }.map(\.element)
    }
    #expect(
      bars.map { $0[0] } == ["blocked", "dns", "connect", "ssl", "send", "wait", "receive"])
    #expect(
      bars.map { $0[2] } == [
        "queue: 0.3 ms", "name look-up: 0.8 ms", "connection: 2.0 ms", "TLS handshake: 12.0 ms",
        "request: 0.1 ms", "waiting: 7.8 ms", "response: 2.5 ms",
      ])
    #expect(
      bars.map { $0[1] } == [
        "left:0.000%;width:1.020%", "left:1.020%;width:3.137%", "left:4.157%;width:7.843%",
        "left:12.000%;width:47.216%", "left:59.216%;width:0.392%", "left:59.608%;width:30.588%",
        "left:90.196%;width:9.804%",
      ])
  }

  @Test("A request without a response has failed, and its comment is shown") func failed() throws {
    var entry = try entry(hop(status: nil))
    entry.comment = "No <network>."
    let rows = rows([entry])
    #expect(rows[0][0] == "PUT https://h.example/a<small>No &lt;network&gt;.</small>")
    #expect(rows[0][1] == "failed")
    #expect(TimelinePage(entries: [entry]).html.contains("<tr class=\"bad\">"))
  }
}
