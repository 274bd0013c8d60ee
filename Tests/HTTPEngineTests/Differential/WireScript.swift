import Foundation
import Glibc
import HTTPTestServer

/// The bytes with which a server answers one request, how they are split, and how the connection ends.
struct WireScript: Sendable {
  enum Step: Sendable {
    case bytes([UInt8])
    /// Waits until the client has read everything.
    case pause
  }

  enum End: Sendable {
    /// The connection takes another request.
    case open
    /// FIN, after everything that was sent.
    case close
    /// RST.
    case reset
  }

  /// The segments in which the bytes arrive.
  enum Form: String, CaseIterable, Sendable {
    case onePiece
    /// One byte in each segment as far as the scheduler allows it, and in any case nothing beyond a CR.
    case singleBytes
    /// In one piece, on a connection that has carried another request.
    case reusedConnection
  }

  let name: String
  let steps: [Step]
  let end: End

  init(_ name: String, _ bytes: [UInt8], _ end: End) {
    self.name = name
    steps = [.bytes(bytes)]
    self.end = end
  }

  private init(_ name: String, steps: [Step], _ end: End) {
    self.name = name
    self.steps = steps
    self.end = end
  }

  /// Whether bytes follow the response. If they arrive after the next request, they are its response to any client.
  var hasExcess: Bool { name.hasPrefix("seed response/excess") }

  func split(_ form: Form) -> WireScript {
    guard form == .singleBytes else { return self }
    let split = steps.flatMap { step -> [Step] in
      guard case .bytes(let bytes) = step else { return [step] }
      // The rest of a large body is not interesting.
      let singles = bytes.prefix(600).flatMap { byte -> [Step] in
        byte == UInt8(ascii: "\r") ? [.bytes([byte]), .pause] : [.bytes([byte])]
      }
      return singles + [.bytes(Array(bytes.dropFirst(600)))]
    }
    return WireScript(name, steps: split, end)
  }
}

// The scripts: the cases of other tests, and the seeds of the fuzzer.
extension WireScript {
  static func all() throws -> [WireScript] { try heads + faults() + seeds() }

  private static var heads: [WireScript] {
    MalformedHeadTests.malformed.map { head, _ in
      WireScript("malformed \(head)", Array("\(head)\r\n12345".utf8), .close)
    }
      + MalformedHeadTests.accepted.map { head in
        WireScript(
          "accepted \(head)", Array("\(head)12345".utf8), head.contains("Connection: close") ? .close : .open)
      }
  }

  private static func faults() throws -> [WireScript] {
    try BrokenResponseTests.faults.map { fault in
      let (bytes, isReset) = try Self.bytes(of: fault.reply)
      return WireScript("fault \(fault.testDescription)", bytes, isReset ? .reset : .close)
    }
  }

  /// Splits the seeds, in which 0xFF separates the responses to several requests.
  private static func seeds() throws -> [WireScript] {
    let root = (0..<4).reduce(URL(fileURLWithPath: #filePath)) { url, _ in url.deletingLastPathComponent() }
    let folder = root.appendingPathComponent("Fuzz/Seeds")
    let responses = try FileManager.default.contentsOfDirectory(
      atPath: folder.appendingPathComponent("response").path)
    return try (["http1/ok"] + responses.sorted().map { "response/\($0)" }).flatMap { file in
      let bytes = Array(try Data(contentsOf: folder.appendingPathComponent(file)))
      return bytes.split(separator: 0xFF).enumerated().map { index, part in
        WireScript("seed \(file) \(index)", Array(part), .close)
      }
    }
  }

  /// Returns what a server sends for a reply, and whether it resets the connection.
  private static func bytes(of reply: Reply) throws -> (bytes: [UInt8], isReset: Bool) {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(reply)
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    defer { close(descriptor) }
    var limit = timeval(tv_sec: 30, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(server.port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let isConnected = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
    let request = Array("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
    guard isConnected, send(descriptor, request, request.count, Int32(MSG_NOSIGNAL)) == request.count else {
      throw Failure(
        description: "the server of a reply cannot be reached: \(String(cString: strerror(errno)))")
    }
    // The connection of a reply that leaves it open ends with this.
    shutdown(descriptor, Int32(SHUT_WR))
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = recv(descriptor, &buffer, buffer.count, 0)
      if count > 0 {
        bytes += buffer[..<count]
      } else if count == 0 || errno == ECONNRESET {
        return (bytes, count != 0)
      } else if errno != EINTR {
        throw Failure(description: "a reply did not end within 30 s: \(String(cString: strerror(errno)))")
      }
    }
  }

  struct Failure: Error, CustomStringConvertible {
    let description: String
  }
}
