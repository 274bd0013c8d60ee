import Glibc

extension StreamTestConnection {
  /// Connects to another port on 127.0.0.1 and forwards the bytes of both sides, as a proxy does, until both have
  /// ended.
  ///
  /// - Parameters:
  ///   - port: The port of the other server, on 127.0.0.1.
  ///   - begun: Called when the connection is made.
  public func relay(toPort port: Int, begun: () throws -> Void = {}) throws {
    let other = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard other >= 0 else { throw ServerError.system(call: "socket", code: errno) }
    defer { close(other) }
    var address = LoopbackAddress.make(port: port)
    let status = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(other, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard status == 0 else { throw ServerError.system(call: "connect", code: errno) }
    DescriptorFlags.set(on: other)
    try begun()
    let signal = stopSignal
    guard channel.tls == nil else {
      return try takeTurns(with: Channel(descriptor: other, stopSignal: signal))
    }
    let back = try ServerThread.start { [descriptor = channel.descriptor] in
      Self.copy(from: other, to: descriptor, signal)
    }
    Self.copy(from: channel.descriptor, to: other, signal)
    pthread_join(back, nil)
  }

  /// Relays both directions on one thread, because only one can use TLS. As long as one side writes without reading,
  /// the other must not do so.
  private func takeTurns(with far: Channel) throws {
    var isOpen = (near: true, far: true)
    while isOpen.near || isOpen.far {
      let isNear = try isOpen.near && (!isOpen.far || channel.isReadable(before: far))
      let (source, target) = isNear ? (channel, far) : (far, channel)
      // An end without the alert of TLS is handed on as an end.
      let bytes = (try? source.read(atMost: 65_536)) ?? []
      guard bytes.isEmpty else {
        try target.write(bytes)
        continue
      }
      target.tls?.sendClosingAlert()
      shutdown(target.descriptor, Int32(SHUT_WR))
      if isNear { isOpen.near = false } else { isOpen.far = false }
    }
  }

  private static func copy(from source: Int32, to target: Int32, _ signal: Waker) {
    let input = Channel(descriptor: source, stopSignal: signal)
    let output = Channel(descriptor: target, stopSignal: signal)
    while let bytes = try? input.read(atMost: 65_536), !bytes.isEmpty {
      guard (try? output.write(bytes)) != nil else { break }
    }
    shutdown(target, Int32(SHUT_WR))
  }
}
