import HTTPWire
import Synchronization

/// Observes the replay of a stored response, whose cookies were stored when it came.
final class StoredAnswerObserver: TransferObserver {
  private let core: RequestCore

  init(_ core: RequestCore) { self.core = core }

  func transferBegan(_ control: any TransferControl) -> TransferStart { core.transferBegan(control) }
  func headReceived(_ head: ResponseHead) -> HeadDisposition { core.headShown(head) }
  func bytesMoved(_ count: ByteCount) { core.bytesReplayed(count) }
  func transferEnded() { core.transferEnded() }
}

/// Observes the revalidation of a stored response. A head that only the cache needs is not shown to the caller.
final class ValidationObserver: TransferObserver {
  private let core: RequestCore
  private let isForCache: @Sendable (ResponseHead) -> Bool
  private let hasShown = Atomic<Bool>(false)

  init(_ core: RequestCore, isForCache: @escaping @Sendable (ResponseHead) -> Bool) {
    self.core = core
    self.isForCache = isForCache
  }

  /// Whether a head was shown as that of the result.
  var hasShownHead: Bool { hasShown.load(ordering: .acquiring) }

  func transferBegan(_ control: any TransferControl) -> TransferStart { core.transferBegan(control) }

  func headReceived(_ head: ResponseHead) -> HeadDisposition {
    guard isForCache(head) else {
      // Also without observers, because a monitor must not change the result.
      hasShown.store(true, ordering: .releasing)
      return core.headReceived(head)
    }
    core.storeCookies(of: head)
    core.state.withLock { $0.extras.progress.isIntermediate = true }
    return .proceed
  }

  func bytesMoved(_ count: ByteCount) { core.bytesMoved(count) }

  func transferEnded() { core.transferEnded() }
}
