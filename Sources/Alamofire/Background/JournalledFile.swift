import Foundation
import HTTPWire
import Synchronization

/// The file of a background download: tells the transfer of the head and of the written bytes.
final class JournalledFile: FileBodySink {
  private let file: any FileBodySink
  private let transfer: BackgroundTransfer

  init(_ file: any FileBodySink, _ transfer: BackgroundTransfer) {
    self.file = file
    self.transfer = transfer
  }

  var path: String { file.path }
  var size: Int64 { file.size }
  func flush() -> Int64? { file.flush() }

  func begin(_ head: ResponseHead, wake: @escaping @Sendable () -> Void) -> TransportFailure? {
    transfer.begin(head) { (file.begin(head, wake: wake), file.size) }
  }

  func receive(_ bytes: UnsafeRawBufferPointer) -> BodyReception {
    transfer.write { (file.receive(bytes), file.size) }
  }

  func finish() -> TransportFailure? { file.finish() }
}

/// The body of a background upload, or a part of it: tells the transfer before the last bytes are handed out. Until
/// then the server cannot have received the whole upload.
final class JournalledBody: BodySource {
  private let source: any BodySource
  private let transfer: BackgroundTransfer
  /// Whether the last bytes are those of the upload.
  private let isEnd: Bool
  private let rest: Atomic<Int64>

  init(_ source: any BodySource, _ transfer: BackgroundTransfer, isEnd: Bool = true) {
    self.source = source
    self.transfer = transfer
    self.isEnd = isEnd
    rest = Atomic(source.length)
  }

  var length: Int64 { source.length }
  var isRepeatable: Bool { source.isRepeatable }
  var isStored: Bool { source.isStored }

  func start(wake: @escaping @Sendable () -> Void) -> TransportFailure? {
    rest.store(length, ordering: .relaxed)
    do throws(AFError) {
      if length <= 0, isEnd { try transfer.noteSent() }
    } catch {
      return TransportFailure(.cannotCreateFile, error.underlyingError?.localizedDescription ?? "")
    }
    return source.start(wake: wake)
  }

  func read(into room: UnsafeMutableRawBufferPointer) -> BodyReading {
    transfer.read {
      let reading = source.read(into: room)
      guard case .bytes(let count) = reading else { return (reading, false) }
      let left = rest.subtract(Int64(count), ordering: .relaxed).newValue
      return (reading, isEnd && left <= 0)
    }
  }

  func stop() { source.stop() }
}

/// Answers a request from the journal of its transfer, which an earlier process completed.
struct StoredResponseTransport: Transport {
  let head: ResponseHead
  let body: Data?

  init(head: ResponseHead, body: Data?) {
    var head = head
    head.role = .answer
    self.head = head
    self.body = body
  }

  nonisolated(nonsending) func send(
    _ request: WireRequest, observer: any TransferObserver
  ) async throws(TransportFailure) -> WireResponse {
    let control = LocalTransferControl()
    defer { observer.transferEnded() }
    switch observer.transferBegan(control) {
    case .go: break
    case .hold: control.suspend()
    case .refuse: control.cancel()
    }
    try await control.pass()
    let openings = control.resumptions
    if observer.headReceived(head) == .hold { control.suspend(unlessResumedSince: openings) }
    try await control.pass()
    return WireResponse(head: head, body: body, metrics: TransferMetrics())
  }
}
