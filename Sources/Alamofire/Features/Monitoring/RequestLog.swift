public import Foundation
import FoundationNetworking

/// A monitor that writes a line for each request: method, URL, status, type, size and duration, or the error.
///
/// ```swift
/// let session = Session(eventMonitors: [RequestLog()])
/// ```
///
/// Lines go to the standard error output, or to a closure, for any logging system:
///
/// ```swift
/// let log = RequestLog(level: .debug, bodyLimit: 200) { entry in
///   logger.log(
///     level: Logger.Level(rawValue: entry.level.rawValue) ?? .info, "\(entry.message)",
///     metadata: ["request": "\(entry.requestID)"])
/// }
/// ```
///
/// Secrets are left out as ``Redaction`` says, and so are the header fields of the request's
/// `TransportOptions.protectedHeaders`. A log can also be added to one request, with `eventMonitor(_:)`.
public final class RequestLog: EventMonitor, ChunklessMonitor, FirstEndMonitor {
  /// The importance of an entry.
  public enum Level: String, Sendable, Comparable, CaseIterable {
    /// The beginning of each attempt with its header fields, and the header fields and trailers of the response.
    case debug
    /// The end of a request with a status below 400, and of one that ended with `AFError.explicitlyCancelled`.
    case info
    /// The end of a request with a status of 400 or more, and each retry.
    case warning
    /// The end of a request that has failed, and a response that could not be serialized. A request that was cancelled
    /// while it waited for a retry has failed, too.
    case error

    /// Compares the importance.
    public static func < (left: Level, right: Level) -> Bool { left.rank < right.rank }

    private var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }
  }

  /// The queue on which entries are created and the closure is called.
  public let queue: DispatchQueue
  /// The least important level that is written.
  public let level: Level
  /// The number of bytes of bodies that are shown; 0 for none, not even in the messages of errors.
  public let bodyLimit: Int

  private let redaction: Redaction
  private let write: @Sendable (Entry) -> Void

  /// Makes a log.
  ///
  /// - Parameters:
  ///   - level:     The least important level that is written. Default: `.info`, one line for each request.
  ///   - bodyLimit: The number of bytes of the bodies of data requests that are shown. Default: 0, none.
  ///   - redaction: The rules for secrets.
  ///   - write:     Called with each entry, one after the other. Default: prints to the standard error output,
  ///     and drops what cannot be written.
  public init(
    level: Level = .info, bodyLimit: Int = 0, redaction: Redaction = .standard,
    write: @escaping @Sendable (Entry) -> Void = { entry in
      // `write(_:)` would end the process if a disk is full or a pipe has lost its reader.
      try? FileHandle.standardError.write(contentsOf: Data("\(entry)\n".utf8))
    }
  ) {
    queue = DispatchQueue(label: "org.alamofire.requestLog", qos: .utility)
    self.level = level
    self.bodyLimit = max(0, bodyLimit)
    self.redaction = redaction
    self.write = write
  }

  // MARK: Events

  /// Writes the beginning of an attempt, at `.debug`.
  public func request(_ request: Request, didCreateURLRequest urlRequest: URLRequest) {
    add(.debug, request) { facts in
      let fields = facts.text(of: (urlRequest.allHTTPHeaderFields ?? [:]).map { ($0.key, $0.value) })
      return "\(facts.title): begins\(fields)"
    }
  }

  /// Writes a retry, at `.warning`.
  public func requestIsRetrying(_ request: Request) {
    add(.warning, request) { "\($0.title): is sent again, retry \(request.retryCount)" }
  }

  /// Writes the end of a request. Handlers that are added after it write no other line.
  public func requestDidFinish(_ request: Request) {
    let error = request.error
    let status = request.response?.statusCode ?? 0
    let level: Level =
      switch error {
      case .explicitlyCancelled: .info
      case nil: status >= 400 ? .warning : .info
      default: .error
      }
    add(level, request, error) { $0.end(error, bodyLimit: self.bodyLimit) }
    add(.debug, request) { facts in
      let fields = facts.transaction?.responseFields.map { ($0.name, $0.value) } ?? []
      return fields.isEmpty ? nil : "\(facts.title): response\(facts.text(of: fields))"
    }
    add(.debug, request) { facts in
      request.responseTrailers.map {
        "\(facts.title): trailers\(facts.text(of: $0.map { ($0.name, $0.value) }))"
      }
    }
  }

  /// Writes the failure of a serializer, at `.error`.
  public func request<Value: Sendable>(
    _ request: DataRequest, didParseResponse response: DataResponse<Value, AFError>
  ) {
    addSerializationError(response.error, of: request)
  }

  /// Writes the failure of a serializer, at `.error`.
  public func request<Value: Sendable>(
    _ request: DownloadRequest, didParseResponse response: DownloadResponse<Value, AFError>
  ) {
    addSerializationError(response.error, of: request)
  }

  /// Writes the failure of a serializer, at `.error`.
  public func request<Value: Sendable>(
    _ request: DataStreamRequest, didParseStream result: Result<Value, AFError>
  ) {
    addSerializationError(result.failure, of: request)
  }

  private func addSerializationError(_ error: AFError?, of request: Request) {
    // The end of the request has reported other errors.
    guard let error, error.isResponseSerializationError else { return }
    add(.error, request, error) { "\($0.title): \($0.sentence(error, showsBody: self.bodyLimit > 0))" }
  }

  private func add(
    _ level: Level, _ request: Request, _ error: AFError? = nil, _ message: (RequestFacts) -> String?
  ) {
    guard level >= self.level else { return }
    let facts = RequestFacts(request, redaction)
    guard let message = message(facts) else { return }
    write(
      Entry(
        level: level, message: ReadableText.line(message), date: Date(), requestID: request.id,
        method: facts.method,
        url: facts.url,
        statusCode: facts.status, duration: facts.duration, error: error))
  }
}

extension RequestLog {
  /// An event of a request for a log.
  public struct Entry: Sendable, CustomStringConvertible {
    /// The importance.
    public let level: Level
    /// The event on one line, without secrets.
    public let message: String
    /// The time of the event.
    public let date: Date
    /// The identifier of the request, ``Request/id``. All entries of a request have the same one.
    public let requestID: UUID
    /// The method; `nil` if the request could not be created.
    public let method: String?
    /// The URL without secrets; `nil` if the request could not be created.
    public let url: String?
    /// The status of the response; `nil` without one.
    public let statusCode: Int?
    /// The duration of all attempts so far, in seconds; `nil` before the first one ends.
    public let duration: TimeInterval?
    /// The error of the request or of a serializer. Its values may contain secrets.
    public let error: AFError?

    /// Time, level and message.
    public var description: String {
      let time = date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
      return "\(time) \(level.rawValue) \(message)"
    }
  }
}

/// The facts of a request for a line of a log, without its secrets.
struct RequestFacts {
  let method: String?
  let url: String?
  let status: Int?
  let duration: TimeInterval?
  let transaction: TransactionMetrics?

  private let request: Request
  private let redaction: Redaction
  private let metrics: [TaskMetrics]

  init(_ request: Request, _ redaction: Redaction) {
    self.request = request
    self.redaction = request.redaction(redaction)
    let urlRequest = request.request
    method = urlRequest.map { $0.httpMethod ?? "GET" }
    url = urlRequest?.url.map { [rules = self.redaction] in
      ReadableText.line(rules.url($0.absoluteString))
    }
    status = request.response?.statusCode
    let all = request.allMetrics
    metrics = all
    transaction = all.last?.transactionMetrics.last
    duration = all.first.flatMap { first in
      all.last.map { $0.taskInterval.end.timeIntervalSince(first.taskInterval.start) }
    }
  }

  /// `GET https://example.com/`.
  var title: String { "\(method ?? "Request") \(url ?? "without URL")" }

  /// Returns the fields as `, Name: value, …` with masked secrets.
  func text(of fields: [(String, String)]) -> String {
    fields.sorted { $0.0.lowercased() < $1.0.lowercased() }.map { name, value in
      ", \(name): \(redaction.value(value, ofHeaderField: name))"
    }.joined()
  }

  /// Returns the message of an error on one line.
  ///
  /// - Parameter showsBody: Whether the message may contain the beginning of the body.
  func sentence(_ error: AFError, showsBody: Bool) -> String {
    let text = error.localizedDescription
    return redaction.urls(in: showsBody ? text : BodyExcerpt.removed(from: text))
      .split(whereSeparator: \.isNewline).joined(separator: " ")
  }

  /// Returns the line at the end of the request.
  func end(_ error: AFError?, bodyLimit: Int) -> String {
    var parts = [status.map { "\(title): \($0)" } ?? "\(title): no response"]
    if let type = request.response?.value(forHTTPHeaderField: "Content-Type") { parts.append(type) }
    if let transaction, status != nil {
      parts.append(Int(clamping: transaction.countOfResponseBodyBytesAfterDecoding).bytes)
      if transaction.resourceFetchType == .localCache { parts.append("from a cache") }
    }
    if let duration { parts.append("\(Milliseconds(duration * 1_000_000))") }
    let redirects = metrics.last?.redirectCount ?? 0
    if redirects > 0 { parts.append(redirects == 1 ? "1 redirect" : "\(redirects) redirects") }
    let retries = request.retryCount
    if retries > 0 { parts.append(retries == 1 ? "1 retry" : "\(retries) retries") }
    if bodyLimit > 0 { parts += bodies(bodyLimit) }
    let line = parts.joined(separator: ", ")
    return error.map { "\(line): \(sentence($0, showsBody: bodyLimit > 0))" } ?? line
  }

  private func bodies(_ limit: Int) -> [String] {
    var parts: [String] = []
    let sent = request.request
    if let body = sent?.httpBody, !body.isEmpty {
      let type = sent?.value(forHTTPHeaderField: "Content-Type")
      parts.append("sent \(BodyExcerpt(body, contentType: type, limit: limit, redaction: redaction))")
    }
    if let body = (request as? DataRequest)?.data, !body.isEmpty {
      let type = request.response?.value(forHTTPHeaderField: "Content-Type")
      parts.append("received \(BodyExcerpt(body, contentType: type, limit: limit, redaction: redaction))")
    }
    return parts
  }
}

extension Request {
  /// Returns rules for secrets with the protected header fields of this request.
  func redaction(_ rules: Redaction) -> Redaction {
    let names = core.profile.options.protectedHeaders
    return names.isEmpty ? rules : rules.adding(names)
  }
}
