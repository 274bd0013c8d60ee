import HTTPWire

/// The order in which hosts with waiting requests come next. The cost of a change is logarithmic in their number.
/// Belongs to the loop's thread.
///
/// Each change of a queue that may allow it another request is followed by ``renew(_:isLimited:_:)``. A host that waits
/// for the end of one of its own requests has no place.
struct HostOrder {
  /// A queue whose first request only the limit of the session keeps waiting.
  private struct Candidate: HeapElement {
    let request: HostAdmission.Waiting
    let hostQueue: HostQueues.Queue

    func precedes(_ other: Candidate) -> Bool { request.precedes(other.request) }
  }

  /// A queue whose first request a rate allows at a time.
  private struct Release: HeapElement {
    let time: UInt64
    let hostQueue: HostQueues.Queue

    func precedes(_ other: Release) -> Bool { time < other.time }
  }

  private var candidates = BinaryHeap<Candidate>()
  private var releases = BinaryHeap<Release>()
  /// The time at which a rate allows a waiting request. The loop reads it in each turn, so it is at hand.
  private(set) var releaseTime: UInt64 = .max

  /// Whether a request waits for the limit of the session alone.
  var hasCandidate: Bool { candidates.first != nil }

  /// The numbers of entries that were looked at, and that are kept. Tests count them.
  var steps: Int { candidates.steps + releases.steps }
  var entryCount: Int { candidates.entryCount + releases.entryCount }

  /// Gives a queue its present place.
  ///
  /// - Parameter isLimited: Whether the session has a limit. Without one, a request that may be sent because time has
  ///   passed is to be released at once.
  mutating func renew(_ hostQueue: HostQueues.Queue, isLimited: Bool, _ now: UInt64) {
    let request = hostQueue.admission.candidate(now)
    if isLimited { renewCandidate(of: hostQueue, request) }
    guard hostQueue.hasRate else { return }
    renewRelease(of: hostQueue, request == nil || isLimited ? hostQueue.admission.releaseTime(now) : now)
  }

  private mutating func renewCandidate(of hostQueue: HostQueues.Queue, _ request: HostAdmission.Waiting?) {
    guard request != hostQueue.candidate?.request else { return }
    if let old = hostQueue.candidate { candidates.withdraw(old.number) }
    hostQueue.candidate = nil
    guard let request else { return }
    let number = candidates.insert(Candidate(request: request, hostQueue: hostQueue))
    hostQueue.candidate = (request, number)
  }

  private mutating func renewRelease(of hostQueue: HostQueues.Queue, _ time: UInt64) {
    guard time != hostQueue.release?.time ?? .max else { return }
    if let old = hostQueue.release { releases.withdraw(old.number) }
    hostQueue.release = nil
    if time < .max {
      hostQueue.release = (time, releases.insert(Release(time: time, hostQueue: hostQueue)))
    }
    releaseTime = releases.first?.time ?? .max
  }

  /// Returns the queue with the request that is next of all hosts, if only the limit of the session keeps it waiting.
  mutating func best(_ now: UInt64) -> HostQueues.Queue? {
    while let first = candidates.first {
      // Nothing renews a queue that has less room, because a request has left a connection that drains.
      if first.hostQueue.admission.candidate(now)?.ticket == first.request.ticket { return first.hostQueue }
      renew(first.hostQueue, isLimited: true, now)
    }
    return nil
  }

  /// Returns the queue whose time came first, if it has come. The caller changes or renews the queue.
  func due(_ now: UInt64) -> HostQueues.Queue? { releaseTime <= now ? releases.first?.hostQueue : nil }
}
