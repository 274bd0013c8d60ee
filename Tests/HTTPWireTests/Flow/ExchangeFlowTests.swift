import HTTPWire
import Testing

@Suite("Flow of an exchange") struct ExchangeFlowTests {
  @Test("A suspension outlasts every other reason, and both directions stop") func suspension() {
    var flow = ExchangeFlow()
    #expect(flow.mayReceive && flow.maySend && flow.isMoving)
    flow.suspend()
    flow.proceed()
    #expect(!flow.mayReceive && !flow.maySend && !flow.isMoving && flow.isSuspended)
    let wasSuspended = flow.resume()
    #expect(wasSuspended)
    #expect(flow.isMoving)
    let isRepeated = flow.resume()
    #expect(!isRepeated, "the suspension is over")
  }

  @Test("A full sink stops receiving alone, an empty source sending alone") func directions() {
    var flow = ExchangeFlow()
    flow.stopReceiving(.sinkFull)
    #expect(!flow.mayReceive && flow.maySend && !flow.isMoving)
    flow.stopSending(.sourceEmpty)
    #expect(!flow.maySend)
    flow.proceed()
    #expect(flow.isMoving)
  }

  @Test("Room in a sink does not grant bandwidth, nor does bandwidth make room in a sink") func bandwidth() {
    var flow = ExchangeFlow()
    flow.stopReceiving(.throttled)
    flow.stopSending(.sourceEmpty)
    #expect(flow.isThrottled)
    flow.proceed()
    #expect(!flow.mayReceive && flow.maySend)
    flow.stopReceiving(.throttled)
    flow.stopSending(.throttled)
    flow.bandwidthReturned()
    #expect(flow.isMoving && !flow.isThrottled)
    flow.stopReceiving(.sinkFull)
    flow.stopSending(.sourceEmpty)
    flow.bandwidthReturned()
    #expect(!flow.mayReceive && !flow.maySend)
  }

  @Test("Content that is not sent any more does not delay an exchange") func sendingEnded() {
    var flow = ExchangeFlow()
    flow.stopSending(.sourceEmpty)
    flow.sendingEnded()
    #expect(flow.isMoving)
    flow.stopSending(.throttled)
    flow.stopReceiving(.sinkFull)
    flow.sendingEnded()
    #expect(!flow.isThrottled && !flow.mayReceive, "the sink is still full")
  }

  @Test("The end of a suspension asks sinks and sources again") func resumingAsks() {
    var flow = ExchangeFlow()
    flow.stopReceiving(.sinkFull)
    flow.stopSending(.sourceEmpty)
    flow.suspend()
    let wasSuspended = flow.resume()
    #expect(wasSuspended)
    #expect(flow.mayReceive && flow.maySend)
  }
}
