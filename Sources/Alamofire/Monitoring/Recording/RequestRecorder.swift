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
public final class RequestRecorder: EventMonitor, WireMonitor {
  /// The queue on which events arrive.
  public let queue = DispatchQueue(label: "org.alamofire.requestRecorder", qos: .utility)

  private let bodyLimit: Int
  private let entryLimit: Int
  private let redaction: Redaction
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

  /// The entries in the order in which they began. Records are made at the ends of attempts.
  private var entries: [HARDocument.Entry] {
    records.withLock { $0 }.map(\.entry).sorted { $0.start < $1.start }
  }

  func wireObserver(of request: UUID, secretFields: Set<String>) -> any WireObserver { HeadObserver.shared }

  // MARK: Events

  /// Records the transactions of an attempt.
  public func request(_ request: Request, didGatherMetrics metrics: URLSessionTaskMetrics) {
    let redaction = request.redaction(redaction)
    let transactions = metrics.transactionMetrics
    let new = transactions.enumerated().map { index, transaction in
      let isLast = index == transactions.count - 1
      let body = isLast ? (request as? DataRequest)?.data : nil
      return RecordedTransaction(
        request: request.id,
        entry: HARDocument.Entry(
          // A request whose head was not sent has no body in its metrics.
          transaction, sent: transaction.requestBody ?? (index == 0 ? request.request?.httpBody : nil),
          received: body, bodyLimit: bodyLimit, redaction: redaction))
    }
    records.withLock { records in
      records += new
      records.removeFirst(max(0, records.count - entryLimit))
    }
  }

  /// Records the error of an attempt.
  public func request(_ request: Request, didCompleteTask task: URLSessionTask, with error: AFError?) {
    guard let error else { return }
    let text = request.redaction(redaction).urls(in: error.localizedDescription)
    records.withLock { records in
      guard let index = records.lastIndex(where: { $0.request == request.id }) else { return }
      records[index].entry.comment = text
    }
  }
}

/// An entry of the archive and the identifier of its request.
struct RecordedTransaction: Sendable {
  let request: UUID
  var entry: HARDocument.Entry
}
