public import Foundation
import FoundationNetworking
import HTTPWire

/// `TaskMetrics` under the name that it has on Apple's systems.
///
/// Foundation's own class cannot be filled from outside, so this name means ours wherever `Alamofire` is imported. The
/// name is ambiguous in a file that also imports FoundationNetworking. Leave out that import, which `Alamofire` makes
/// superfluous, or say once in your module which type is meant:
///
/// ```swift
/// typealias URLSessionTaskMetrics = Alamofire.URLSessionTaskMetrics
/// typealias URLSessionTaskTransactionMetrics = Alamofire.URLSessionTaskTransactionMetrics
/// ```
public typealias URLSessionTaskMetrics = TaskMetrics

/// `TransactionMetrics` under the name that it has on Apple's systems; see ``URLSessionTaskMetrics``.
public typealias URLSessionTaskTransactionMetrics = TransactionMetrics

/// The metrics of a request: one transaction for each request that was sent, including redirects and challenges.
///
/// Every request that has ended has metrics. Metrics without a transaction mean that nothing was sent. The request
/// could not be created, was cancelled before, or was served by a file, a `data:` URL or a `URLProtocol` class.
///
/// It has the members of Foundation's class of the other name. The transport measured the values; they can be read on
/// any thread.
///
/// ```swift
/// let response = await AF.request(url).serializingData().response
/// print(response.metrics?.taskInterval.duration ?? 0)
/// ```
public final class TaskMetrics: Sendable {
  /// The source of a response.
  public enum ResourceFetchType: Int, Sendable {
    /// An unknown source.
    case unknown = 0
    /// The network.
    case networkLoad = 1
    /// The server, before it was asked. Never happens here.
    case serverPush = 2
    /// A cache of this program.
    case localCache = 3
  }

  /// The protocol of the name's look-up.
  public enum DomainResolutionProtocol: Int, Sendable {
    /// An unknown protocol, because the system's resolver does not report it.
    case unknown = 0
    /// DNS over UDP.
    case udp = 1
    /// DNS over TCP.
    case tcp = 2
    /// DNS over TLS.
    case tls = 3
    /// DNS over HTTPS.
    case https = 4
  }

  /// The requests in the order in which they were sent; empty if nothing was handed to the network.
  public let transactionMetrics: [TransactionMetrics]
  /// From the start of the first request to the end of the last.
  public let taskInterval: DateInterval
  /// The number of followed redirects.
  public let redirectCount: Int

  /// Makes the metrics of an attempt that handed nothing to the network, from `start` to now.
  init(from start: Date) {
    transactionMetrics = []
    taskInterval = DateInterval(start: start, end: max(start, Date()))
    redirectCount = 0
  }

  /// Makes the metrics of an attempt. `finalResponse` is the response of the last hop, so that users see one object
  /// everywhere.
  init(hops: ShortList<Exchange.Hop>, finalResponse: LazyResponse) {
    transactionMetrics = hops.enumerated().compactMap { index, hop in
      TransactionMetrics(hop: hop, response: index == hops.count - 1 ? finalResponse : nil)
    }
    let start = hops.first.map { $0.metrics.values.start } ?? 0
    let end =
      hops.map { $0.metrics.values.start + Double($0.metrics.values.latest) / 1_000_000 }.max() ?? start
    taskInterval = DateInterval(
      start: Date(timeIntervalSince1970: start), end: Date(timeIntervalSince1970: max(start, end)))
    redirectCount = hops.dropLast().count { hop in
      [301, 302, 303, 307, 308].contains(hop.head?.status)
    }
  }
}

extension TaskMetrics: CustomStringConvertible {
  /// A line for the whole, and for every request a line for each phase that happened.
  public var description: String {
    let duration = Milliseconds(taskInterval.duration * 1_000_000)
    let redirects = redirectCount == 1 ? "1 redirect" : "\(redirectCount) redirects"
    return (["Task: \(duration), \(redirects)"] + transactionMetrics.map(\.description)).joined(
      separator: "\n")
  }
}

extension TransferMetrics.Values {
  /// The last moment that is known, in microseconds since the start.
  var latest: Int64 {
    max(0, lookupEnd, connectEnd, secureEnd, requestStart, requestEnd, responseStart, end)
  }
}
