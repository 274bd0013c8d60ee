import Foundation
import HTTPWire

/// Serves `file:` (RFC 8089) and `data:` (RFC 2397) URLs. The content is delivered in chunks, to memory or to the
/// request's sink. Reads alone; method and header fields mean nothing.
struct LocalTransport: Transport {
  private static let chunk = 131_072

  nonisolated(nonsending) func send(
    _ request: WireRequest, observer: any TransferObserver
  ) async throws(TransportFailure) -> WireResponse {
    // A disk may be slow: not on the engine's thread.
    try await withTaskExecutorPreference(globalConcurrentExecutor) { await Self.outcome(request, observer) }
      .get()
  }

  private static func outcome(_ request: WireRequest, _ observer: any TransferObserver) async
    -> Result<WireResponse, TransportFailure>
  {
    let control = LocalTransferControl()
    defer { observer.transferEnded() }
    return await withTaskCancellationHandler {
      do throws(TransportFailure) {
        switch observer.transferBegan(control) {
        case .go: break
        case .hold: control.suspend()
        case .refuse: control.cancel()
        }
        return .success(try await serve(request, observer, control))
      } catch {
        return .failure(error)
      }
    } onCancel: {
      control.cancel()
    }
  }

  private static func serve(
    _ request: WireRequest, _ observer: any TransferObserver, _ control: LocalTransferControl
  ) async throws(TransportFailure) -> WireResponse {
    try await control.pass()
    guard !request.body.isPresent else {
      throw TransportFailure(
        .unsupportedURL, "Nothing can be sent to a \(request.origin.scheme): URL; it can only be read.")
    }
    let content = try LocalContent(request.url)
    let openings = control.resumptions
    if observer.headReceived(content.head) == .hold { control.suspend(unlessResumedSince: openings) }
    if let failure = request.sink?.begin(content.head, wake: { control.hasRoom() }) { throw failure }
    let moved: Result<Data, TransportFailure>
    do throws(TransportFailure) {
      moved = .success(try await move(content, of: request, observer, control))
    } catch {
      moved = .failure(error)
    }
    let failure = request.sink?.finish()
    let body = try moved.get()
    if let failure { throw failure }
    return WireResponse(head: content.head, body: body.isEmpty ? nil : body, metrics: TransferMetrics())
  }

  /// Hands on all bytes. Returns them when there is no sink.
  private static func move(
    _ content: LocalContent, of request: WireRequest, _ observer: any TransferObserver,
    _ control: LocalTransferControl
  ) async throws(TransportFailure) -> Data {
    var body = Data()
    var count = ByteCount()
    count.expectedToReceive = content.expectedLength
    let limit = request.profile.options.bodySizeLimit
    var reader = try content.reader()
    while true {
      try await control.pass()
      let bytes = try reader.next(chunk)
      guard !bytes.isEmpty else { return body }
      if let sink = request.sink {
        try await control.give(bytes, to: sink)
      } else {
        body.append(bytes)
      }
      count.received += Int64(bytes.count)
      if let limit, count.received > limit { throw .tooLarge(limit) }
      observer.bytesMoved(count)
    }
  }
}
