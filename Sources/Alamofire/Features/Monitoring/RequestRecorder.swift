public import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// A monitor that records requests, for an HTTP archive (HAR 1.2) or a timeline as an HTML page.
///
/// ```swift
/// let recorder = RequestRecorder()
/// let session = Session(eventMonitors: [recorder])
/// _ = await session.request("https://example.com/").serializingData().response
/// try recorder.har().write(to: URL(fileURLWithPath: "requests.har"))
/// try Data(recorder.timeline().utf8).write(to: URL(fileURLWithPath: "requests.html"))
/// ```
///
/// The developer tools of browsers read such an archive. The archive has an entry for each request that was sent,
/// including redirects, challenges and retries, and for each response of a cache. Secrets are left out as ``Redaction``
/// says.
public final class RequestRecorder: EventMonitor, WireMonitor, BodyRecordingMonitor, ChunklessMonitor {
  /// The queue on which events arrive.
  public let queue = DispatchQueue(label: "org.alamofire.requestRecorder", qos: .utility)

  private let bodyLimit: Int
  private let entryLimit: Int
  private let redaction: Redaction
  /// The recorded entries, for the queue of the recorder and its users.
  private let records = Mutex<[RecordedTransaction]>([])

  /// Makes a recorder.
  ///
  /// - Parameters:
  ///   - bodyLimit:  The largest body that is recorded, in bytes. Only text is recorded: of requests whose body is in
  ///     memory, and of responses to data requests. Default: 0, none.
  ///   - entryLimit: The number of entries. The oldest ones are removed. Default: 1,000.
  ///   - redaction:  The rules for secrets.
  public init(bodyLimit: Int = 0, entryLimit: Int = 1_000, redaction: Redaction = .standard) {
    self.bodyLimit = max(0, bodyLimit)
    self.entryLimit = max(1, entryLimit)
    self.redaction = redaction
  }

  /// The number of recorded entries.
  public var count: Int { records.withLock { $0.count } }

  /// Removes all entries.
  public func removeAll() { records.withLock { $0 = [] } }

  /// Returns the entries as an HTTP archive, version 1.2: JSON in UTF-8.
  ///
  /// An event arrives on ``queue`` shortly after the handlers of its request. `queue.sync {}` waits for it.
  public func har() throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return try encoder.encode(HARDocument(entries: entries))
  }

  /// Returns the entries as an HTML page: a line for each request, with a bar for each phase. The page needs no script
  /// and no network.
  public func timeline() -> String {
    TimelinePage(entries: entries).html
  }

  /// The entries in the order in which they began. Records are created at the ends of attempts.
  private var entries: [HARDocument.HAREntry] {
    records.withLock { $0 }.map(\.entry).sorted { $0.start < $1.start }
  }

  func wireObserver(of request: UUID, secretFields: Set<String>) -> any WireObserver { HeadObserver.shared }

  // MARK: Events

  /// Records the transactions of an attempt.
  public func request(_ request: Request, didGatherMetrics metrics: URLSessionTaskMetrics) {
    self.request(request, didGatherMetrics: metrics, body: (request as? DataRequest)?.data)
  }

  func request(_ request: Request, didGatherMetrics metrics: URLSessionTaskMetrics, body: Data?) {
    let redaction = request.redaction(redaction)
    let transactions = metrics.transactionMetrics
    let new = transactions.enumerated().map { index, transaction in
      let isLast = index == transactions.count - 1
      return RecordedTransaction(
        request: request.id,
        entry: HARDocument.HAREntry(
          // A request whose head was not sent has no body in its metrics.
          transaction, sent: transaction.requestBody ?? (index == 0 ? request.request?.httpBody : nil),
          received: isLast ? body : nil, bodyLimit: bodyLimit, redaction: redaction))
    }
    records.withLock { records in
      records += new
      records.removeFirst(max(0, records.count - entryLimit))
    }
  }

  /// Records the error of an attempt.
  public func request(_ request: Request, didCompleteTask task: URLSessionTask, with error: AFError?) {
    guard let error else { return }
    let message = error.localizedDescription
    let text = request.redaction(redaction).urls(
      in: bodyLimit > 0 ? message : BodyExcerpt.removed(from: message))
    records.withLock { records in
      guard let index = records.lastIndex(where: { $0.request == request.id }) else { return }
      records[index].entry.comment = text
    }
  }
}

/// An entry of the archive and the identifier of its request.
struct RecordedTransaction: Sendable {
  let request: UUID
  var entry: HARDocument.HAREntry
}

/// An HTML page with a line for each request, and a bar for each of its phases.
struct TimelinePage {
  let entries: [HARDocument.HAREntry]

  var html: String {
    let start = entries.map(\.start).min() ?? 0
    let end = entries.map { $0.start + $0.time / 1_000 }.max() ?? start
    let span = max((end - start) * 1_000, 0.001)
    let rows = entries.map { Self.row($0, offset: ($0.start - start) * 1_000, span: span) }
    let requests = entries.count == 1 ? "1 request" : "\(entries.count) requests"
    return """
      <!doctype html>
      <html lang="en">
      <head>
      <meta charset="utf-8">
      <meta name="viewport" content="width=device-width">
      <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
      <title>Requests</title>
      <style>\(Self.style)</style>
      </head>
      <body>
      <h1>\(requests) in \(Milliseconds(span * 1_000))</h1>
      <p>\(Self.phases.map { "<span><b class=\"\($0.name)\"></b>\($0.title)</span>" }.joined(separator: " "))</p>
      <table>
      <thead><tr><th>Request</th><th>Status</th><th>Size</th><th>Start</th><th>Duration</th><th>Timeline</th></tr></thead>
      <tbody>
      \(rows.joined(separator: "\n"))
      </tbody>
      </table>
      </body>
      </html>

      """
  }

  private struct Phase {
    let name: String
    let title: String
    let duration: @Sendable (HARDocument.Timings) -> Double
  }

  private static let phases = [
    Phase(name: "blocked", title: "queue") { $0.blocked },
    Phase(name: "dns", title: "name look-up") { $0.dns },
    Phase(name: "connect", title: "connection") { max(0, $0.connect) - max(0, $0.ssl) },
    Phase(name: "ssl", title: "TLS handshake") { $0.ssl },
    Phase(name: "send", title: "request") { $0.send },
    Phase(name: "wait", title: "waiting") { $0.wait },
    Phase(name: "receive", title: "response") { $0.receive },
  ]

  private static func row(_ entry: HARDocument.HAREntry, offset: Double, span: Double) -> String {
    var left = offset
    var bars = ""
    for phase in phases {
      let duration = max(0, phase.duration(entry.timings))
      guard duration > 0 else { continue }
      bars += bar(phase, from: left, duration, span)
      left += duration
    }
    let status = entry.response.status
    let shownStatus = status > 0 ? "\(status)" : "failed"
    let isBad = status == 0 || status >= 400
    let note = entry.comment.map { "<small>\(escaped($0))</small>" } ?? ""
    return """
      <tr\(isBad ? " class=\"bad\"" : "")>\
      <td class="name">\(escaped(entry.request.method)) \(escaped(entry.request.url))\(note)</td>\
      <td>\(shownStatus)</td><td>\(entry.response.content.size)</td>\
      <td>\(Milliseconds(offset * 1_000))</td><td>\(Milliseconds(entry.time * 1_000))</td>\
      <td class="line"><div>\(bars)</div></td></tr>
      """
  }

  private static func bar(_ phase: Phase, from left: Double, _ duration: Double, _ span: Double) -> String {
    let percent = { (value: Double) in String(format: "%.3f", value / span * 100) }
    return "<i class=\"\(phase.name)\" style=\"left:\(percent(left))%;width:\(percent(duration))%\" "
      + "title=\"\(phase.title): \(Milliseconds(duration * 1_000))\"></i>"
  }

  /// Returns a text in which no character is markup. Servers choose parts of it.
  private static func escaped(_ text: String) -> String {
    ScalarText.replacing(in: ReadableText.line(text)) { scalar in
      switch scalar {
      case "&": "&amp;"
      case "<": "&lt;"
      case ">": "&gt;"
      case "\"": "&quot;"
      case "'": "&#39;"
      default: nil
      }
    }
  }

  private static let style = """
    body{font:14px/1.4 system-ui,sans-serif;margin:24px;color:#222;background:#fff}
    table{border-collapse:collapse;width:100%}
    th,td{text-align:left;padding:3px 8px;border-bottom:1px solid #ddd;white-space:nowrap}
    .name{max-width:32em;overflow:hidden;text-overflow:ellipsis}
    .name small{display:block;color:#666;white-space:normal}
    p span{white-space:nowrap;margin-right:12px}
    .bad{color:#a00}
    .line{width:45%}.line div{position:relative;height:14px}
    i{position:absolute;top:0;height:14px;min-width:1px}
    b{display:inline-block;width:12px;height:12px;margin-right:4px}
    .blocked{background:#ccc}.dns{background:#1f8a70}.connect{background:#e08e0b}.ssl{background:#a33ea1}
    .send{background:#3b6fb6}.wait{background:#7bb662}.receive{background:#2aa1c0}
    @media(max-width:1000px){body{margin:12px}th,td{padding:3px 4px}.line{width:20%}
    .name{min-width:12em;max-width:none;white-space:normal;overflow-wrap:anywhere}}
    """
}
