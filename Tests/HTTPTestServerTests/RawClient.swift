import Glibc
import HTTPTestServer

/// A connected socket, with which a test reads the bytes of the server.
final class RawClient {
  enum Failure: Error {
    case system(String, Int32)
    case incomplete(String)
  }

  private(set) var descriptor: Int32
  private var buffer: [UInt8] = []

  /// Connects; every read fails after `timeout` seconds without a byte.
  init(port: Int, timeout: Int = 10) throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    guard descriptor >= 0 else { throw Failure.system("socket", errno) }
    var limit = timeval(tv_sec: timeout, tv_usec: 0)
    setsockopt(
      descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    let code = Self.connect(descriptor, to: port)
    if code != 0 {
      closeNow()
      throw Failure.system("connect", code)
    }
  }

  /// Connects, and returns 0 or the error number.
  ///
  /// - Parameter host: The address. Default: 127.0.0.1.
  static func connect(_ descriptor: Int32, to port: Int, of host: UInt32 = 0x7F00_0001) -> Int32 {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(port).bigEndian
    address.sin_addr.s_addr = host.bigEndian
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0 ? 0 : errno
      }
    }
  }

  convenience init(_ server: HTTPTestServer, timeout: Int = 10) throws {
    try self.init(port: server.port, timeout: timeout)
  }

  deinit { closeNow() }

  func closeNow() {
    if descriptor >= 0 { close(descriptor) }
    descriptor = -1
  }

  func write(_ text: String) throws { try write(Array(text.utf8)) }

  func write(_ bytes: [UInt8]) throws {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      if count < 0 { throw Failure.system("send", errno) }
      rest = rest.dropFirst(count)
    }
  }

  /// Sends a request without a body.
  func ask(_ method: String, _ target: String, _ fields: [String] = []) throws {
    let lines = ["\(method) \(target) HTTP/1.1", "Host: 127.0.0.1"] + fields
    try write(lines.joined(separator: "\r\n") + "\r\n\r\n")
  }

  /// Appends received bytes to the buffer. Returns `false` at the end of the stream.
  @discardableResult
  private func fill() throws -> Bool {
    var bytes = [UInt8](repeating: 0, count: 65_536)
    let count = recv(descriptor, &bytes, bytes.count, 0)
    if count < 0 { throw Failure.system("recv", errno) }
    buffer += bytes.prefix(count)
    return count > 0
  }

  /// Whether the server has not ended the stream. It does not wait.
  var isOpen: Bool {
    var byte: UInt8 = 0
    let count = recv(descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
    return count > 0 || (count < 0 && errno == EAGAIN)
  }

  /// Whether unread bytes were received. It does not wait.
  var hasBytes: Bool {
    var byte: UInt8 = 0
    return !buffer.isEmpty || recv(descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) > 0
  }

  /// Returns all bytes up to the end of the stream.
  func readToEnd() throws -> [UInt8] {
    while try fill() {}
    defer { buffer = [] }
    return buffer
  }

  func readText() throws -> String { String(decoding: try readToEnd(), as: UTF8.self) }

  /// Returns at least one byte, or none at the end.
  func readSome() throws -> [UInt8] {
    if buffer.isEmpty { try fill() }
    defer { buffer = [] }
    return buffer
  }

  /// Returns exactly `count` bytes.
  func read(_ count: Int) throws -> [UInt8] {
    while buffer.count < count {
      guard try fill() else { throw Failure.incomplete(String(decoding: buffer, as: UTF8.self)) }
    }
    defer { buffer.removeFirst(count) }
    return Array(buffer.prefix(count))
  }

  /// Returns the code of the error that ends the stream, or `nil` after a regular end.
  func endingError() -> Int32? {
    do {
      _ = try readToEnd()
      return nil
    } catch Failure.system(_, let code) {
      return code
    } catch {
      return -1
    }
  }

  struct Response {
    var status: Int
    var statusLine: String
    var fields: [(name: String, value: String)]
    var body: [UInt8] = []
    var trailers: [String] = []

    var text: String { String(decoding: body, as: UTF8.self) }

    func field(_ name: String) -> String? {
      fields.first { $0.name.lowercased() == name.lowercased() }?.value
    }

    func all(_ name: String) -> [String] {
      fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    }
  }

  /// Returns a head and its body. `isHead` means that the request was a HEAD.
  func readResponse(isHead: Bool = false) throws -> Response {
    let statusLine = try readLine()
    let parts = statusLine.split(separator: " ")
    guard parts.count >= 2, let status = Int(parts[1]) else { throw Failure.incomplete(statusLine) }
    var response = Response(status: status, statusLine: statusLine, fields: [])
    while case let line = try readLine(), !line.isEmpty {
      let name = line.prefix { $0 != ":" }
      response.fields.append((String(name), String(line.dropFirst(name.count + 2))))
    }
    if isHead || status < 200 || status == 204 || status == 304 { return response }
    if response.field("Transfer-Encoding") == "chunked" {
      while case let size = Int(try readLine(), radix: 16) ?? -1, size != 0 {
        if size < 0 { throw Failure.incomplete("chunk") }
        response.body += try read(size)
        _ = try readLine()
      }
      while case let line = try readLine(), !line.isEmpty { response.trailers.append(line) }
    } else if let length = response.field("Content-Length").flatMap({ Int($0) }) {
      response.body = try read(length)
    } else {
      response.body = try readToEnd()
    }
    return response
  }

  /// Sends a request on this connection and reads the response.
  func get(_ target: String, _ fields: [String] = []) throws -> Response {
    try ask("GET", target, fields)
    return try readResponse()
  }

  private func readLine() throws -> String {
    while true {
      if let end = buffer.firstIndex(of: 0x0A) {
        var line = buffer[..<end]
        if line.last == 0x0D { line.removeLast() }
        let text = String(decoding: line, as: UTF8.self)
        buffer.removeFirst(end + 1)
        return text
      }
      guard try fill() else { throw Failure.incomplete(String(decoding: buffer, as: UTF8.self)) }
    }
  }
}
