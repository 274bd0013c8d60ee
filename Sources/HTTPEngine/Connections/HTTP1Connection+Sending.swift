import FoundationEssentials
import HTTPSystem
import HTTPWire

// The request on its connection.
extension HTTP1Connection {
  private var hasOutput: Bool { outputStart < output.count }

  /// Writes as much of the request as the connection and the exchange allow.
  func write() {
    if let exchange { write(for: exchange) }
  }

  private func write(for exchange: Exchange) {
    var steps = 0
    while carries(exchange), outgoing.failure == nil, !exchange.flow.isSuspended {
      guard steps < Self.mostSteps else { return continueLater() }
      steps += 1
      guard hasOutput ? writeOutput(of: exchange) : writeContent(of: exchange) else { return }
    }
  }

  /// Returns whether there may be more to write.
  private func writeOutput(of exchange: Exchange) -> Bool {
    let step = output.withUnsafeBytes { transmit(UnsafeRawBufferPointer(rebasing: $0[outputStart...])) }
    guard let count = moved(step) else { return false }
    outputStart += count
    if count > 0 { exchange.noteActivity() }
    guard !hasOutput else { return true }
    outputSent(of: exchange)
    return true
  }

  /// Returns the number of bytes of a step; `nil` if the connection takes none now.
  private func moved(_ step: PipeStep) -> Int? {
    switch step {
    case .moved(let count):
      outgoing.hasBegun = outgoing.hasBegun || count > 0
      return count
    case .waitsToRead, .waitsToWrite: return nil
    // The next read says so, too.
    case .undecided, .asksForIdentity: continueLater()
    case .ended: writingFailed(nil)
    case .failed(let failure): writingFailed(failure)
    }
    return nil
  }

  /// Notes that the connection accepts no more bytes. The server may have answered before, so reading continues.
  private func writingFailed(_ failure: TransportFailure?) {
    let host = exchange?.hostName ?? "the host"
    outgoing.failure =
      failure
      ?? TransportFailure(.connectionLost, "The connection to \(host) broke while the request was sent.")
    dropOutput()
    act(on: machine?.handle(.sendFailed) ?? .none)
  }

  /// Notes that the system has accepted the output: the head, or a piece of the content.
  private func outputSent(of exchange: Exchange) {
    if outgoing.headSize > 0 { headSent(of: exchange) }
    dropOutput()
    if outgoing.isComplete, isSendingContent { contentSent(of: exchange) }
  }

  private func headSent(of exchange: Exchange) {
    let size = outgoing.headSize
    outgoing.headSize = 0
    if exchange.isObserved, let observer = exchange.request?.wireObserver {
      exchange.sentHead = Array(output.prefix(size))
      output.withUnsafeBytes { bytes in
        observer.bytesMoved(.requestHead, UnsafeRawBufferPointer(rebasing: bytes[..<size]))
        let content = UnsafeRawBufferPointer(rebasing: bytes[size...])
        if !content.isEmpty { observer.bytesMoved(.requestBody, content) }
      }
    }
    act(on: machine?.handle(.headSent) ?? .none)
    if outgoing.inlined > 0 {
      exchange.contentSent(outgoing.inlined)
      outgoing.isComplete = true
    } else if hasSentAll {
      exchange.times.requestEnd = Clock.now()
      exchange.noteTime { $0.requestSent($1) }
    }
  }

  private func contentSent(of exchange: Exchange) {
    exchange.times.requestEnd = Clock.now()
    exchange.noteTime { $0.bodyEnded($1) }
    act(on: machine?.handle(.contentSent) ?? .none)
  }

  // MARK: Content

  var isSendingContent: Bool { if case .content? = machine?.sending { true } else { false } }
  var hasSentAll: Bool { if case .done? = machine?.sending { true } else { false } }

  /// Sends the next piece of the content. Returns whether there may be more to write.
  private func writeContent(of exchange: Exchange) -> Bool {
    guard isSendingContent, !outgoing.isComplete else { return false }
    if !outgoing.isChunked, exchange.bandwidth == nil, case .bytes(let data)? = exchange.request?.body {
      return write(data, of: exchange)
    }
    if !outgoing.isChunked, !outgoing.readsFile, tls == nil, let file = exchange.fileToSend {
      return write(file, of: exchange)
    }
    // The bytes that the system does not take have to be copied.
    let room = UnsafeMutableRawBufferPointer(rebasing: table.writeRoom.prefix(Self.largestPiece))
    // There is space for the framing of a chunk around the piece.
    let start = RequestChunks.longestSizeLine
    switch exchange.nextContent(into: UnsafeMutableRawBufferPointer(rebasing: room[start...].dropLast(2))) {
    case .bytes(let count):
      write(count, at: start, in: room, of: exchange)
      return outgoing.failure == nil
    case .wait:
      exchange.alignPhaseTimer()
      return false
    case .end(let trailers): return endContent(of: exchange, trailers)
    case .fail(let failure):
      fail(failure)
      return false
    }
  }

  /// Sends content that is in memory, without a copy of it.
  private func write(_ data: Data, of exchange: Exchange) -> Bool {
    let offset = Int(clamping: exchange.count.sent)
    guard offset < data.count else { return endContent(of: exchange) }
    let end = min(data.count, offset + LoopExchanges.chunk)
    let count = data.withUnsafeBytes { bytes -> Int? in
      let piece = UnsafeRawBufferPointer(rebasing: bytes[offset..<end])
      guard let count = moved(transmit(piece)) else { return nil }
      observe(UnsafeRawBufferPointer(rebasing: piece.prefix(count)), of: exchange)
      return count
    }
    guard let count else { return false }
    exchange.contentSent(count)
    return true
  }

  /// Sends the next bytes of a file from the memory of the system.
  private func write(_ file: FileSource, of exchange: Exchange) -> Bool {
    var step: PipeStep?
    let count = file.send(LoopExchanges.chunk) { descriptor, count in
      step = pipe.write(count, ofFile: descriptor)
      if case .moved(let count)? = step { return count }
      return 0
    }
    guard let count, let step else {
      outgoing.readsFile = true
      return true
    }
    guard moved(step) != nil else { return false }
    exchange.hasReadSource = true
    exchange.contentSent(count)
    return true
  }

  /// Sends a piece that is in the shared buffer. What the system does not take is copied.
  private func write(
    _ count: Int, at start: Int, in room: UnsafeMutableRawBufferPointer, of exchange: Exchange
  ) {
    var (begin, end) = (start, start + count)
    if outgoing.isChunked {
      begin = RequestChunks.writeSizeLine(of: count, before: start, in: room)
      room[end] = 0x0D
      room[end + 1] = 0x0A
      end += 2
    }
    let piece = UnsafeRawBufferPointer(rebasing: room[begin..<end])
    observe(piece, of: exchange)
    let taken = moved(transmit(piece)) ?? 0
    guard outgoing.failure == nil else { return }
    if taken < piece.count { output.append(contentsOf: piece[taken...]) }
    exchange.contentSent(count)
  }

  private func endContent(of exchange: Exchange, _ trailers: [HTTPHeader] = []) -> Bool {
    outgoing.isComplete = true
    if outgoing.isChunked, let request = exchange.request {
      let start = output.count
      do throws(RequestHeadViolation) {
        try RequestChunks.appendEnd(trailers: trailers, to: &output)
      } catch {
        fail(Self.failure(error, of: request))
        return false
      }
      let middle = trailers.isEmpty ? output.count : start + RequestChunks.lastChunk.utf8CodeUnitCount
      output.withUnsafeBytes { bytes in
        observe(UnsafeRawBufferPointer(rebasing: bytes[start..<middle]), of: exchange)
        observe(UnsafeRawBufferPointer(rebasing: bytes[middle...]), as: .requestHead, of: exchange)
      }
    }
    if !hasOutput { contentSent(of: exchange) }
    return hasOutput
  }

  private func observe(
    _ bytes: UnsafeRawBufferPointer, as part: WirePart = .requestBody, of exchange: Exchange
  ) {
    guard !bytes.isEmpty else { return }
    exchange.request?.wireObserver?.bytesMoved(part, bytes)
  }
}
