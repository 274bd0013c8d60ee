import FoundationEssentials
import HTTPWire
import Testing

@Suite struct TrustMemoryTests {
  private let start = ContinuousClock.now

  private func chain(_ host: String = "example.com", port: Int = 443, _ leaf: UInt8 = 1, staple: Data? = nil)
    -> PresentedChain
  {
    PresentedChain(host: host, port: port, certificates: [Data([leaf])], stapledResponse: staple)
  }

  @Test("A decision is for one server, chain and partition") func key() {
    var memory = TrustMemory()
    #expect(memory.verdict(on: chain(), in: 1) == nil)
    memory.remember(.accepted, on: chain(), in: 1)
    #expect(memory.verdict(on: chain(), in: 1) == .accepted)
    for other in [
      chain("www.example.com"), chain(port: 444), chain("example.com", 2), chain(staple: Data([1])),
    ] {
      #expect(memory.verdict(on: other, in: 1) == nil)
    }
    #expect(memory.verdict(on: chain(), in: 2) == nil)
    memory.remember(.usual, on: chain(), in: 1)
    #expect(memory.verdict(on: chain(), in: 1) == .usual)
  }

  @Test("A decision expires after an hour") func expiry() {
    var memory = TrustMemory()
    memory.remember(.accepted, on: chain(), in: 1, at: start)
    #expect(memory.verdict(on: chain(), in: 1, at: start + .seconds(3599)) == .accepted)
    #expect(memory.verdict(on: chain(), in: 1, at: start + .seconds(3600)) == nil)
    memory.remember(.accepted, on: chain(), in: 1, at: start + .seconds(3600))
    #expect(memory.verdict(on: chain(), in: 1, at: start + .seconds(7199)) == .accepted)
  }

  @Test("The oldest decision is removed first") func eviction() {
    var memory = TrustMemory()
    for port in 0...TrustMemory.capacity { memory.remember(.accepted, on: chain(port: port), in: 1) }
    #expect(memory.verdict(on: chain(port: 0), in: 1) == nil)
    for port in 1...TrustMemory.capacity {
      #expect(memory.verdict(on: chain(port: port), in: 1) == .accepted)
    }
  }
}
