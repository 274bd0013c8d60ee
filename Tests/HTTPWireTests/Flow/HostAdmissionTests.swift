import HTTPWire
import Randomness
import Scenarios
import Testing

@Suite struct HostAdmissionTests {
  @Test("The number of running requests is limited by connections") func limit() {
    var admission = HostAdmission(connections: 2)
    #expect(admission.isIdle)
    #expect(admission.submitted(1, priority: 0.5) == true)
    #expect(admission.submitted(2, priority: 0.5) == true)
    #expect(admission.submitted(3, priority: 1) == false)
    #expect(admission.runningCount == 2)
    #expect(admission.waitingCount == 1)
    #expect(!admission.isIdle)
    #expect(admission.ended() == 3)
    #expect(admission.ended() == nil)
    #expect(admission.ended() == nil)
    #expect(admission.isIdle)
  }

  @Test("Higher priorities are first, and equal ones in order") func priorities() {
    var admission = HostAdmission(connections: 1)
    #expect(admission.submitted(0, priority: 0) == true)
    for (ticket, priority) in [(UInt64(1), 0.5), (2, 0.1), (3, 1), (4, 0.5), (5, 1), (6, 0.1), (7, 0.75)] {
      #expect(admission.submitted(ticket, priority: Float(priority)) == false)
    }
    let order = (0..<7).map { _ in admission.ended() }
    #expect(order == [3, 5, 7, 1, 4, 2, 6])
  }

  @Test("A priority of NaN does not lose a request") func nanPriority() {
    var admission = HostAdmission(connections: 1)
    _ = admission.submitted(0, priority: 0.5)
    for ticket in UInt64(1)...4 { _ = admission.submitted(ticket, priority: ticket == 2 ? .nan : 0.5) }
    #expect(Set((0..<4).compactMap { _ in admission.ended() }) == [1, 2, 3, 4])
  }

  @Test("A host offers no request to the session while its connections are in use") func busyHost() {
    var admission = HostAdmission(connections: 1)
    #expect(admission.submitted(1, priority: 0.5) == true)
    #expect(admission.submitted(2, priority: 0.5) == false)
    // Otherwise it would be chosen before the hosts that have room.
    #expect(admission.candidate(0) == nil)
    #expect(admission.ended() == 2)
    #expect(admission.candidate(0) == nil, "nothing waits")
  }

  @Test("A removed request is not admitted") func removal() {
    var admission = HostAdmission(connections: 1)
    for ticket in UInt64(0)..<4 { _ = admission.submitted(ticket, priority: 0.5) }
    #expect(admission.withdrawn(0) == false)
    #expect(admission.withdrawn(9) == false)
    #expect(admission.withdrawn(2) == true)
    #expect(admission.withdrawn(2) == false)
    #expect(admission.ended() == 1)
    #expect(admission.withdrawn(1) == false)
    #expect(admission.ended() == 3)
    #expect(admission.ended() == nil)
  }

  @Test("A multiplexing host has a hundred streams per connection") func multiplexing() {
    var admission = HostAdmission(connections: 2)
    for ticket in UInt64(0)..<300 { _ = admission.submitted(ticket, priority: 0.5) }
    #expect(admission.learned(multiplexes: true) == Array(2..<200))
    #expect(admission.runningCount == 200)
    #expect(admission.learned(multiplexes: true) == [])
    #expect(admission.ended() == 200)
  }

  @Test("A host without multiplexing returns to the limit of connections") func endOfMultiplexing() {
    var admission = HostAdmission(connections: 1)
    _ = admission.learned(multiplexes: true)
    for ticket in UInt64(0)..<101 { _ = admission.submitted(ticket, priority: 0.5) }
    #expect(admission.runningCount == 100)
    #expect(admission.learned(multiplexes: false) == [])
    for _ in 0..<99 { #expect(admission.ended() == nil) }
    #expect(admission.submitted(200, priority: 1) == false)
    #expect(admission.ended() == 200)
    #expect(admission.ended() == 100)
  }

  @Test("With few streams per connection, requests use the known connections and one new one")
  func fewStreams() {
    var admission = HostAdmission(connections: 3)
    #expect(admission.learned(streams: 4, connections: 1) == [])
    for ticket in UInt64(0)..<20 { _ = admission.submitted(ticket, priority: 0.5) }
    #expect(admission.runningCount == 3)
    #expect(admission.learned(multiplexes: true).count == 5)
    #expect(admission.learned(streams: 4, connections: 2).count == 4)
    #expect(admission.learned(streams: 4, connections: 3) == [])
    #expect(admission.ended() == 12)
    #expect(admission.learned(streams: 4, connections: 1) == [])
    #expect(admission.ended() == nil)
  }

  @Test("Running requests on connections that drain leave their slots to others") func drainingConnections() {
    var admission = HostAdmission(connections: 2)
    for ticket in UInt64(0)..<8 { _ = admission.submitted(ticket, priority: 0.5) }
    #expect(admission.began(draining: 1) == [2])
    #expect(admission.began(draining: 1) == [3])
    #expect(admission.obstacle(0) == .connections)
    #expect(admission.began(draining: 1) == [], "never more than twice as many as allowed")
    admission.leftDraining()
    #expect(admission.ended() == 4, "one of three that drain has ended")
    admission.leftDraining()
    #expect(admission.ended() == nil && admission.runningCount == 3)
    #expect(admission.ended() == 5)
  }

  @Test("The limit of a host counts the requests on connections that drain") func drainingWithinLimit() {
    var admission = HostAdmission(connections: 2, limits: HostLimits(.init(perHost: 3)))
    for ticket in UInt64(0)..<5 { _ = admission.submitted(ticket, priority: 0.5) }
    #expect(admission.began(draining: 2) == [2])
    #expect(admission.obstacle(0) == .inFlight)
    #expect(admission.ended() == 3)
  }

  @Test("Draining returns all waiting requests in order") func drain() {
    var admission = HostAdmission(connections: 1)
    for ticket in UInt64(0)..<5 { _ = admission.submitted(ticket, priority: ticket == 3 ? 1 : 0.5) }
    #expect(admission.ended() == 3)
    #expect(admission.drain() == [1, 2, 4])
    #expect(admission.drain() == [])
    #expect(admission.waitingCount == 0)
    #expect(admission.ended() == nil)
    #expect(admission.isIdle)
  }

  @Test("A long queue is in order") func longQueue() {
    var admission = HostAdmission(connections: 1)
    for ticket in UInt64(0)..<10_000 { _ = admission.submitted(ticket, priority: 0.5) }
    var next = 1
    while let ticket = admission.ended() {
      #expect(ticket == next)
      next += 1
    }
    #expect(next == 10_000)
  }

  @Test("Withdrawing many waiting requests looks at each of them a few times", arguments: [false, true])
  func manyWithdrawals(inOrder: Bool) {
    let count = UInt64(20_000)
    var admission = HostAdmission(connections: 1)
    for ticket in 0...count { _ = admission.submitted(ticket, priority: ticket % 2 == 0 ? 0.5 : 0.4) }
    let before = admission.steps
    for ticket in inOrder ? Array(2...count) : (2...count).reversed() {
      #expect(admission.withdrawn(ticket) == true)
    }
    #expect(admission.steps - before < 4 * Int(count))
    #expect(admission.waitingCount == 1 && admission.queue.map(\.ticket) == [1])
    #expect(admission.submitted(2, priority: 0.5) == false, "a withdrawn request may come again")
    let order = (0..<3).map { _ in admission.ended() }
    #expect(order == [2, 1, nil])
    #expect(admission.isIdle)
  }

  @Test("The queue of a host at which some requests always wait does not grow", arguments: [false, true])
  func busyQueue(areWithdrawn: Bool) {
    var admission = HostAdmission(connections: 1)
    for ticket in UInt64(0)...10 { _ = admission.submitted(ticket, priority: 0.5) }
    for ticket in UInt64(11)...10_000 {
      #expect(admission.submitted(ticket, priority: 0.5) == false)
      if areWithdrawn {
        #expect(admission.withdrawn(ticket) == true)
      } else {
        #expect(admission.ended() == ticket - 10)
      }
      #expect(admission.waitingCount == 10)
    }
    #expect(admission.entryCount < 2_000)
  }

  /// Compares with a simple model.
  @Test("The invariants hold for random operations", .steps, arguments: 0..<40 as Range<UInt64>)
  func randomOperations(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let connections = Int.random(in: 1...5, using: &random)
    var admission = HostAdmission(connections: connections)
    var capacity = connections
    var running: Set<UInt64> = []
    var draining: Set<UInt64> = []
    var most: Int { capacity + min(draining.count, capacity) }
    var waiting: [(ticket: UInt64, priority: Float)] = []
    var admittedEver: Set<UInt64> = []
    func admit(_ ticket: UInt64) {
      #expect(admittedEver.insert(ticket).inserted, "admitted twice")
      #expect(running.count < most, "more than the capacity")
      running.insert(ticket)
      let best = waiting.map(\.priority).max()
      let first = waiting.first { $0.priority == best }
      #expect(first?.ticket == ticket, "not the turn of this one")
      waiting.removeAll { $0.ticket == ticket }
    }
    for ticket in UInt64(0)..<600 {
      step("operation \(ticket)")
      switch Int.random(in: 0..<11, using: &random) {
      case 0..<5:
        let priority = Float(Int.random(in: 0...4, using: &random)) / 4
        if admission.submitted(ticket, priority: priority) {
          #expect(waiting.isEmpty && running.count < most)
          #expect(admittedEver.insert(ticket).inserted)
          running.insert(ticket)
        } else {
          #expect(!waiting.isEmpty || running.count >= most)
          waiting.append((ticket, priority))
        }
      case 5..<8:
        guard let over = running.randomElement(using: &random) else { continue }
        running.remove(over)
        if draining.remove(over) != nil { admission.leftDraining() }
        if let next = admission.ended() {
          admit(next)
        } else {
          #expect(waiting.isEmpty || running.count >= most)
        }
      case 8:
        guard let gone = waiting.randomElement(using: &random) else { continue }
        #expect(admission.withdrawn(gone.ticket) == true)
        waiting.removeAll { $0.ticket == gone.ticket }
      case 9:
        guard let stays = running.subtracting(draining).randomElement(using: &random) else { continue }
        draining.insert(stays)
        for next in admission.began(draining: 1) { admit(next) }
      default:
        let multiplexes = Int.random(in: 0..<8, using: &random) == 0
        capacity = multiplexes ? connections * 100 : connections
        for next in admission.learned(multiplexes: multiplexes) { admit(next) }
      }
      #expect(admission.runningCount == running.count)
      #expect(admission.waitingCount == waiting.count)
    }
    step("end of the requests that run")
    while !running.isEmpty {
      if draining.remove(running.removeFirst()) != nil { admission.leftDraining() }
      if let next = admission.ended() { admit(next) }
    }
    #expect(waiting.isEmpty && admission.isIdle, "somebody was lost")
  }
}
