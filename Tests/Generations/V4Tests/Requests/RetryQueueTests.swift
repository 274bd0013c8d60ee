import Testing

@testable import AlamofireV4

@Suite("Queue of retries") struct RetryQueueTests {
  private let queue = RetryQueue()
  private let begun = Notes<Int>()

  private func enter(_ numbers: Range<Int>) -> [RetryQueue.Ticket] {
    numbers.map { number in
      let ticket = queue.makeTicket()
      queue.enter(ticket) { [begun] in begun.add(number) }
      return ticket
    }
  }

  @Test("Retries begin one after the other, without those that have left") func order() {
    let tickets = enter(0..<6)
    #expect(begun.all == [0] && queue.waitingCount == 5)
    for number in [4, 1] { queue.leave(tickets[number]) }
    #expect(begun.all == [0] && queue.waitingCount == 3)
    for number in [0, 2, 3] { queue.leave(tickets[number]) }
    #expect(begun.all == [0, 2, 3, 5] && queue.waitingCount == 0)
    queue.leave(tickets[5])
    _ = enter(6..<7)
    #expect(begun.all == [0, 2, 3, 5, 6])
  }

  @Test("A retry that leaves again does not end the turn of another") func leftTwice() {
    let tickets = enter(0..<3)
    for _ in 0..<2 { queue.leave(tickets[0]) }
    #expect(begun.all == [0, 1] && queue.waitingCount == 1)
    queue.leave(queue.makeTicket())
    #expect(begun.all == [0, 1])
  }

  @Test("A question is answered once, and not after it was closed") func questions() {
    var question = RetryQuestion()
    let (first, second) = (queue.makeTicket(), queue.makeTicket())
    let isUnasked = question.answer(first)
    question.open(first)
    let answers = [question.answer(second), question.answer(first), question.answer(first)]
    #expect(!isUnasked && answers == [false, true, false] && question.isOpen(first))
    #expect(question.close() == first && !question.isOpen(first) && question.close() == nil)
    question.open(second)
    #expect(question.close() == second && !question.answer(second))
  }

  @Test("A retry needs its place until its adapter has returned") func adapting() {
    var question = RetryQuestion()
    let (first, second) = (queue.makeTicket(), queue.makeTicket())
    question.open(first)
    let isAnswered = question.answer(first)
    #expect(isAnswered && question.needsPlace(first) && !question.needsPlace(second))
    #expect(question.beginAdapting() == first && !question.isOpen(first) && question.needsPlace(first))
    // The end of the request must not remove the retry either.
    #expect(question.close() == nil && question.needsPlace(first))
    question.open(second)
    #expect(question.needsPlace(first) && question.needsPlace(second))
    question.endAdapting()
    #expect(!question.needsPlace(first) && question.isOpen(second))
  }
}
