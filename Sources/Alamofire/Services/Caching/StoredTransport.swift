import Foundation
import HTTPSystem
import HTTPWire
import Synchronization

/// Delivers a stored response to the observer of a request, as a transfer would.
struct StoredTransport: AsyncTransport {
  private static let chunk = 131_072

  let answer: StoredAnswer
  /// Takes the body of a download or a stream; `nil` hands it over with the response.
  var sink: (any BodySink)?

  func response(
    to request: WireRequest, observer: any TransferObserver
  ) async throws(TransportFailure) -> WireResponse {
    var times = TransferMetrics.Values()
    times.start = Date().timeIntervalSince1970
    let begin = ContinuousClock.now
    // A response that is served because the server took too long may still have to be decided about, but not for ever.
    let deadline = request.deadline.map { $0 > .now ? $0 : .now + (request.idleTimeout ?? .seconds(60)) }
    let control = LocalTransferControl(deadline: deadline)
    defer { observer.transferEnded() }
    control.begin(observer.transferBegan(control))
    try await control.pass()
    times.responseStart = Self.microseconds(since: begin)
    let openings = control.resumptions
    let disposition = observer.headReceived(answer.head)
    if disposition == .hold { control.suspend(unlessResumedSince: openings) }
    try await control.pass()
    if let sink, disposition != .discard {
      try await Self.give(answer.body, answer.head, to: sink, observer, control)
    } else if !answer.body.isEmpty {
      observer.bytesMoved(Self.count(answer.body.count, of: answer.body))
      // Observers of the count may suspend or cancel.
      try await control.pass()
    }
    times.end = Self.microseconds(since: begin)
    if disposition != .discard { times.decodedBodyBytes = Int64(answer.body.count) }
    let isTaken = sink != nil || disposition == .discard
    return WireResponse(
      head: answer.head, body: isTaken || answer.body.isEmpty ? nil : answer.body,
      metrics: TransferMetrics(values: times, version: answer.head.version))
  }

  private static func outcome(
    _ body: () async throws(TransportFailure) -> Void
  ) async -> Result<Void, TransportFailure> {
    do throws(TransportFailure) {
      return .success(try await body())
    } catch {
      return .failure(error)
    }
  }

  /// Hands the body over chunk by chunk, as fast as the sink accepts it.
  private static func give(
    _ body: Data, _ head: ResponseHead, to sink: any BodySink, _ observer: any TransferObserver,
    _ control: LocalTransferControl
  ) async throws(TransportFailure) {
    if let failure = sink.begin(head, wake: { control.hasRoom() }) { throw failure }
    let given = await outcome { () async throws(TransportFailure) in
      var rest = body
      while !rest.isEmpty {
        try await control.pass()
        try await control.give(rest.prefix(chunk), to: sink)
        rest = rest.dropFirst(chunk)
        observer.bytesMoved(count(body.count - rest.count, of: body))
      }
      try await control.pass()
    }
    let failure = sink.finish()
    try given.get()
    if let failure { throw failure }
  }

  private static func count(_ received: Int, of body: Data) -> ByteCount {
    var count = ByteCount()
    count.received = Int64(received)
    count.expectedToReceive = Int64(body.count)
    return count
  }

  private static func microseconds(since begin: ContinuousClock.Instant) -> Int64 {
    let passed = (ContinuousClock.now - begin).components
    return passed.seconds * 1_000_000 + passed.attoseconds / 1_000_000_000_000
  }
}

/// The observer of a revalidation in the background, which stores only cookies.
final class SilentObserver: TransferObserver {
  private let takeCookies: @Sendable (ResponseHead) -> Void

  init(_ takeCookies: @escaping @Sendable (ResponseHead) -> Void) { self.takeCookies = takeCookies }

  func transferBegan(_ control: any TransferControl) -> TransferStart { .go }

  func headReceived(_ head: ResponseHead) -> HeadDisposition {
    takeCookies(head)
    return .proceed
  }

  func bytesMoved(_ count: ByteCount) {}
  func transferEnded() {}
}
