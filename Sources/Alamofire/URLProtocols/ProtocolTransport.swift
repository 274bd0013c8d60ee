import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// A transport that serves one hop by an object of a user's `URLProtocol` class.
final class ProtocolTransport: Transport {
  /// The response and the error as the class returned them.
  struct Given: Sendable {
    var response: URLResponse?
    var error: (any Error)?
  }

  private let type: URLProtocol.Type
  private let request: URLRequest
  private let credential: URLCredential?
  private let outcome = Mutex(Given())

  init(_ type: URLProtocol.Type, request: URLRequest, credential: URLCredential?) {
    self.type = type
    self.request = request
    self.credential = credential
  }

  var given: Given { outcome.withLock { $0 } }

  nonisolated(nonsending) func send(
    _ request: WireRequest, observer: any TransferObserver
  ) async throws(TransportFailure) -> WireResponse {
    let exchange = ProtocolExchange(
      type, self.request, credential: credential, wire: request, observer: observer)
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { waiter in
        exchange.begin { result, given in
          self.outcome.withLock { $0 = given }
          waiter.resume(returning: result)
        }
      }
    } onCancel: {
      exchange.cancel()
    }
    // The lock makes the order of the two threads visible to ThreadSanitizer, which misses it for a continuation that
    // is resumed before it is awaited.
    outcome.withLock { _ in }
    return try result.get()
  }
}
