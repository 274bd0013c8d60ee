import FoundationEssentials
import Glibc
import HTTPTestServer
import HTTPWire
import Testing

/// Hosts with several addresses, some of which do not answer (RFC 8305 §5).
@Suite("Addresses of a host", .timeLimit(.minutes(5))) struct AddressTests {
  private static let other = IPAddress(.v4, bytes: [127, 0, 0, 2])

  private static let partlyRefusing: [[IPAddress?]] = [
    [other, .loopback4], [.loopback6, .loopback4], [.loopback6, other, .loopback4],
  ]

  /// Sends a request to a host with these addresses, of which 127.0.0.1 has a server.
  private func get(
    _ addresses: [IPAddress?], connectTimeout: Duration? = nil, prepare: (Int) throws -> Void = { _ in }
  ) async throws -> WireResponse {
    let names = NameService(["many.example": addresses.compactMap { $0 }])
    let doh = try HTTPTestServer(.tls(.localhost), routes: names.routes)
    let server = try HTTPTestServer()
    try prepare(server.port)
    let client = Client {
      $0.nameServiceURL = doh.url("/dns-query")
      $0.connectTimeout = connectTimeout
    }
    return try await client.get("http://many.example:\(server.port)/get")
  }

  @Test("The next address follows one that refuses", arguments: partlyRefusing)
  func refused(addresses: [IPAddress?]) async throws {
    let response = try await get(addresses)
    #expect(response.status == 200)
    #expect(response.metrics.remoteAddress == "127.0.0.1")
  }

  @Test("The next address follows one that does not answer")
  func silent() async throws {
    var silent: SilentAddress?
    defer { silent?.close() }
    let response = try await get([Self.other, .loopback4], connectTimeout: .seconds(4)) {
      silent = try SilentAddress(port: $0)
    }
    #expect(response.status == 200)
    #expect(response.metrics.remoteAddress == "127.0.0.1")
  }
}

/// A port of 127.0.0.2 with a full queue of connections.
private struct SilentAddress {
  private struct Failure: Error {
    let code = errno
  }

  private var sockets: [Int32] = []

  init(port: Int) throws {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0002).bigEndian
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    let length = socklen_t(MemoryLayout<sockaddr_in>.size)
    // A queue of length 0 holds one connection; the kernel drops later ones.
    for index in 0..<3 {
      let descriptor = socket(AF_INET, kind, 0)
      guard descriptor >= 0 else { throw Failure() }
      sockets.append(descriptor)
      let result = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          index == 0 ? bind(descriptor, $0, length) : connect(descriptor, $0, length)
        }
      }
      if index == 0 { guard result == 0, listen(descriptor, 0) == 0 else { throw Failure() } }
    }
  }

  func close() {
    for descriptor in sockets { Glibc.close(descriptor) }
  }
}
