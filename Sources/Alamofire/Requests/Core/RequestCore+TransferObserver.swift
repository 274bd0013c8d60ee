import HTTPWire
import Synchronization

// The transport calls these methods on the loop's thread.
extension RequestCore: TransferObserver {
  package var cancelsByControl: Bool { true }

  package func transferBegan(_ control: any TransferControl) -> TransferStart {
    state.withLock { state in
      state.run.control = control
      // The request was cancelled, or its session has ended, since the attempt last looked.
      // A WebSocket request that is closed still sends its messages.
      let isCancelled = state.lifecycle.state == .cancelled && webSocket == nil
      if isCancelled || state.results.error != nil { return .refuse }
      return state.lifecycle.state == .suspended ? .hold : .go
    }
  }

  package func transferEnded() {
    state.withLock { $0.run.control = nil }
  }

  package func bytesMoved(_ count: ByteCount) {
    let isObserved = observers.contains(.task)
    guard has(.progress) || isObserved else { return }
    var count = count
    if let offset = download?.offset, offset > 0 {
      count.received += offset
      if count.expectedToReceive >= 0 { count.expectedToReceive += offset }
    }
    let (notices, before) = state.withLock { state in
      let before = state.extras.progress.count
      let listeners = state.extras.listeners
      return (state.extras.progress.moved(count, listeners), before)
    }
    for notice in notices { notice.deliver() }
    if isObserved { tellBytes(from: before, to: count) }
  }

  package func headReceived(_ head: ResponseHead) -> HeadDisposition {
    storeCookies(of: head)
    return headShown(head)
  }

  /// Handles a head without storing its cookies, because a stored response has it, whose cookies were stored when it came.
  func headShown(_ head: ResponseHead) -> HeadDisposition {
    guard has([.head, .progress]) || hasBodySink || observers.contains(.task) else { return .proceed }
    return headArrived(head)
  }
}

// MARK: Cookies

extension RequestCore {
  /// Stores the cookies of a response as soon as its head is there, even if its body fails.
  func storeCookies(of head: ResponseHead) {
    guard let cookies = session.cookies, head.role == .hop, head.block.marks.contains(.setCookie) else {
      return
    }
    let (hop, request) = state.withLock { ($0.run.hop, $0.results.request) }
    guard let hop, let request, request.httpShouldHandleCookies else { return }
    storesCookies.store(true, ordering: .releasing)
    cookies.store(head.block.rawValues(of: "Set-Cookie"), of: hop.request, for: request)
  }

  /// Whether cookies of the last response may still have to be stored.
  var hasPendingCookies: Bool { storesCookies.load(ordering: .acquiring) }

  /// Waits until the cookies of the response are in the storage.
  @inline(never)
  nonisolated(nonsending) func cookiesStored() async {
    guard hasPendingCookies, let cookies = session.cookies else { return }
    storesCookies.store(false, ordering: .releasing)
    await cookies.storesFinished()
  }
}
