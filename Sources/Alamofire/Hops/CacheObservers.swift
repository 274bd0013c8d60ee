import HTTPWire
import Synchronization

/// Observes the replay of a stored response, whose cookies were stored when it was received.
final class StoredAnswerObserver: TransferObserver {
  private let delegate: any HopDelegate

  init(_ delegate: any HopDelegate) { self.delegate = delegate }

  func transferBegan(_ control: any TransferControl) -> TransferStart {
    delegate.observer.transferBegan(control)
  }
  func headReceived(_ head: ResponseHead) -> HeadDisposition { delegate.headShown(head) }
  func bytesMoved(_ count: ByteCount) { delegate.bytesReplayed(count) }
  func transferEnded() { delegate.observer.transferEnded() }
}

/// Observes the revalidation of a stored response. A head that only the cache needs is not shown to the caller.
final class ValidationObserver: TransferObserver {
  private let delegate: any HopDelegate
  private let isForCache: @Sendable (ResponseHead) -> Bool
  /// Whether a head was passed on. The loop sets it, and the attempt reads it.
  private let hasShown = Atomic<Bool>(false)

  init(_ delegate: any HopDelegate, isForCache: @escaping @Sendable (ResponseHead) -> Bool) {
    self.delegate = delegate
    self.isForCache = isForCache
  }

  /// Whether a head was shown as the head of the result.
  var hasShownHead: Bool { hasShown.load(ordering: .acquiring) }

  func transferBegan(_ control: any TransferControl) -> TransferStart {
    delegate.observer.transferBegan(control)
  }

  func loginHeadReceived(_ head: ResponseHead) { delegate.observer.loginHeadReceived(head) }

  func headReceived(_ head: ResponseHead) -> HeadDisposition {
    guard isForCache(head) else {
      // Also without observers, because a monitor must not change the result.
      hasShown.store(true, ordering: .releasing)
      return delegate.observer.headReceived(head)
    }
    delegate.storeCookies(of: head)
    delegate.setIntermediate(true)
    return .proceed
  }

  func bytesMoved(_ count: ByteCount) { delegate.observer.bytesMoved(count) }

  func transferEnded() {
    // The response that follows is for the caller, and its head is observed only for some requests.
    if !hasShownHead { delegate.setIntermediate(false) }
    delegate.observer.transferEnded()
  }
}
