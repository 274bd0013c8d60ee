import HTTPEngine
import HTTPWire
import Testing

@Suite struct TransferPhaseTests {
  @Test("Only handles of running transfers belong to the multi handle") func multiHandle() {
    let phases: [TransferPhase] = [.idle, .withheld, .waiting, .running(sharesConnection: false)]
    #expect(phases.map(\.isAdded) == [false, false, false, true])
  }
}

@Suite struct ByteFlowTests {
  private static let reasons: [ByteFlow.Reason] = [.sinkFull, .sourceEmpty, .turnExhausted]

  @Test("A suspended transfer stops at its next callback") func suspend() {
    var flow = ByteFlow.moving
    #expect(flow.stopIfSuspended() == false)
    #expect(flow.suspend() == true)
    #expect(flow == .stopping)
    #expect(flow.isSuspended && !flow.isStopped)
    #expect(flow.suspend() == false, "the transfer is suspended")
    #expect(flow.stopIfSuspended() == true)
    #expect(flow == .stopped(.suspended))
  }

  @Test("Resuming before the next callback does not call libcurl") func earlyResume() {
    var flow = ByteFlow.stopping
    #expect(flow.resume() == false)
    #expect(flow == .moving)
    #expect(flow.resume() == false)
  }

  @Test("Resuming a stopped transfer calls libcurl") func resume() {
    var flow = ByteFlow.stopped(.suspended)
    #expect(flow.resume() == true)
    #expect(flow == .moving)
  }

  @Test("A sink or source that wakes up continues the flow", arguments: reasons)
  func wakeUp(reason: ByteFlow.Reason) {
    var flow = ByteFlow.moving
    #expect(flow.proceed() == false, "nothing was stopped")
    flow.stop(reason)
    #expect(flow == .stopped(reason))
    #expect(!flow.isSuspended)
    #expect(flow.resume() == false, "the caller has suspended nothing")
    #expect(flow.proceed() == true)
    #expect(flow == .moving)
  }

  @Test("A suspension outlasts every other reason", arguments: reasons)
  func suspensionFirst(reason: ByteFlow.Reason) {
    var flow = ByteFlow.stopped(reason)
    #expect(flow.suspend() == true)
    #expect(flow == .stopped(.suspended))
    flow.stop(reason)
    #expect(flow == .stopped(.suspended))
    #expect(flow.proceed() == false, "a sink or source does not end a suspension")
    #expect(flow.resume() == true)
  }
}

@Suite struct AbortReasonTests {
  private static let lost = TransportFailure(.connectionLost, "lost")

  @Test("The highest reason counts") func highestReason() {
    let inOrder: [AbortReason] = [.privateAddress, .identityRequested, .failure(Self.lost)]
    for (index, higher) in inOrder.enumerated() {
      #expect(Self.name(AbortReason.highest(nil, higher)) == Self.name(higher))
      for lower in inOrder[...index] {
        #expect(Self.name(AbortReason.highest(lower, higher)) == Self.name(higher))
        #expect(Self.name(AbortReason.highest(higher, lower)) == Self.name(higher))
      }
    }
  }

  @Test("The later failure counts") func laterFailure() {
    let later = TransportFailure(.timedOut, "late")
    #expect(AbortReason.highest(.failure(Self.lost), .failure(later)).failure?.kind == .timedOut)
  }

  @Test("A refused address is the cause only if no address was connected to") func refusedAddress() {
    #expect(Self.causes(.privateAddress) == [.cannotConnect])
    #expect(!AbortReason.privateAddress.forbidsRequest, "another address may be public")
  }

  @Test("A requested identity is the cause of every failure") func requestedIdentity() {
    #expect(Self.causes(.identityRequested) == [.cannotConnect, .failed])
    #expect(AbortReason.identityRequested.forbidsRequest)
  }

  @Test("A failure of the engine is the cause of every end") func engineFailure() {
    #expect(Self.causes(.failure(Self.lost)) == [.completed, .cannotConnect, .failed])
    #expect(AbortReason.failure(Self.lost).forbidsRequest)
  }

  private static func causes(_ reason: AbortReason) -> [AbortReason.Ending] {
    [.completed, .cannotConnect, .failed].filter { reason.isCause(of: $0) }
  }

  private static func name(_ reason: AbortReason) -> String {
    switch reason {
    case .privateAddress: "privateAddress"
    case .identityRequested: "identityRequested"
    case .failure: "failure"
    }
  }
}
