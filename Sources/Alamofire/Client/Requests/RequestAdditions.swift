import Foundation
import FoundationNetworking

/// The caller's objects that were added to a request after its creation. Most requests have none.
struct RequestAdditions: RareValue {
  static let unchanged = Rare<RequestAdditions>.Memory()

  var interceptors: [any RequestInterceptor] = []
  /// The monitors that receive the events of this request.
  var monitors: [any EventMonitor] = []
  /// The monitors that receive the events of its URL session as well.
  var transferMonitors: [any EventMonitor] = []
  var redirectHandler: (any RedirectHandler)?
  var cachedResponseHandler: (any CachedResponseHandler)?
  /// A closure that answers instead of the retrier that is being asked.
  var retryAnswer: (@Sendable () -> Void)?
}

extension Request {
  /// The monitors that receive only the events of this request.
  var ownMonitors: [any EventMonitor] { additions.withLock { $0.value.monitors } }

  /// The session's interceptor first, then the request's own, then the added ones, then ``Request/lastInterceptors``.
  var interceptorsInOrder: [any RequestInterceptor] {
    let added = additions.withLock { $0.value.interceptors }
    guard session.interceptor != nil || firstInterceptor != nil else { return added + lastInterceptors }
    return [session.interceptor, firstInterceptor].compactMap { $0 } + added + lastInterceptors
  }

  /// Adds an interceptor after all others.
  func add(_ interceptor: any RequestInterceptor) {
    additions.withLock { $0.value.interceptors.append(interceptor) }
    core.add(RequestInterests(of: interceptor))
  }

  /// The request's own interceptors as one; `nil` without any.
  var ownInterceptor: (any RequestInterceptor)? {
    let added = additions.withLock { $0.value.interceptors }
    guard !added.isEmpty else { return firstInterceptor }
    return Interceptor(interceptors: (firstInterceptor.map { [$0] } ?? []) + added)
  }
}

extension Request.State {
  init(_ state: RequestState) {
    switch state {
    case .initialized: self = .initialized
    case .resumed: self = .resumed
    case .suspended: self = .suspended
    case .cancelled: self = .cancelled
    case .finished: self = .finished
    }
  }
}

extension RequestInterests {
  /// Creates the interests of an interceptor. Compares exact types, because subclasses may do more, and because a
  /// failing cast would cost more than an adaptation.
  init(of interceptor: any RequestInterceptor) {
    self = .interceptors
    switch ObjectIdentifier(type(of: interceptor)) {
    case ObjectIdentifier(Adapter.self): insert(.adapters)
    case ObjectIdentifier(RetryPolicy.self), ObjectIdentifier(ConnectionLostRetryPolicy.self),
      ObjectIdentifier(Retrier.self):
      insert(.retriers)
    case ObjectIdentifier(Interceptor.self):
      insert(.adapters)
      if (interceptor as? Interceptor)?.retriers.isEmpty != true { insert(.retriers) }
    default: formUnion([.adapters, .retriers])
    }
  }
}
