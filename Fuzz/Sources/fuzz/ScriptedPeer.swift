import FoundationEssentials
import Glibc
import HTTPEngine
import HTTPWire

/// A client, and a server on loopback that sends the bytes of the fuzzer as responses, in one process.
///
/// The input is split at 0xFF, and each part answers one request of the same client. So data that a part leaves behind
/// in a reused connection or handle meets the next part. The value belongs to one thread, which is the server.
final class ScriptedPeer {
  /// The time after which a run counts as hanging, in seconds.
  private static let longest: Double = 5

  private let listener: Int32
  private let port: Int
  /// A pipe that gets a byte at the end of a request.
  private let ended: (reader: Int32, writer: Int32)
  private var connection: Int32 = -1
  private let transport = HTTPTransport()
  private let profile: ConnectionProfile

  init?() {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    self.listener = listener
    var ends: [Int32] = [-1, -1]
    let hasPipe = pipe(&ends) == 0
    ended = (ends[0], ends[1])
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let bound = withUnsafeMutablePointer(to: &address) { address in
      address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        bind(listener, address, length) == 0 && listen(listener, 16) == 0
          && getsockname(listener, address, &length) == 0
      }
    }
    guard listener >= 0, hasPipe, bound else { return nil }
    port = Int(UInt16(bigEndian: address.sin_port))
    var options = TransportOptions()
    options.bodySizeLimit = 1 << 22
    options.proxy = .none
    profile = ConnectionProfile(options: options)
  }

  /// Sends one request for each part of `bytes`, at most four, and waits for the end of each.
  func run(_ bytes: UnsafeRawBufferPointer) {
    let parts = bytes.split(separator: 0xFF, maxSplits: 3, omittingEmptySubsequences: false)
    for (index, part) in parts.enumerated() {
      ask(index)
      serve(UnsafeRawBufferPointer(rebasing: part), keepsConnection: index + 1 < parts.count)
    }
    hangUp()
  }

  private func ask(_ index: Int) {
    let url = "http://127.0.0.1:\(port)/"
    guard let origin = Origin(url: url) else { return }
    let request = WireRequest(url: url, origin: origin, profile: profile) { parts in
      if index == 2 { parts.method = "HEAD" }
    }
    let transport = transport
    let writer = ended.writer
    Task.detached {
      _ = try? await transport.send(request, observer: SilentObserver())
      _ = write(writer, [1], 1)
    }
  }

  /// Answers with `part` until the request has ended. A connection that stays open is closed after a while, because the
  /// part may be an incomplete response.
  private func serve(_ part: UnsafeRawBufferPointer, keepsConnection: Bool) {
    var head: [UInt8] = []
    var waited = 0.0
    while waited < Self.longest {
      var descriptors = [
        pollfd(fd: ended.reader, events: Int16(POLLIN), revents: 0),
        pollfd(fd: listener, events: Int16(POLLIN), revents: 0),
        pollfd(fd: connection, events: Int16(POLLIN), revents: 0),
      ]
      if poll(&descriptors, 3, 5) == 0 {
        waited += 0.005
        hangUp()
      }
      if descriptors[0].revents != 0 {
        var byte: UInt8 = 0
        _ = read(ended.reader, &byte, 1)
        return
      }
      if descriptors[2].revents != 0 { answer(part, &head, keepsConnection) }
      if descriptors[1].revents != 0 {
        hangUp()
        connection = accept(listener, nil, nil)
        head = []
      }
    }
    fatalError("A request has no end")
  }

  private func answer(_ part: UnsafeRawBufferPointer, _ head: inout [UInt8], _ keepsConnection: Bool) {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = recv(connection, &buffer, buffer.count, 0)
    guard count > 0 else { return hangUp() }
    head += buffer[0..<count]
    guard head.suffix(4) == [0x0D, 0x0A, 0x0D, 0x0A] else { return }
    head = []
    _ = send(connection, part.baseAddress, part.count, Int32(MSG_NOSIGNAL))
    if !keepsConnection { hangUp() }
  }

  private func hangUp() {
    guard connection >= 0 else { return }
    close(connection)
    connection = -1
  }
}

private final class SilentObserver: TransferObserver {
  func transferBegan(_ control: any TransferControl) -> TransferStart { .go }
  func headReceived(_ head: ResponseHead) -> HeadDisposition { .proceed }
  func bytesMoved(_ count: ByteCount) {}
  func transferEnded() {}
}
