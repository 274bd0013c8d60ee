import FoundationEssentials
import HTTPWire
import Randomness
import Scenarios
import Testing

/// Readers that deliver their entries one after the other.
@Suite("Ordered readers of a chunk log") struct ChunkLogOrderTests {
  /// Readers that run in random order after they are woken.
  private struct Simulation {
    var log = ChunkLog()
    var random: SeededGenerator
    var readers: [Int] = []
    var ready: Set<Int> = []
    /// The entries that were read and not delivered.
    var working: [Int: (bytes: [UInt8], isLast: Bool)] = [:]
    var events: [String] = []

    init(seed: UInt64) { random = SeededGenerator(seed: seed) }

    mutating func add() {
      readers.append(log.addReader(.called, holdsBack: true, after: readers.last))
    }

    mutating func write(_ byte: UInt8) {
      ready.formUnion(log.write(.chunk(Data([byte]))).readers)
    }

    mutating func step() {
      guard let reader = ready.sorted().randomElement(using: &random) else { return }
      guard let work = working.removeValue(forKey: reader) else { return read(reader) }
      for byte in work.bytes { events.append("\(reader):\(byte)") }
      if work.isLast { events.append("\(reader).") }
      ready.formUnion(log.handedOut(reader))
      if work.isLast { ready.remove(reader) }
    }

    private mutating func read(_ reader: Int) {
      let reading = log.read(reader)
      ready.formUnion(reading.followers)
      guard !reading.entries.isEmpty || reading.isLast else {
        ready.remove(reader)
        return
      }
      let bytes = reading.entries.compactMap { entry -> UInt8? in
        guard case .chunk(let data) = entry else { return nil }
        return data.first
      }
      working[reader] = (bytes, reading.isLast)
    }

    mutating func mute(_ reader: Int) { ready.formUnion(log.mute(reader).followers) }

    mutating func settle() { while !ready.isEmpty { step() } }

    mutating func finish() {
      for reader in readers where log.finish(reader) { ready.insert(reader) }
      settle()
    }
  }

  @Test("The order of the readers holds in any order of execution", arguments: 0..<50)
  func order(seed: Int) {
    var simulation = Simulation(seed: UInt64(seed))
    for _ in 0..<3 { simulation.add() }
    for byte in 0..<40 {
      simulation.write(UInt8(byte))
      for _ in 0..<Int.random(in: 0..<12, using: &simulation.random) { simulation.step() }
    }
    simulation.settle()
    #expect(!simulation.log.isBusy)
    simulation.finish()
    let chunks = (0..<40).flatMap { byte in simulation.readers.map { "\($0):\(byte)" } }
    #expect(simulation.events == chunks + simulation.readers.map { "\($0)." })
    #expect(simulation.readers.allSatisfy { !simulation.log.hasReader($0) })
    #expect(simulation.log.heldBytes == 0)
  }

  @Test(
    "Adding, removing and muting a reader does not change the order of the others", .steps,
    arguments: 0..<50)
  func changes(seed: Int) {
    var simulation = Simulation(seed: UInt64(seed))
    for _ in 0..<3 { simulation.add() }
    for byte in 0..<40 {
      step("byte \(byte)")
      if byte == 10 { simulation.mute(simulation.readers[1]) }
      if byte == 20 { simulation.add() }
      if byte == 30 {
        let reader = simulation.readers.removeFirst()
        simulation.ready.formUnion(simulation.log.removeReader(reader).followers)
        simulation.ready.remove(reader)
        simulation.working[reader] = nil
      }
      simulation.write(UInt8(byte))
      for _ in 0..<Int.random(in: 0..<12, using: &simulation.random) { simulation.step() }
    }
    simulation.settle()
    #expect(!simulation.log.isBusy)
    simulation.finish()
    let late = simulation.readers.suffix(2).map { reader in
      simulation.events.filter { $0.hasPrefix("\(reader):") }
    }
    #expect(late[0] == (0..<40).map { "2:\($0)" })
    #expect(late[1] == (20..<40).map { "3:\($0)" })
    let ends = simulation.events.filter { $0.hasSuffix(".") }
    #expect(ends == simulation.readers.map { "\($0)." })
    // Entries of both readers are delivered to the earlier reader first.
    for byte in 20..<40 {
      let places = ["2:\(byte)", "3:\(byte)"].map { simulation.events.firstIndex(of: $0) ?? -1 }
      #expect(places[0] < places[1])
    }
    #expect(simulation.readers.allSatisfy { !simulation.log.hasReader($0) })
  }

  @Test("A single reader takes several entries at once")
  func single() {
    var log = ChunkLog()
    let reader = log.addReader(.called, holdsBack: true)
    for _ in 0..<10 { _ = log.write(.chunk(Data([1]))) }
    let reading = log.read(reader)
    #expect(reading.entries.count == 10)
    #expect(!reading.isOrdered)
  }
}
