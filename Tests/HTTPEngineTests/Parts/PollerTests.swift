import Glibc
import Testing

@testable import HTTPEngine

@Suite("The poller of a loop", .timeLimit(.minutes(1))) struct PollerTests {
  final class Target: PollTarget {
    var events: [PollEvents] = []
    var onReady: (() -> Void)?

    func ready(_ events: PollEvents) {
      self.events.append(events)
      onReady?()
    }
  }

  /// Returns two connected sockets.
  static func pair() throws -> (Int32, Int32) {
    var pair: [Int32] = [-1, -1]
    try #require(socketpair(AF_UNIX, 1, 0, &pair) == 0)
    return (pair[0], pair[1])
  }

  static func turn(_ poller: Poller, milliseconds: Int32 = 0) {
    poller.wait(milliseconds: milliseconds)
    poller.deliver()
  }

  @Test("An event comes once, and again after more bytes") func edges() throws {
    let poller = Poller()
    let target = Target()
    let (here, there) = try Self.pair()
    defer { for descriptor in [here, there] { close(descriptor) } }
    let token = try #require(poller.watch(here, for: target))
    Self.turn(poller)
    #expect(target.events == [.writable])
    Self.turn(poller)
    #expect(target.events.count == 1)
    for count in 2...3 {
      #expect(write(there, "x", 1) == 1)
      Self.turn(poller, milliseconds: 1000)
      #expect(target.events.count == count)
      #expect(target.events.last?.contains(.readable) == true)
    }
    poller.forget(token)
    #expect(write(there, "x", 1) == 1)
    Self.turn(poller)
    #expect(target.events.count == 3)
    #expect(!poller.isWatching)
  }

  @Test("The end of a connection is reported") func end() throws {
    let poller = Poller()
    let target = Target()
    let (here, there) = try Self.pair()
    let token = try #require(poller.watch(here, for: target))
    close(there)
    Self.turn(poller, milliseconds: 1000)
    #expect(target.events.last.map { !$0.isDisjoint(with: .ended) } == true)
    poller.forget(token)
    close(here)
  }

  @Test("A slot that is used again does not get the events of its former socket") func staleEvents() throws {
    let poller = Poller()
    let (first, second, third) = (Target(), Target(), Target())
    let pairs = try (0..<3).map { _ in try Self.pair() }
    let token = try #require(poller.watch(pairs[0].0, for: first))
    let other = try #require(poller.watch(pairs[1].0, for: second))
    // Whichever is ready first forgets the other, and watches a third socket in its slot.
    var isDone = false
    func replace(_ token: PollToken) {
      guard !isDone else { return }
      isDone = true
      poller.forget(token)
      _ = poller.watch(pairs[2].0, for: third)
    }
    first.onReady = { replace(other) }
    second.onReady = { replace(token) }
    Self.turn(poller, milliseconds: 1000)
    #expect(first.events.count + second.events.count == 1)
    #expect(third.events.isEmpty)
    Self.turn(poller, milliseconds: 1000)
    #expect(third.events == [.writable])
    first.onReady = nil
    second.onReady = nil
    for pair in pairs {
      close(pair.0)
      close(pair.1)
    }
  }

  @Test("A duplicate of a closed descriptor keeps no watch") func duplicates() throws {
    let poller = Poller()
    let target = Target()
    let (here, there) = try Self.pair()
    let duplicate = dup(here)
    let token = try #require(poller.watch(here, for: target))
    Self.turn(poller)
    poller.forget(token)
    close(here)
    #expect(write(there, "x", 1) == 1)
    Self.turn(poller)
    #expect(target.events.count == 1)
    close(duplicate)
    close(there)
  }

  @Test("A watch that was ended twice ends no other") func forgottenTwice() throws {
    let poller = Poller()
    let (first, second) = (Target(), Target())
    let (here, there) = try Self.pair()
    let token = try #require(poller.watch(here, for: first))
    poller.forget(token)
    _ = try #require(poller.watch(there, for: second))
    poller.forget(token)
    Self.turn(poller, milliseconds: 1000)
    #expect(second.events == [.writable])
    close(here)
    close(there)
  }

  @Test("A descriptor that cannot be watched is refused with the reason") func refusal() {
    let poller = Poller()
    #expect(poller.watch(-1, for: Target()) == nil)
    #expect(errno == EBADF)
    #expect(!poller.isWatching)
  }

  @Test("A socket that is not connected yet has no result") func unconnected() throws {
    let socket = try #require(Socket.open(family: AF_INET, host: "a.test", Poller()))
    #expect(socket.connectResult == nil)
    socket.close()
  }

  @Test("A poller that is not open pauses only, because no other thread could wake it") func closed() {
    let poller = Poller()
    poller.wake()
    // With the time limit of the suite, this would not end if it waited.
    poller.wait(milliseconds: 3_600_000)
    #expect(poller.descriptor < 0)
  }

  @Test("Another thread ends the wait, and a call before the wait counts") func wake() {
    let poller = Poller()
    poller.open()
    // The counter is not read, so each wake-up is a new event. Without it, the time limit of the suite ends this.
    for _ in 0..<3 {
      poller.wake()
      poller.wait(milliseconds: 3_600_000)
      poller.deliver()
    }
    nonisolated(unsafe) let shared = poller
    Thread { shared.wake() }.start()
    poller.wait(milliseconds: 3_600_000)
  }
}
