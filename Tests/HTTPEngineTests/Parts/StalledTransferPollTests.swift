import HTTPEngine
import Testing

@Suite struct StalledTransferPollTests {
  /// Makes a poll for two transfers that may share a connection.
  private static func makePoll() -> StalledTransferPoll {
    var poll = StalledTransferPoll()
    for _ in 0..<2 { poll.transferStarted(sharesConnection: true) }
    return poll
  }

  @Test("Pauses grow until polling stops") func pauses() {
    var poll = Self.makePoll()
    let pauses = (0..<20).map { _ in poll.pause() }
    #expect(pauses.first == 1)
    #expect(pauses.last == .max)
    for (pause, next) in zip(pauses, pauses.dropFirst()) where pause != .max { #expect(pause < next) }
    #expect(pauses.count { $0 != .max } < 10, "an idle loop must come to rest")
    #expect(pauses.filter { $0 != .max }.reduce(0, +) < 2000)
  }

  @Test("Progress restarts with the shortest pause") func progress() {
    var poll = Self.makePoll()
    for _ in 0..<3 { _ = poll.pause() }
    poll.somethingHappened()
    #expect(poll.pause() == 1)
    for _ in 0..<20 { _ = poll.pause() }
    poll.somethingHappened()
    #expect(poll.pause() == 1)
  }

  @Test("Transfers with connections of their own are not polled") func ownConnections() {
    var poll = StalledTransferPoll()
    for _ in 0..<3 { poll.transferStarted(sharesConnection: false) }
    #expect(poll.pause() == .max)
    poll.transferStarted(sharesConnection: true)
    #expect(poll.pause() == .max, "a single transfer shares with no other")
  }

  @Test("The last of several transfers that share a connection is polled until it ends")
  func sharedConnection() {
    var poll = Self.makePoll()
    poll.transferEnded(sharesConnection: true)
    #expect(poll.pause() == 1)
    poll.transferEnded(sharesConnection: true)
    poll.somethingHappened()
    #expect(poll.pause() == .max)
    poll.transferStarted(sharesConnection: true)
    #expect(poll.pause() == .max, "the earlier transfers have ended")
  }

  @Test("A transfer that was continued is polled until it ends") func continued() {
    var poll = StalledTransferPoll()
    poll.transferContinued(sharesConnection: false)
    poll.transferStarted(sharesConnection: true)
    #expect(poll.pause() == .max)
    poll.transferContinued(sharesConnection: true)
    #expect(poll.pause() == 1)
    poll.transferEnded(sharesConnection: true)
    poll.transferStarted(sharesConnection: true)
    poll.somethingHappened()
    #expect(poll.pause() == .max)
  }
}
