import Alamofire

/// The question to a retrier about a failed attempt. It is open until the next attempt begins or the request ends.
///
/// A retrier may answer late, when the core no longer waits for it. Such an answer must not take a place in the queue
/// of retries, because nothing would leave it again.
struct RetryQuestion {
  private var ticket: RetryQueue.Ticket?
  private var isAnswered = false
  /// The retry whose adapter runs. It keeps its place in the queue until the adapter has returned.
  private var adapted: RetryQueue.Ticket?

  /// Opens a question. Nothing may be left of an earlier one.
  mutating func open(_ ticket: RetryQueue.Ticket) { (self.ticket, isAnswered) = (ticket, false) }

  /// Whether a question is open, answered or not.
  func isOpen(_ ticket: RetryQueue.Ticket) -> Bool { self.ticket == ticket }

  /// Whether a retry needs its place in the queue: its question is open, or its adapter runs.
  func needsPlace(_ ticket: RetryQueue.Ticket) -> Bool { isOpen(ticket) || adapted == ticket }

  /// Notes the answer. Returns whether it is the first, and the question still open.
  mutating func answer(_ ticket: RetryQueue.Ticket) -> Bool {
    guard isOpen(ticket), !isAnswered else { return false }
    isAnswered = true
    return true
  }

  /// Closes the question. Returns its ticket, which may have a place in the queue.
  mutating func close() -> RetryQueue.Ticket? {
    defer { (ticket, isAnswered) = (nil, false) }
    return ticket
  }

  /// Closes the question because the adapter begins. Returns its ticket, whose place the adapter needs.
  mutating func beginAdapting() -> RetryQueue.Ticket? {
    adapted = close()
    return adapted
  }

  /// Notes that the adapter has returned.
  mutating func endAdapting() { adapted = nil }
}
