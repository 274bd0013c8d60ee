import HTTPWire

/// A request in the queue of its host, or admitted by it.
protocol QueuedRequest: AnyObject {
  var ticket: UInt64 { get }
  var request: WireRequest? { get }
  /// The priority in the queue.
  var priority: Float { get }
  /// The queue that the request waits in or was admitted by.
  var hostQueue: HostQueues.Queue? { get set }
}
