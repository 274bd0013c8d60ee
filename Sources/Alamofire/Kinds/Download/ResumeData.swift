public import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire

/// The state of an interrupted download: the request, the partial file, and the representation by which the server
/// recognizes it (RFC 9110 §14.2, §13.1.5). It is encoded as a ``Journal``.
struct ResumeData: Equatable {
  private var description: TransferDescription
  let version: Representation
  /// The number of bytes at the beginning of the file that count; 0 if the download begins again.
  let received: Int64

  /// Makes resume data; `nil` if the response cannot be resumed.
  init?(request: URLRequest, version: Representation?, file: String, received: Int64) {
    guard let url = request.url, (request.httpMethod ?? "GET") == "GET", request.httpBody == nil,
      received > 0,
      let version
    else { return nil }
    let fields = (request.allHTTPHeaderFields ?? [:]).filter {
      !FieldName.equal($0.key, "Range") && !FieldName.equal($0.key, "If-Range")
    }
    // Equal data for equal downloads.
    description = TransferDescription(
      kind: .download, url: url.absoluteString, method: "GET", fields: fields, created: 0, boot: "")
    description.takeProperties(of: request)
    self.version = version
    self.received = received
    name(file)
  }

  /// Sets the path of the partial file. It is relative to the temporary folder if it is in there.
  mutating func name(_ path: String) {
    let folder = FileManager.default.temporaryDirectory.path + "/"
    description.file = path.hasPrefix(folder) ? String(path.dropFirst(folder.count)) : path
  }

  /// The largest size of resume data in bytes. Larger data are refused.
  private static let largestSize = 1 << 20

  /// Decodes the data. Throws for data of another library or version.
  init(_ data: Data) throws(AFError) {
    guard data.count <= Self.largestSize else { throw Self.unreadable }
    let earlier = Version1(data)
    guard let state = Journal.standard.state(of: data) ?? earlier?.state,
      state.description.bodyFile == nil, let version = state.representation, version.validator != nil,
      let file = state.description.file,
      state.description.kind == .download, URL(wire: state.description.url) != nil, Self.isPart(file)
    else { throw Self.unreadable }
    let size = FileSink.sizeOfPart(Self.path(of: file))
    var received = state.receivedSize(boot: PartialFile.boot, fileSize: size)
    // Bytes of that version were not flushed.
    if let earlier, received < earlier.received { received = 0 }
    self.received = received <= version.length ?? .max ? received : 0
    self.version = version
    description = state.description
  }

  /// Whether a path has the name of a partial download. The check protects other files, because resume data may be
  /// forged and their file is written to and removed.
  private static func isPart(_ path: String) -> Bool {
    let name = path.split(separator: "/", omittingEmptySubsequences: false).last ?? ""
    return name.hasPrefix(DownloadPlan.fileName.prefix) && name.hasSuffix(DownloadPlan.fileName.suffix)
      && !path.utf8.contains(0)
  }

  private static var unreadable: AFError {
    .sessionTaskFailed(
      error: URLError(
        .cannotDecodeRawData,
        "This is no resume data of this library; begin the download again with its URL.", url: nil))
  }

  /// Encodes the data; `nil` if that is not possible.
  ///
  /// - Parameter isOnDisk: Whether the received bytes are on the disk. Others count until the machine restarts.
  func data(isOnDisk: Bool) -> Data? {
    let bytes = ByteRanges(first: received)
    return Journal.standard.lines(of: [
      .described(description), .identified(version, boot: PartialFile.boot),
      isOnDisk ? .present(bytes) : .wrote(bytes),
    ])
  }

  private static func path(of file: String) -> String {
    file.hasPrefix("/") ? file : FileManager.default.temporaryDirectory.appendingPathComponent(file).path
  }

  var path: String { Self.path(of: description.file ?? "") }

  /// Whether bytes of the partial file count.
  var isUsable: Bool { received > 0 }

  /// Makes the request for the whole file.
  func wholeRequest() throws -> URLRequest {
    guard let request = URLRequest(description) else { throw AFError.invalidURL(url: description.url) }
    return request
  }

  /// Returns `request` for the rest of its response; unchanged if the partial file is not usable.
  func asksForRest(_ request: URLRequest) -> URLRequest {
    guard isUsable, let validator = version.validator else { return request }
    var request = request
    request.headers.update(name: "Range", value: "bytes=\(received)-")
    request.headers.update(name: "If-Range", value: validator)
    return request
  }

  /// Returns the destination of a response's bytes: the partial file, or a new one.
  ///
  /// - Parameters:
  ///   - hasPart: Whether the partial file is usable.
  ///   - limit: The largest size of the file. The engine limits the response, which is only the rest of it.
  func writePosition(for head: ResponseHead, hasPart: Bool, limit: Int64?) -> Result<
    FileSink.WritePosition, TransportFailure
  > {
    guard head.status == 206 || head.status == 416 else { return .success(.new) }
    guard hasPart, case .rest(let range, let total) = version.continuation(after: received, by: head),
      // A server may send fewer bytes than requested (RFC 9110 §15.3.7). Without a total, that would not show.
      range.upperBound == version.length.map({ Int64($0) }) ?? total
    else {
      return .failure(
        TransportFailure(
          .cannotContinue, "The server sent another part of the file than was asked for; begin again."))
    }
    if let limit, range.upperBound > limit { return .failure(.tooLarge(limit)) }
    return .success(.part(path: path, offset: received, end: range.upperBound))
  }

  /// The property list from before the first release, which is read until 0.2.
  private struct Version1: Decodable {
    let version: Int
    let url, method, file, validator: String
    let headers: [String: String]
    let received: Int64
    let total: Int64?

    init?(_ data: Data) {
      guard let decoded = try? PropertyListDecoder().value(Self.self, from: data), decoded.version == 1,
        decoded.received > 0, decoded.total ?? .max >= decoded.received, decoded.representation.isValid
      else { return nil }
      self = decoded
    }

    private var representation: Representation {
      Representation(length: total.map { Int($0) }, validator: validator)
    }

    /// The bytes were not flushed before, and counted nevertheless.
    var state: JournalState? {
      var description = TransferDescription(
        kind: .download, url: url, method: method, fields: headers, created: 0, boot: "")
      description.file = file
      return JournalState([
        .described(description), .identified(representation, boot: ""), .present(ByteRanges(first: received)),
      ])
    }
  }
}

extension FileSink.WritePosition {
  /// Returns the new file for the body of a response. A range of it ends where the response has announced. Fails for a
  /// part of a file that was requested as a whole, because it would be taken for the whole file (RFC 9110 §15.3.7).
  /// Ranges of other units are not parts of a file.
  ///
  /// - Parameters:
  ///   - method:    The method of the request; a response to HEAD has no body, whatever it announces.
  ///   - mayBePart: Whether the caller has asked for a range.
  static func new(for head: ResponseHead, to method: String, mayBePart: Bool) -> Result<
    Self, TransportFailure
  > {
    guard head.status == 206, method != "HEAD" else { return .success(.new) }
    let range = ContentRange(head)
    guard let range, let bounds = range.bounds else {
      let unit = head.block.value(of: "Content-Range")?.prefix { $0 != " " }.lowercased()
      return mayBePart || unit.map { $0 != "bytes" } ?? false ? .success(.new) : .failure(.partOfWhole)
    }
    guard mayBePart || (bounds.lowerBound == 0 && bounds.upperBound == range.total) else {
      return .failure(.partOfWhole)
    }
    // The range counts the bytes before they are decoded.
    return .success(
      Representation.isEncoded(head) ? .new : .range(count: bounds.upperBound - bounds.lowerBound))
  }
}

extension TransportFailure {
  fileprivate static var partOfWhole: TransportFailure {
    TransportFailure(
      .badServerResponse, "The server sent a part of the file, although the whole file was asked for.")
  }
}

/// The request for the rest of a download.
struct ResumedRequest: URLRequestConvertible {
  let data: Data

  func asURLRequest() throws -> URLRequest {
    let part = try ResumeData(data)
    return part.asksForRest(try part.wholeRequest())
  }
}

/// The key of `URLError.userInfo` for the data with which a failed download can be resumed.
///
/// It is Apple's name of the constant, which Foundation on Linux calls `URLSessionDownloadTaskResumeData`.
public let NSURLSessionDownloadTaskResumeData = URLSessionDownloadTaskResumeData

extension URLError {
  /// The data with which the failed download can be resumed, if this error has any.
  public var downloadTaskResumeData: Data? {
    userInfo[NSURLSessionDownloadTaskResumeData] as? Data
  }
}
