/// The state of a `URLProtocol`'s response, and the action for each of its calls. Pure. User code makes the calls:
/// any order has a defined action, and calls after the end are ignored.
package struct ProtocolReply: Sendable {
  package enum State: Sendable, Equatable {
    case waiting
    /// The response, or data without one, was received; bytes may follow.
    case receiving
    case ended
  }

  package enum Event: Sendable, CaseIterable {
    case response
    case bytes
    case finish
    case failure
    case redirect
    case challenge
    /// The request was cancelled.
    case cancel
    case timeout
  }

  package enum Action: Sendable, Equatable {
    case nothing
    case deliverHead
    case deliverBytes
    /// The bytes come without a response. They are delivered as Foundation does it.
    case deliverBytesAlone
    /// The response completes when all bytes are delivered.
    case complete
    /// The class's own error ends the response when all bytes are delivered.
    case fail
    case follow
    case answerChallenge
    case cancel
    case timeOut
    /// The class broke the rules in a way of which nothing can be made.
    case refuse(Fault)
  }

  package enum Fault: Sendable, Equatable, CaseIterable {
    case endBeforeResponse

    package func message(_ name: String) -> String {
      switch self {
      case .endBeforeResponse:
        "The URLProtocol class \(name) finished without a response and without data; call urlProtocol(_:didReceive:cacheStoragePolicy:) first."
      }
    }
  }

  package private(set) var state = State.waiting

  package init() {}

  package mutating func event(_ event: Event) -> Action {
    switch (state, event) {
    case (.ended, _): return .nothing
    case (_, .cancel): return end(.cancel)
    case (_, .timeout): return end(.timeOut)
    case (_, .failure): return end(.fail)
    case (.waiting, .response):
      state = .receiving
      return .deliverHead
    case (.waiting, .bytes):
      state = .receiving
      return .deliverBytesAlone
    case (.waiting, .finish): return end(.refuse(.endBeforeResponse))
    case (.waiting, .redirect): return end(.follow)
    case (.waiting, .challenge): return .answerChallenge
    case (.receiving, .bytes): return .deliverBytes
    case (.receiving, .finish): return end(.complete)
    // Too late: the first response is the answer, or there is none.
    case (.receiving, .response), (.receiving, .redirect), (.receiving, .challenge): return .nothing
    }
  }

  private mutating func end(_ action: Action) -> Action {
    state = .ended
    return action
  }
}
