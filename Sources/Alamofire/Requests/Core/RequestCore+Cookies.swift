import HTTPWire
import Synchronization

/// The cookies of the responses to one request.
extension RequestCore {
  /// Stores the cookies of a response as soon as its head is there, even if its body fails.
  func storeCookies(of head: ResponseHead) {
    guard let cookies = session.cookies, head.role == .hop, head.block.marks.contains(.setCookie) else {
      return
    }
    let (hop, request) = state.withLock { ($0.hop, $0.request) }
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
