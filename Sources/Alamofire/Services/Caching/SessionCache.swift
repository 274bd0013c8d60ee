import Foundation
package import FoundationNetworking
import HTTPSystem
package import HTTPWire
import Synchronization

/// The cache of a session. It does not know requests, delegates, tasks or cookies.
package final class SessionCache: Sendable {
  /// `nil` without a cache.
  package let store: (any ResponseStore)?
  /// Whether there is a cache.
  let isThere: Bool
  /// The policy of requests that have the default policy.
  private let policy: URLRequest.CachePolicy
  /// Identifies the session in the keys of responses that belong only to it.
  private let number: UInt64
  /// The responses that are being revalidated.
  private let refreshing = Mutex<Set<CacheKey>>([])

  /// The number of the last cache of a session.
  private static let lastNumber = Atomic<UInt64>(0)

  package init(_ configuration: URLSessionConfiguration) {
    store = Self.store(of: configuration.urlCache)
    isThere = store != nil
    policy = configuration.requestCachePolicy
    number = Self.lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
  }

  private static func store(of cache: URLCache?) -> (any ResponseStore)? {
    guard let cache = inPlace(of: cache) ?? cache else { return nil }
    return cache as? HTTPCache ?? URLCacheStorage(cache: cache)
  }

  /// Returns the cache that replaces Foundation's shared one. A subclass that was set as the shared cache is used
  /// itself.
  static func inPlace(of cache: URLCache?) -> URLCache? {
    guard let cache, cache === URLCache.shared, type(of: cache) == URLCache.self else { return nil }
    return HTTPCache.default
  }

  /// Whether a response may be stored for a request. Reads memory only.
  func mayHold(_ request: WireRequest) -> Bool {
    store?.mayHold(CacheKey.hash(of: request.url, request.origin)) == true
  }

  /// Returns the key of the responses to a request.
  func key(of request: WireRequest) -> CacheKey {
    CacheKey(request.url, request.origin, partition: partition(of: request.profile))
  }

  private func partition(of profile: ConnectionProfile) -> String {
    profile.isUsual ? "" : "\(number).\(profile.cachePartition)"
  }

  /// Begins to revalidate a response in the background. Returns false if that is under way already.
  func beginRefreshing(_ key: CacheKey) -> Bool { refreshing.withLock { $0.insert(key).inserted } }

  func endRefreshing(_ key: CacheKey) {
    refreshing.withLock { keys in
      _ = keys.remove(key)
    }
  }

  /// Returns the policy of a request: its own, unless that is the default one, otherwise the session's.
  func policy(of request: URLRequest) -> URLRequest.CachePolicy {
    request.cachePolicy == .useProtocolCachePolicy ? policy : request.cachePolicy
  }
}

/// A response to store, if the observers of the request allow it.
struct CacheCandidate: Sendable {
  /// The key under which the response is stored.
  let key: CacheKey
  let request: WireRequest
  let head: ResponseHead
  let body: Data
  let requestTime: Int64
  let responseTime: Int64
  /// The number of removals from the cache at the time when the request was sent.
  let removalCount: UInt64
}

extension SessionCache {
  /// Invalidates the responses that are on their way for the target of an unsafe request, if this is all that its
  /// response invalidates. Returns false if ``update(with:asksFirst:)`` has to be called: something is stored there, or
  /// the response names other resources.
  func invalidate(by request: WireRequest, _ head: ResponseHead) -> Bool {
    guard let store, !head.block.contains("Location"), !head.block.contains("Content-Location") else {
      return false
    }
    return store.noteRemoval(of: CacheKey.hash(of: request.url, request.origin))
  }

  /// Returns the work that invalidates stored responses because of the head of a response to an unsafe request; `nil`
  /// if there is nothing to wait for.
  func invalidation(by request: WireRequest, _ head: ResponseHead) -> (@Sendable () -> Void)? {
    guard let store, head.role.isHop, !request.isSafe, (200..<400).contains(head.status),
      !invalidate(by: request, head)
    else { return nil }
    let now = store.now
    let candidate = CacheCandidate(
      key: key(of: request), request: request, head: head, body: Data(), requestTime: now, responseTime: now,
      removalCount: store.removalCount)
    return { [self] in _ = update(with: candidate, asksFirst: false) }
  }

  /// Invalidates stored responses because of the head of a response to an unsafe request, before its body is received.
  /// The end of the body invalidates them once more.
  ///
  /// - Parameter hasEnded: Whether the end has come, so that later responses may be stored.
  func invalidateEarly(
    by request: WireRequest, _ head: ResponseHead, unless hasEnded: @escaping @Sendable () -> Bool
  ) {
    guard let store, let invalidation = invalidation(by: request, head) else { return }
    // A store that is not open yet, or calls code of a user, would block the loop's thread. A removal reads no file.
    guard store.waits else { return invalidation() }
    Task(executorPreference: globalConcurrentExecutor) {
      if !hasEnded() { invalidation() }
    }
  }

  /// Stores a response, or invalidates stored ones, as RFC 9111 says. Returns whether it is to be stored once observers
  /// have been asked.
  ///
  /// - Parameter asksFirst: Whether observers decide about storing.
  func update(with candidate: CacheCandidate, asksFirst asks: Bool) -> Bool {
    guard let store else { return false }
    let (request, key) = (candidate.request, candidate.key)
    guard Invalidation.isSafe(request.method) else {
      let named = Invalidation.keys(
        method: request.method, url: request.url, origin: request.origin, head: candidate.head)
      // The request has changed the resource, whatever identity or trust store other requests for it have.
      for key in named { store.remove(key, inAllPartitions: true) }
      return false
    }
    if request.method == "HEAD" || candidate.head.status == 304 {
      update(key, by: candidate)
      return false
    }
    if StorageRules.mayStore(method: request.method, fields: request.fields, head: candidate.head) {
      // A part is combined with others, which delegates and handlers do not expect.
      if candidate.head.status == 206 { return asks ? false : storePart(candidate) }
      if !asks { storeWhole(candidate) }
      return asks
    }
    // The stored response is older than this one, which must not be stored. A partial response says nothing about the
    // whole.
    let replaces = (200..<300).contains(candidate.head.status) && !request.fields.contains("Range")
    if replaces || candidate.head.status == 404 || candidate.head.status == 410 { store.remove(key) }
    return false
  }

  /// Updates a stored response with the response to a HEAD request, or to a conditional request from the caller (RFC
  /// 9111 §4.3.4, §4.3.5).
  private func update(_ key: CacheKey, by candidate: CacheCandidate) {
    let fields = FieldDigests(of: candidate.request.fields)
    guard let store,
      let stored = CacheDecision.choice(
        of: store.read(key, choosing: { CacheDecision.choice(of: $0, for: fields) }), for: fields)
    else { return }
    if candidate.head.status == 304 {
      guard candidate.head.block.contains("ETag") || candidate.head.block.contains("Last-Modified"),
        Validation.confirms(candidate.head, stored)
      else { return }
      store.putConfirmed(
        Validation.freshened(
          stored, by: candidate.head, fields: FieldDigests(of: candidate.request.fields),
          requestTime: candidate.requestTime,
          responseTime: candidate.responseTime), replacing: stored, by: candidate.request,
        askedAfter: candidate.removalCount)
    } else if Self.concernsStored(candidate, stored.head.status) {
      let updated = Validation.updated(
        stored, byHead: candidate.head, fields: FieldDigests(of: candidate.request.fields),
        requestTime: candidate.requestTime,
        responseTime: candidate.responseTime)
      guard let updated else { return store.remove(key) }
      store.putConfirmed(
        updated, replacing: stored, by: candidate.request, askedAfter: candidate.removalCount)
    }
  }

  /// Whether the response to a HEAD says something about the stored response of a GET. A server that refuses the HEAD
  /// may still answer a GET, and so the same statuses as after a GET leave the stored response.
  private static func concernsStored(_ candidate: CacheCandidate, _ storedStatus: Int) -> Bool {
    let status = candidate.head.status
    guard status < 500, !StorageRules.concernsRequest(status, candidate.request.fields) else { return false }
    return (200..<300).contains(status) || status == 404 || status == 410 || status == storedStatus
  }

  private func storeWhole(_ candidate: CacheCandidate) {
    store?.put(candidate.stored, replacing: nil, askedAfter: candidate.removalCount)
  }

  /// Stores a partial response, combined with stored parts of the same version (RFC 9111 §3.4). Returns false.
  private func storePart(_ candidate: CacheCandidate) -> Bool {
    let part = candidate.stored
    guard let store,
      let stored = PartialContent.combined(
        part, with: store.read(part.key) { $0.first { $0.selection == part.selection } })
    else { return false }
    store.putConfirmed(
      stored, replacing: nil, by: candidate.request, askedAfter: candidate.removalCount)
    return false
  }

  /// Stores the decision of an observer about a candidate. If it is `nil`, an older response is removed.
  func store(_ answer: CachedURLResponse?, as candidate: CacheCandidate, head: ResponseHead?) {
    let key = candidate.key
    let stored = answer.flatMap { answer in
      StoredResponse(
        answer, key: key, fields: candidate.request.fields, head: head, requestTime: candidate.requestTime,
        responseTime: candidate.responseTime, staysInMemory: !candidate.request.profile.isUsual)
    }
    if let stored {
      store?.put(stored, replacing: nil, askedAfter: candidate.removalCount)
    } else {
      store?.remove(key)
    }
  }

  /// Revalidates a response after it was used (RFC 5861 §3): once at a time, in the background.
  ///
  /// - Parameters:
  ///   - transport: Sends the request.
  ///   - executor: Runs the task; `nil` is the pool.
  ///   - takeCookies: Receives the head.
  func refresh(
    _ stored: StoredResponse, by request: WireRequest, _ conditions: [HTTPHeader],
    through transport: any Transport, on executor: (any TaskExecutor)?,
    takeCookies: @escaping @Sendable (ResponseHead) -> Void
  ) {
    guard let store, beginRefreshing(stored.key) else { return }
    let removalCount = store.removalCount
    let run: @Sendable () async -> Void = { [self] in
      defer { endRefreshing(stored.key) }
      // Collected in memory, because the sink of the request takes the stored response.
      let again = request.collecting(adding: conditions)
      guard let response = try? await transport.send(again, observer: SilentObserver(takeCookies)) else {
        return
      }
      let now = store.now
      // A response that may be replaced by the stored one is not stored instead of it (RFC 5861 §4).
      guard !CacheDecision.mayServeInstead(stored, of: response.head.status, fields: request.fields, now: now)
      else { return }
      let candidate = CacheCandidate(
        key: stored.key, request: request, head: response.head, body: response.body ?? Data(),
        requestTime: response.requestTime(now), responseTime: now, removalCount: removalCount)
      await withTaskExecutorPreference(globalConcurrentExecutor) {
        update(with: candidate, refreshing: stored, isConditional: !conditions.isEmpty)
      }
    }
    Task(executorPreference: executor, operation: run)
  }

  private func update(with candidate: CacheCandidate, refreshing stored: StoredResponse, isConditional: Bool)
  {
    guard candidate.head.status == 304, isConditional else {
      _ = update(with: candidate, asksFirst: false)
      return
    }
    guard Validation.confirms(candidate.head, stored) else {
      store?.remove(stored.key)
      return
    }
    store?.putConfirmed(
      Validation.freshened(
        stored, by: candidate.head, fields: FieldDigests(of: candidate.request.fields),
        requestTime: candidate.requestTime,
        responseTime: candidate.responseTime), replacing: stored, by: candidate.request,
      askedAfter: candidate.removalCount)
  }
}

extension CacheCandidate {
  /// The response to store.
  fileprivate var stored: StoredResponse {
    StoredResponse(
      key: key, fields: FieldDigests(of: request.fields), head: head, body: body, requestTime: requestTime,
      responseTime: responseTime, staysInMemory: !request.profile.isUsual)
  }
}

/// The storage of a session for responses.
package protocol ResponseStore: AnyObject, Sendable {
  /// Seconds since 1970.
  var now: Int64 { get }
  /// Whether there may be a response for a URL with this hash; fast, and true if the store is not open yet. The hash is
  /// not computed if the store is empty.
  func mayHold(_ hash: @autoclosure () -> UInt64) -> Bool
  /// Returns the responses for a URL if this takes no waiting; `nil` if ``read(_:choosing:)`` has to be called.
  func find(_ key: CacheKey) -> [StoredResponse]?
  /// Returns the responses for a URL; all but the one that `choose` returns may lack their bodies. May wait for a disk.
  func read(_ key: CacheKey, choosing choose: ([StoredResponse]) -> StoredResponse?) -> [StoredResponse]
  /// The number of removals so far; a request notes it when it begins.
  var removalCount: UInt64 { get }
  /// Stores a response, replacing an equivalent one, unless something was removed for its URL after removal number
  /// `removals`. Fast if ``waits`` is false.
  ///
  /// - Parameter old: The response before the server updated it. It is dropped if it depends on other fields.
  func put(_ stored: StoredResponse, replacing old: StoredResponse?, askedAfter removals: UInt64)
  /// Counts a removal of all responses for a URL with this hash, so that none that is on its way is stored. Returns
  /// false, and has no effect, if ``remove(_:)`` has to be called, because there may be such a response. Fast.
  func noteRemoval(of hash: UInt64) -> Bool
  /// Removes all responses for a URL. Fast if ``waits`` is false.
  ///
  /// - Parameter inAllPartitions: Whether the partition of the key does not count.
  func remove(_ key: CacheKey, inAllPartitions: Bool)
  /// Whether ``put(_:replacing:askedAfter:)`` and ``remove(_:)`` may list a folder, or run code of a user.
  var waits: Bool { get }
}

extension ResponseStore {
  /// Removes all responses for a URL in the partition of the key. Fast if ``waits`` is false.
  func remove(_ key: CacheKey) { remove(key, inAllPartitions: false) }

  /// Stores a response that a server has validated, unless its updated fields forbid it. Each validation may add
  /// fields, so the response is removed when they exceed the limit of the request for a header.
  ///
  /// - Parameter old: The response before the update.
  func putConfirmed(
    _ stored: StoredResponse, replacing old: StoredResponse?, by request: WireRequest,
    askedAfter removals: UInt64
  ) {
    let isForbidden = stored.control.noStore && !stored.control.mustUnderstand
    if isForbidden || !request.accepts(stored.head) {
      remove(stored.key)
    } else {
      put(stored, replacing: old, askedAfter: removals)
    }
  }
}

extension WireRequest {
  /// Whether a stored head is within the limits for heads of responses.
  fileprivate func accepts(_ head: ResponseHead) -> Bool {
    head.block.bytes.count <= profile.options.headerSizeLimit && Selection.isShort(for: head)
  }
}

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
    let control = LocalTransferControl(deadline: deadline, request.profile.options.timeLimits)
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
