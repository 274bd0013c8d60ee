import FoundationEssentials
package import HTTPWire

extension CurlTransport: ByteStreamTransport {
  package func stream(
    _ request: WireRequest, isSecure: Bool, watcher: any ByteStreamWatcher
  ) -> any ByteStream {
    LoopStream(StreamLink(request, isSecure: isSecure, transport: self, watcher: watcher))
  }
}

/// A stream whose operations are posted to the loop that it belongs to.
private struct LoopStream: ByteStream {
  private let link: StreamLink

  init(_ link: StreamLink) { self.link = link }

  func resume() { post { $0.resume($1) } }
  func suspend() { post { link, _ in link.suspend() } }

  func read(
    least: Int, most: Int, timeout: Duration?, _ completion: @escaping ByteStreamCompletion<StreamedBytes>
  ) -> ByteStreamFlow.Number {
    let number = link.loop.nextTicket()
    post { $0.read(number, least: least, most: most, timeout: timeout, completion, $1) }
    return number
  }

  func write(_ data: Data, timeout: Duration?, _ completion: @escaping ByteStreamCompletion<Void>)
    -> ByteStreamFlow.Number
  {
    let number = link.loop.nextTicket()
    post { $0.write(number, data, timeout: timeout, completion, $1) }
    return number
  }

  func secure(_ completion: @escaping ByteStreamCompletion<Void>) -> ByteStreamFlow.Number {
    let number = link.loop.nextTicket()
    post { $0.secure(number, completion, $1) }
    return number
  }

  func withdraw(_ number: Number) { post { link, _ in link.withdraw(number) } }
  func closeReading() { post { link, _ in link.closeReading() } }
  func closeWriting() { post { link, _ in link.closeWriting() } }
  func close() { post { link, _ in link.close() } }
  func cancel() { post { link, _ in link.cancel() } }

  private func post(_ body: @escaping @Sendable (StreamLink, LoopCore) -> Void) {
    link.loop.post(.run { [link] core in body(link, core) })
  }
}
