import HTTPWire

/// Makes tunnels through proxies that send the bytes of the fuzzer. The first byte chooses the proxy.
enum TunnelReading {
  static func check(_ bytes: UnsafeRawBufferPointer) {
    guard let first = bytes.first else { return }
    let rest = Array(bytes.dropFirst())
    guard first & 1 == 0 else { return checkConnect(rest) }
    let whole = socks(first, rest, pieceSize: max(1, rest.count))
    for size in [1, 3] {
      precondition(socks(first, rest, pieceSize: size) == whole, "the pieces decide what is read")
    }
  }

  private struct SOCKSRun: Equatable {
    var steps: [SOCKSHandshake.SOCKSStep] = []
    var unread: [UInt8] = []
  }

  private static func socks(_ choice: UInt8, _ bytes: [UInt8], pieceSize: Int) -> SOCKSRun {
    let kinds: [ProxyServer.Kind] = [.socks4, .socks4a, .socks5, .socks5h]
    let kind = kinds[Int(choice >> 1 & 3)]
    let address = IPAddress(.v4, bytes: [1, 2, 3, 4]).map { SOCKSHandshake.Target.address($0) }
    let target = kind == .socks4a || kind == .socks5h ? .name("a.example") : address ?? .name("a")
    let user = choice & 8 == 0 ? nil : "ann"
    guard var handshake = SOCKSHandshake(kind, user: user, password: user, target: target, port: 80) else {
      fatalError("\(kind) is not SOCKS")
    }
    var run = SOCKSRun(steps: [handshake.begin()])
    var rest = bytes[...]
    while !rest.isEmpty, run.steps.count < 6 {
      switch run.steps.last {
      case .done, .fail:
        run.unread = Array(rest)
        precondition(handshake.bytesNeeded == 0)
        return run
      default: break
      }
      precondition(handshake.bytesNeeded > 0)
      var position = 0
      let step = Array(rest.prefix(pieceSize)).withUnsafeBytes { handshake.read($0, from: &position) }
      rest = rest.dropFirst(position)
      if step != .needsMore { run.steps.append(step) }
    }
    precondition(run.steps.count < 6, "a handshake without end")
    return run
  }

  private struct ConnectRun: Equatable {
    var events: [String] = []
    var hasConnectedAgain = false
  }

  private static func checkConnect(_ bytes: [UInt8]) {
    let whole = connect(bytes, pieceSize: max(1, bytes.count))
    for size in [1, 7] {
      let pieces = connect(bytes, pieceSize: size)
      // Bytes after a response count only if they arrive with its end.
      if whole.hasConnectedAgain || pieces.hasConnectedAgain { continue }
      precondition(pieces == whole, "the pieces decide what is read")
    }
  }

  /// Runs a tunnel. The input is split at 0xFF, and each part answers one request.
  private static func connect(_ bytes: [UInt8], pieceSize: Int) -> ConnectRun {
    var tunnel = ConnectTunnel(to: Origin(scheme: "https", host: "a.example", port: nil))
    var run = ConnectRun()
    var replies = bytes.split(separator: 0xFF, omittingEmptySubsequences: false)[...]
    var rest: ArraySlice<UInt8> = []
    var requests = 0
    var step = tunnel.begin()
    while true {
      switch step {
      case .send:
        requests += 1
        precondition(requests <= 3 * (ConnectTunnel.mostRounds + 1), "a proxy that is asked for ever")
        rest += replies.popFirst() ?? []
      case .needsMore: if rest.isEmpty { step = tunnel.connectionEnded() }
      case .ask(let question):
        run.events.append("\(question.round) \(question.challenges)")
        step = tunnel.answered("Basic x", belongsToConnection: question.round.isMultiple(of: 2))
      case .restartLogin:
        run.hasConnectedAgain = true
        step = tunnel.answered("Basic x")
        continue
      case .connectAgain:
        run.hasConnectedAgain = true
        rest = []
        step = tunnel.begin()
        continue
      case .open:
        run.events.append("open \(Array(rest))")
        return run
      case .fail(let failure):
        run.events.append("\(failure)")
        return run
      }
      if case .connectAgain = step { continue }
      if case .restartLogin = step { continue }
      if case .fail = step { continue }
      let piece = Array(rest.prefix(pieceSize))
      var position = 0
      step = piece.withUnsafeBytes { tunnel.read($0, from: &position) }
      precondition(position <= piece.count)
      rest = rest.dropFirst(position)
    }
  }
}
