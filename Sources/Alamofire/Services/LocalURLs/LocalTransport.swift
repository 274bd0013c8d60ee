import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire

/// Serves `file:` (RFC 8089) and `data:` (RFC 2397) URLs. The content is delivered in chunks, to memory or to the
/// request's sink. Only reads; method and header fields are ignored.
struct LocalTransport: AsyncTransport {
  private static let chunk = 131_072

  func response(
    to request: WireRequest, observer: any TransferObserver
  ) async throws(TransportFailure) -> WireResponse {
    let control = LocalTransferControl(deadline: request.deadline)
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
      let bytes = try reader.next(chunk)
      guard !bytes.isEmpty else { return (body, count.received) }
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
    let path = PercentDecoding.text(reference.path)
    guard path.hasPrefix("/"), !path.utf8.contains(0) else {
      throw TransportFailure(.badURL, "A file: URL needs an absolute path, such as file:///tmp/people.json.")
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
