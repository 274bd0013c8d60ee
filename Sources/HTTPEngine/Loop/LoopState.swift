/// The facts about a loop that its exchanges and connections ask for all the time. They hold it themselves, because a
/// question by way of the loop would count references. Belongs to the loop's thread.
final class LoopState {
  /// The time of this turn of the loop.
  @exclusivity(unchecked) var now: UInt64 = Clock.now()
  @exclusivity(unchecked) var isShutDown = false
  /// Whether an exchange has ended since the loop last yielded.
  @exclusivity(unchecked) var hasAnswered = false
}
