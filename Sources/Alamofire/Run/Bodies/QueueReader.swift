import Foundation
import HTTPWire
import Synchronization

/// A handler of the entries of a stream.
protocol StreamHandler: AnyObject, Sendable {
  /// The member of the mailbox.
  var runEnd: RunEnd { get }
  /// The queue on which values are created; `nil` if they are created on the handler's queue.
  var decodingQueue: DispatchQueue? { get }

  /// Makes values of entries. Returns the calls with them, which the queue of the handler makes.
  func calls(with entries: [StreamEntry]) -> @Sendable () -> Void

  /// Makes the last call, on the queue of the handler.
  func complete()
}

/// Calls the handlers of a serial queue in turn for each entry of their mailbox, so that their order needs no other
/// code. A handler on a queue without an order has its own reader.
///
/// It takes all available entries, makes values of them on the decoding queue, calls the handlers on their queue, and
/// then takes more.
final class QueueReader: MailboxConsumer {
  private let queue: DispatchQueue
  /// The handlers that get entries, for the queues. One of the queues works at a time.
  private let handlers: Mutex<[any StreamHandler]>

  init(_ queue: DispatchQueue, for handler: any StreamHandler) {
    self.queue = queue
    handlers = Mutex([handler])
  }

  /// Whether handlers on `other` are ordered relative to this reader's handlers.
  func hasOrder(with other: DispatchQueue) -> Bool { queue.hasOrder(of: other) }

  func wake(_ fanout: Fanout<StreamElement>) {
    let decodingQueue = handlers.withLock { $0.lazy.compactMap(\.decodingQueue).first }
    (decodingQueue ?? queue).async { [self] in work(fanout, isDecoding: decodingQueue != nil) }
  }

  private func work(_ fanout: Fanout<StreamElement>, isDecoding: Bool) {
    let elements = fanout.take(self, atMost: 64).elements
    guard !elements.isEmpty else { return }
    if !isDecoding, let decodingQueue = elements.lazy.compactMap(\.decodingQueue).first {
      decodingQueue.async { [self] in handOut(elements, fanout, isDecoding: true) }
    } else {
      handOut(elements, fanout, isDecoding: isDecoding)
    }
  }

  private func handOut(_ elements: [StreamElement], _ fanout: Fanout<StreamElement>, isDecoding: Bool) {
    let calls = calls(with: elements)
    let handOut: @Sendable () -> Void = { [self] in
      for call in calls { call() }
      // In a new work item, so that other work of the queue can run in between.
      if fanout.finish(self) { wake(fanout) }
    }
    if isDecoding { queue.async(execute: handOut) } else { handOut() }
  }

  /// Returns the calls of the handlers in their order. Only a single handler gets several entries at once.
  private func calls(with elements: [StreamElement]) -> [@Sendable () -> Void] {
    var current = handlers.withLock { $0 }
    var calls: [@Sendable () -> Void] = []
    var together: [StreamEntry] = []
    func flush() {
      if let handler = current.first, !together.isEmpty { calls.append(handler.calls(with: together)) }
      together = []
    }
    for element in elements {
      switch element {
      case .joined(let handler):
        flush()
        current.append(handler)
      case .left(let handler):
        flush()
        current.removeAll { $0 === handler }
        calls.append { handler.complete() }
      case .entry(let entry):
        guard current.count > 1 else {
          together.append(entry)
          continue
        }
        for part in entry.parts { calls += current.map { $0.calls(with: [part]) } }
      }
    }
    flush()
    handlers.withLock { $0 = current }
    return calls
  }
}

extension StreamEntry {
  /// The entry for several handlers, of which each has an event before the next one has it.
  fileprivate var parts: [StreamEntry] {
    guard case .events(let events) = self else { return [self] }
    return events.map { .events([$0]) }
  }
}

extension StreamElement {
  /// The queue on which a handler that joins makes its values.
  fileprivate var decodingQueue: DispatchQueue? {
    guard case .joined(let handler) = self else { return nil }
    return handler.decodingQueue
  }
}

extension DispatchQueue {
  /// Whether both are the same serial queue, so that their calls have an order. The system's queues are concurrent.
  fileprivate func hasOrder(of other: DispatchQueue) -> Bool {
    // Foundation makes a new object for the main queue and the global ones at each access.
    if label.hasPrefix("com.apple.root.") { return false }
    return self === other || (label == Self.mainLabel && other.label == Self.mainLabel)
  }

  private static let mainLabel = DispatchQueue.main.label
}
