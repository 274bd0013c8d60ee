import Alamofire
import Foundation

extension OutgoingRequest {
  /// The largest body that is compressed, in bytes. It is held in memory.
  private static let largestCompressed = 100_000_000

  /// Compresses the body (`Content-Encoding: deflate`), unless it would not become smaller.
  mutating func compress() throws {
    guard request.value(forHTTPHeaderField: "Content-Encoding") == nil else {
      throw UsageError("--compress sets Content-Encoding; leave out the field or the option.")
    }
    try takeBody()
    guard let plain = request.httpBody, !plain.isEmpty else { return }
    let result = Mutex<Result<URLRequest, any Error>?>(nil)
    DeflateRequestCompressor().adapt(request, for: .default) { adapted in result.withLock { $0 = adapted } }
    guard let compressed = try result.withLock({ $0 })?.get(), let body = compressed.httpBody,
      body.count < plain.count
    else { return }
    request = compressed
    plainBody = plain
  }

  /// Makes the body a part of the request.
  private mutating func takeBody() throws {
    switch body {
    case .ofRequest: return
    case .file(let url):
      let size =
        (try FileManager.default.attributesOfItem(atPath: url.path)[.size] as? NSNumber)?.intValue ?? 0
      guard size <= Self.largestCompressed else { throw Self.tooLarge }
      request.httpBody = try Data(contentsOf: url)
    case .form(let form):
      guard form.contentLength <= UInt64(Self.largestCompressed) else { throw Self.tooLarge }
      request.httpBody = try form.encode()
    case .stream(let stream): request.httpBody = try Self.content(of: stream)
    }
    body = .ofRequest
  }

  private static let tooLarge = UsageError(
    "--compress takes a body of at most 100 MB. Write gzip -c FILE | af URL @- Content-Encoding:gzip.")

  private static func content(of stream: InputStream) throws -> Data {
    stream.open()
    defer { stream.close() }
    var data = Data()
    var room = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = stream.read(&room, maxLength: room.count)
      guard count >= 0 else { throw stream.streamError ?? UsageError("The standard input cannot be read.") }
      if count == 0 { return data }
      data += room[..<count]
      guard data.count <= largestCompressed else { throw tooLarge }
    }
  }
}
