public import Foundation
import FoundationNetworking
import HTTPWire

/// The state of an interrupted download: the request, the partial file, and the validator by which the server
/// recognizes the representation (RFC 9110 §14.2, §13.1.5). It is encoded as a property list.
struct ResumeData: Codable, Equatable {
  /// The version of the format; others are refused.
  static let version = 1

  var version = ResumeData.version
  var url: String
  var method: String
  var headers: [String: String]
  /// The partial file; relative to the temporary folder if it is in there.
  var file: String
  var received: Int64
  /// A strong entity tag, or a modification date.
  var validator: String
  /// The length of the whole representation, if known.
  var total: Int64?

  /// Makes resume data; `nil` if the response cannot be resumed. A response without a strong validator cannot be
  /// resumed, nor a range that the caller has asked for. An encoded body cannot, because ranges would count other
  /// bytes.
  ///
  /// - Parameter offset: The number of bytes of the file before the response.
  init?(request: URLRequest, head: ResponseHead, offset: Int64, file: String, received: Int64) {
    guard let url = request.url, (request.httpMethod ?? "GET") == "GET", request.httpBody == nil,
      received > 0,
      head.status == 200 || (head.status == 206 && ContentRange(head)?.bounds?.lowerBound == offset),
      !head.block.contains("Content-Encoding"),
      head.block.value(of: "Accept-Ranges")?.lowercased() != "none",
      // Only a strong validator proves that two parts belong together.
      let validator = Representation.validator(
        of: head, now: HTTPDate(secondsSince1970: Int64(Date().timeIntervalSince1970)))
    else { return nil }
    self.url = url.absoluteString
    method = "GET"
    headers = (request.allHTTPHeaderFields ?? [:]).filter {
      !FieldName.equal($0.key, "Range") && !FieldName.equal($0.key, "If-Range")
    }
    self.file = Self.name(of: file)
    self.received = received
    self.validator = validator
    total = head.status == 206 ? ContentRange(head)?.total : Self.length(of: head)
  }

  private static func name(of path: String) -> String {
    let folder = FileManager.default.temporaryDirectory.path
    return path.hasPrefix(folder + "/") ? String(path.dropFirst(folder.count + 1)) : path
  }

  /// Sets the path of the partial file.
  mutating func name(_ path: String) { file = Self.name(of: path) }

  /// Decodes the data. Throws for data of another library or version.
  init(_ data: Data) throws(AFError) {
    do {
      self = try PropertyListDecoder().decode(ResumeData.self, from: data)
    } catch {
      throw Self.unreadable
    }
    guard version == Self.version, received > 0, total.map({ $0 >= received }) ?? true,
      URL(wire: url) != nil, Self.isPart(path)
    else { throw Self.unreadable }
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
      error: URLError.made(
        .cannotDecodeRawData,
        "This is no resume data of this library; begin the download again with its URL.", url: nil))
  }

  var data: Data? {
    let encoder = PropertyListEncoder()
    encoder.outputFormat = .binary
    return try? encoder.encode(self)
  }

  var path: String {
    file.hasPrefix("/") ? file : FileManager.default.temporaryDirectory.appendingPathComponent(file).path
  }

  /// Whether the partial file exists and is not shorter than the received bytes.
  var isUsable: Bool {
    let attributes = try? FileManager.default.attributesOfItem(atPath: path)
    return (attributes?[.size] as? Int).map { Int64($0) >= received } ?? false
  }

  /// Makes the request for the whole file.
  func wholeRequest() throws -> URLRequest {
    guard let url = URL(wire: url) else { throw AFError.invalidURL(url: url) }
    var request = URLRequest(url: url)
    request.httpMethod = method
    request.allHTTPHeaderFields = headers
    return request
  }

  /// The response that the received bytes belong to, as far as it is known.
  var head: ResponseHead {
    let isTag = validator.hasPrefix("\"")
    var fields = [HTTPHeader(name: isTag ? "ETag" : "Last-Modified", value: validator)]
    // The date was strong when the data were made.
    if !isTag {
      let now = HTTPDate(secondsSince1970: Int64(Date().timeIntervalSince1970))
      fields.append(HTTPHeader(name: "Date", value: now.text))
    }
    if let total { fields.append(HTTPHeader(name: "Content-Length", value: String(total))) }
    return ResponseHead(status: 200, fields: fields)
  }

  /// Returns `request` for the rest of its response; unchanged if the partial file is not usable.
  func asksForRest(_ request: URLRequest) -> URLRequest {
    guard isUsable else { return request }
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
  func place(for head: ResponseHead, hasPart: Bool, limit: Int64?) -> Result<DownloadPlace, TransportFailure>
  {
    guard head.status == 206 || head.status == 416 else { return .success(.new) }
    guard hasPart, head.status == 206, isRest(head), let end = ContentRange(head)?.bounds?.upperBound
    else {
      return .failure(
        TransportFailure(
          .cannotContinue, "The server sent another part of the file than was asked for; begin again."))
    }
    if let limit, end > limit { return .failure(.tooLarge(limit)) }
    return .success(.part(path: path, offset: received, end: end))
  }

  /// Whether a response has all missing bytes, of the same version. A server may send fewer than requested (RFC 9110
  /// §15.3.7), and ranges of an encoded body count other bytes. The response has to repeat the entity tag, because a
  /// server may ignore `If-Range` (§15.3.7.3). It may omit a date that was in `If-Range`.
  private func isRest(_ head: ResponseHead) -> Bool {
    guard let range = ContentRange(head), let bounds = range.bounds, bounds.lowerBound == received,
      !head.block.contains("Content-Encoding")
    else { return false }
    // A length that contradicts the range belongs to other bytes.
    if head.block.contains("Content-Length"), Self.length(of: head) != Int64(bounds.count) { return false }
    let whole = total ?? range.total
    if let whole, bounds.upperBound != whole || (range.total ?? whole) != whole { return false }
    let tag = head.block.value(of: "ETag")
    if validator.hasPrefix("\"") { return tag == validator }
    return head.block.value(of: "Last-Modified").map { $0 == validator } ?? (tag == nil)
  }

  private static func length(of head: ResponseHead) -> Int64? {
    head.block.value(of: "Content-Length").flatMap(number)
  }

  /// Parses a number of digits alone, as lengths and ranges are written; `nil` for other text and for an overflow.
  private static func number(_ text: some StringProtocol) -> Int64? {
    text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int64(text) : nil
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
