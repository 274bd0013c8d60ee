import Foundation
import FoundationNetworking
import HTTPSystem
package import HTTPWire
import Synchronization

/// Serves `file:` (RFC 8089) and `data:` (RFC 2397) URLs. The content is delivered in chunks, to memory or to the
/// request's sink. Only reads; method and header fields are ignored.
struct LocalTransport: AsyncTransport {
  private static let chunk = 131_072

  func response(
    to request: WireRequest, observer: any TransferObserver
  ) async throws(TransportFailure) -> WireResponse {
    let control = LocalTransferControl(deadline: request.deadline, request.profile.options.timeLimits)
    defer { observer.transferEnded() }
    control.begin(observer.transferBegan(control))
    return try await Self.serve(request, observer, control)
  }

  private static func serve(
    _ request: WireRequest, _ observer: any TransferObserver, _ control: LocalTransferControl
  ) async throws(TransportFailure) -> WireResponse {
    try await control.pass()
    guard !request.body.isPresent else {
      throw TransportFailure(
        .unsupportedURL, "Nothing can be sent to a \(request.scheme): URL; it can only be read.")
    }
    let content = try LocalContent(request.url)
    let openings = control.resumptions
    if observer.headReceived(content.head) == .hold { control.suspend(unlessResumedSince: openings) }
    if let failure = request.sink?.begin(content.head, wake: { control.hasRoom() }) { throw failure }
    let moved: Result<Moved, TransportFailure>
    do throws(TransportFailure) {
      moved = .success(try await move(content, of: request, observer, control))
    } catch {
      moved = .failure(error)
    }
    let failure = request.sink?.finish()
    let (body, count) = try moved.get()
    if let failure { throw failure }
    var values = TransferMetrics.Values()
    values.decodedBodyBytes = count
    return WireResponse(
      head: content.head, body: body.isEmpty ? nil : body, metrics: TransferMetrics(values: values))
  }

  /// The bytes, when there is no sink, and their number.
  private typealias Moved = (body: Data, count: Int64)

  /// Hands on all bytes. Returns them when there is no sink.
  private static func move(
    _ content: LocalContent, of request: WireRequest, _ observer: any TransferObserver,
    _ control: LocalTransferControl
  ) async throws(TransportFailure) -> Moved {
    var body = Data()
    var count = ByteCount()
    count.expectedToReceive = content.expectedLength
    let limit = request.profile.options.bodySizeLimit
    var reader = try content.reader()
    while true {
      try await control.pass()
      try control.checkDeadline()
      let most = content.most(after: count.received, atMost: chunk)
      let bytes = most > 0 ? try reader.next(most) : Data()
      guard !bytes.isEmpty else {
        if let failure = content.failure(ofEndAt: count.received) { throw failure }
        return (body, count.received)
      }
      if let sink = request.sink {
        try await control.give(bytes, to: sink)
      } else {
        body.append(bytes)
      }
      count.received += Int64(bytes.count)
      if let limit, count.received > limit { throw .tooLarge(limit) }
      observer.bytesMoved(count)
    }
  }
}

/// The content of a `file:` or `data:` URL.
struct LocalContent {
  private enum Source {
    case data(Data)
    case file(path: String)
  }

  let head: ResponseHead
  /// The length in bytes; −1 if unknown.
  let expectedLength: Int64
  private let source: Source

  init(_ url: String) throws(TransportFailure) {
    if url.utf8.prefix(5).map(FieldName.lowercased).elementsEqual("data:".utf8) {
      try self.init(dataURL: url)
    } else {
      try self.init(fileURL: url)
    }
  }

  private init(dataURL url: String) throws(TransportFailure) {
    do throws(DataURL.Flaw) {
      let content = try DataURL(url)
      source = .data(content.data)
      expectedLength = Int64(content.data.count)
      head = Self.head(type: content.mediaType, length: expectedLength)
    } catch {
      throw TransportFailure(error == .badBase64 ? .cannotDecodeContent : .badURL, error.message)
    }
  }

  private init(fileURL text: String) throws(TransportFailure) {
    let path = try Self.path(text)
    let attributes: [FileAttributeKey: Any]
    do {
      // The attributes of the target of a symbolic link.
      attributes = try FileManager.default.attributesOfItem(
        atPath: URL(fileURLWithPath: path).resolvingSymlinksInPath().path)
    } catch {
      throw Self.failure(path, error)
    }
    switch attributes[.type] as? FileAttributeType {
    case .typeRegular: break
    case .typeDirectory: throw TransportFailure(.fileIsDirectory, "\(path) is a folder.")
    default:
      throw TransportFailure(.resourceUnavailable, "\(path) is no regular file; only such files can be read.")
    }
    let size = (attributes[.size] as? NSNumber)?.int64Value ?? -1
    source = .file(path: path)
    // A generated file, as in /proc, is read to its end, wherever that is.
    expectedLength = GeneratedFile.isGenerated(path) ? -1 : size
    head = Self.head(
      type: MIMETypes.system.type(forExtension: URL(fileURLWithPath: path).pathExtension),
      length: expectedLength)
  }

  /// Returns the path of a `file:` URL of this machine, with or without an authority (RFC 8089 §2).
  private static func path(_ text: String) throws(TransportFailure) -> String {
    let reference = URIReference(lenient: text)
    let host = reference.authority?.lowercased() ?? ""
    guard host.isEmpty || host == "localhost" else {
      throw TransportFailure(
        .unsupportedURL, "A file: URL must name a file of this machine; leave out its host.")
    }
    let bytes = PercentDecoding.bytes(reference.path.utf8)
    guard bytes.first == UInt8(ascii: "/"), !bytes.contains(0) else {
      throw TransportFailure(.badURL, "A file: URL needs an absolute path, such as file:///tmp/people.json.")
    }
    // Foundation's paths are texts. With other bytes replaced, the path would name another file.
    guard let path = String(validating: bytes, as: UTF8.self) else {
      throw TransportFailure(.badURL, "The path of a file: URL must be UTF-8; rename the file.")
    }
    return path
  }

  private static func head(type: String, length: Int64) -> ResponseHead {
    var fields = [HTTPHeader(name: "Content-Type", value: type)]
    if length >= 0 { fields.append(HTTPHeader(name: "Content-Length", value: "\(length)")) }
    var head = ResponseHead(status: 200, fields: fields)
    head.role = .other
    return head
  }

  static func failure(_ path: String, _ error: any Error) -> TransportFailure {
    switch (error as? CocoaError)?.code {
    case .fileNoSuchFile?, .fileReadNoSuchFile?:
      TransportFailure(.fileDoesNotExist, "There is no file at \(path).")
    case .fileReadNoPermission?:
      TransportFailure(.noPermissionToReadFile, "The file at \(path) may not be read by this program.")
    default:
      TransportFailure(
        .resourceUnavailable, "The file at \(path) cannot be read: \(error.localizedDescription)")
    }
  }

  /// Returns the number of bytes to read next. Of a file that grows, only the announced bytes are read. A file without
  /// a size may have content all the same, in some file systems.
  func most(after received: Int64, atMost limit: Int) -> Int {
    expectedLength > 0 ? Int(min(Int64(limit), expectedLength - received)) : limit
  }

  /// Returns the failure of a file that has become shorter while it was read; `nil` at its announced end.
  func failure(ofEndAt received: Int64) -> TransportFailure? {
    guard case .file(let path) = source, received < expectedLength else { return nil }
    return TransportFailure(
      .resourceUnavailable,
      "The file at \(path) became shorter while it was read. Read it again when nothing writes to it.")
  }

  func reader() throws(TransportFailure) -> LocalReader {
    switch source {
    case .data(let data): return .data(data[...])
    case .file(let path):
      do {
        return .file(try FileHandle(forReadingFrom: URL(fileURLWithPath: path)), path: path)
      } catch {
        throw Self.failure(path, error)
      }
    }
  }
}

/// Gives the bytes of a ``LocalContent`` chunk by chunk. A file is closed when its reader is let go.
enum LocalReader {
  case data(Data.SubSequence)
  case file(FileHandle, path: String)

  /// Returns the next bytes, at most `count`; none at the end.
  mutating func next(_ count: Int) throws(TransportFailure) -> Data {
    switch self {
    case .data(let rest):
      self = .data(rest.dropFirst(count))
      return rest.prefix(count)
    case .file(let handle, let path):
      do {
        return try handle.read(upToCount: count) ?? Data()
      } catch {
        throw LocalContent.failure(path, error)
      }
    }
  }
}

extension URLResponse {
  /// Makes Foundation's response for a URL that is not HTTP.
  convenience init?(_ url: URL?, _ head: ResponseHead) {
    guard let url else { return nil }
    let type = head.block.value(of: "Content-Type")
    let length = head.block.contentLength.flatMap { Int(exactly: $0) } ?? -1
    self.init(
      url: url, mimeType: type.map { String($0.prefix { $0 != ";" }) }, expectedContentLength: length,
      textEncodingName: head.charset)
  }
}

/// The control of a ``LocalTransport``: its only reader waits here while the transfer is suspended or the sink is
/// full.
package final class LocalTransferControl: TransferControl {
  private struct State {
    var isClosed = false
    var isFull = false
    var isCancelled = false
    /// Whether the deadline has ended a wait.
    var isOver = false
    var resumptions = 0
    var reader: CheckedContinuation<Void, Never>?

    var mayPass: Bool { isCancelled || isOver || !(isClosed || isFull) }
  }

  /// Whether bytes may move, and what waits for that, for any thread.
  private let state = Mutex(State())
  /// The end of the total time of the request; `nil` without a limit.
  private let deadline: MonotonicTime?
  /// The name of the setting that limits the total time.
  private let setting: String

  /// Makes the control of a transfer.
  ///
  /// - Parameters:
  ///   - deadline: The end of its total time, which a suspension does not stop.
  ///   - limits: The limits of the request.
  package init(deadline: MonotonicTime? = nil, _ limits: TransportOptions.TimeLimits = .init()) {
    self.deadline = deadline
    setting = limits.totalSetting
  }

  /// The number of calls of ``resume()``.
  package var resumptions: Int { state.withLock { $0.resumptions } }

  package func suspend() { change { $0.isClosed = true } }

  /// Begins a transfer as its observer has answered.
  package func begin(_ start: TransferStart) {
    switch start {
    case .go: break
    // The control was known before the answer, so it may have been resumed since.
    case .hold: suspend(unlessResumedSince: 0)
    case .refuse: cancel()
    }
  }

  /// Suspends after a held head, unless the decision was made before the observer returned.
  package func suspend(unlessResumedSince resumptions: Int) {
    change { state in
      if state.resumptions == resumptions { state.isClosed = true }
    }
  }

  /// Whether the transfer was cancelled.
  var isCancelled: Bool { state.withLock { $0.isCancelled } }

  package func resume() {
    change { state in
      state.isClosed = false
      state.resumptions += 1
    }
  }

  package func cancel() { change { $0.isCancelled = true } }

  /// Marks the sink as full before it gets bytes, because it may call ``hasRoom()`` before it returns.
  package func expectFullness() { change { $0.isFull = true } }

  package func hasRoom() { change { $0.isFull = false } }

  /// Returns when bytes may move. Throws after a cancellation, and if the deadline ends the wait.
  package func pass() async throws(TransportFailure) {
    if !state.withLock({ $0.mayPass }) { await wait() }
    let (isCancelled, isOver) = state.withLock { ($0.isCancelled, $0.isOver) }
    if isCancelled { throw TransportFailure(.cancelled, "The request was cancelled.") }
    if isOver { throw incomplete }
  }

  /// Throws after the deadline, for content that takes time to read.
  func checkDeadline() throws(TransportFailure) {
    guard let deadline, deadline <= .now else { return }
    throw incomplete
  }

  private var incomplete: TransportFailure {
    TransportFailure(.timedOut, "The response was not complete in time (\(setting)).", phase: .total)
  }

  private func wait() async {
    let timer = deadline.map { deadline in
      DispatchSource.timer(at: DispatchTime(deadline)) { [weak self] in self?.change { $0.isOver = true } }
    }
    defer { timer?.cancel() }
    await withCheckedContinuation { continuation in
      let mayPass = state.withLock { state in
        if !state.mayPass { state.reader = continuation }
        return state.mayPass
      }
      if mayPass { continuation.resume() }
    }
  }

  /// Gives bytes to a sink, and waits while the sink is full. The sink ends the wait with ``hasRoom()``.
  func give(_ bytes: Data, to sink: any BodySink) async throws(TransportFailure) {
    expectFullness()
    switch bytes.withUnsafeBytes({ sink.receive($0) }) {
    case .more: hasRoom()
    case .pause: try await pass()
    case .failure(let failure): throw failure
    }
  }

  private func change(_ body: (inout State) -> Void) {
    let reader = state.withLock { state -> CheckedContinuation<Void, Never>? in
      body(&state)
      guard state.mayPass else { return nil }
      defer { state.reader = nil }
      return state.reader
    }
    reader?.resume()
  }
}
