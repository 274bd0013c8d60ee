@testable import AlamofireImage
import Foundation
import Randomness
import Testing

@Suite("Which downloads begin, and who waits for them")
struct DownloadBookTests {
  private typealias Book = DownloadBook<String, String>

  private func book(_ prioritization: ImageDownloader.DownloadPrioritization, active: Int = 1) -> Book {
    Book(prioritization, maximumActive: active)
  }

  /// Returns the order in which downloads begin if each ends before the next one.
  private func order(_ book: inout Book) -> [UInt64] {
    var order: [UInt64] = []
    var steps = book.takeStarts()
    while !steps.isEmpty {
      guard case .start(let number) = steps.removeFirst() else { continue }
      order.append(number)
      steps += book.finish(number)
    }
    return order
  }

  @Test("The first or the last that waits begins next")
  func prioritization() {
    for (prioritization, expected) in [
      (ImageDownloader.DownloadPrioritization.fifo, [1, 2, 3, 4]), (.lifo, [4, 3, 2, 1]),
    ] {
      var book = book(prioritization)
      for number in UInt64(1)...4 { book.add(number, "\(number)", receipt: 1, "") }
      #expect(order(&book) == expected.map { UInt64($0) })
    }
  }

  @Test("So many are active as are allowed, and at least one")
  func limit() {
    var book = book(.fifo, active: 2)
    for number in UInt64(1)...3 { book.add(number, "\(number)", receipt: 1, "") }
    #expect(book.takeStarts() == [.start(1), .start(2)])
    #expect((book.activeCount, book.waitingCount) == (2, 1))
    #expect(book.finish(2) == [.start(3)])
    #expect(Book(.fifo, maximumActive: 0).maximumActive == 1)
  }

  @Test("Who joins a download is among its waiters, until its response arrived")
  func joining() {
    var book = book(.fifo)
    #expect(book.join("k", receipt: 1, "A") == nil)
    book.add(7, "k", receipt: 1, "A")
    _ = book.takeStarts()
    #expect(book.join("k", receipt: 2, "B") == 7)
    #expect(book.join("other", receipt: 3, "C") == nil)
    #expect(book.waiters(of: 7) == ["A", "B"])
    book.close(7)
    #expect(book.join("k", receipt: 4, "D") == nil)
    #expect(book.activeCount == 1, "it is active until its images are made")
    #expect(book.next(7)?.waiter == "A")
    #expect(book.cancel(7, receipt: 1)?.waiter == "A", "it can be cancelled until it is answered")
    #expect(book.take(7, receipt: 1) == nil)
    #expect(book.next(7)?.waiter == "B")
    #expect(book.take(7, receipt: 2) == "B")
    #expect(book.next(7)?.waiter == nil)
    #expect(book.finish(7).isEmpty)
    #expect(book.finish(7).isEmpty)
    #expect(book.activeCount == 0)
  }

  @Test("The end of a download does not end a later one of the same image")
  func later() {
    var book = book(.fifo, active: 2)
    book.add(1, "k", receipt: 1, "A")
    _ = book.takeStarts()
    book.close(1)
    book.add(2, "k", receipt: 2, "B")
    _ = book.takeStarts()
    #expect(book.take(1, receipt: 1) == "A")
    #expect(book.finish(1).isEmpty)
    #expect(book.join("k", receipt: 3, "C") == 2)
  }

  @Test("A download is cancelled with its last waiter, and the next one begins")
  func cancelling() {
    var book = book(.fifo)
    book.add(1, "k", receipt: 1, "A")
    _ = book.takeStarts()
    book.add(2, "l", receipt: 3, "C")
    _ = book.join("k", receipt: 2, "B")
    let first = book.cancel(1, receipt: 1)
    #expect(first?.waiter == "A")
    #expect(first?.steps == [])
    #expect(book.cancel(1, receipt: 1) == nil)
    let second = book.cancel(1, receipt: 2)
    #expect(second?.steps == [.cancel(1), .start(2)])
    #expect(book.join("k", receipt: 1, "A") == nil)
  }

  @Test("A download that is cancelled while it waits never begins")
  func cancelledInLine() {
    var book = book(.fifo)
    for number in UInt64(1)...3 { book.add(number, "\(number)", receipt: 1, "") }
    _ = book.takeStarts()
    #expect(book.cancel(2, receipt: 1)?.steps == [.cancel(2)])
    #expect(book.finish(1) == [.start(3)])
  }

  private func seconds() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return time.tv_sec
  }

  @Test(
    "Very many downloads wait and are cancelled in little time",
    arguments: [ImageDownloader.DownloadPrioritization.fifo, .lifo])
  func manyWaiting(prioritization: ImageDownloader.DownloadPrioritization) {
    var book = book(prioritization)
    let count: UInt64 = 100_000
    let start = seconds()
    for number in 1...count { book.add(number, "\(number)", receipt: 1, "") }
    #expect(book.takeStarts() == [.start(prioritization == .fifo ? 1 : count)])
    for number in 2..<count { _ = book.cancel(number, receipt: 1) }
    #expect(book.waitingCount == 1)
    #expect(book.finish(prioritization == .fifo ? 1 : count) == [.start(prioritization == .fifo ? count : 1)])
    #expect(seconds() - start < 20)
  }

  @Test("While it is stopped, none begins")
  func stopping() {
    var book = book(.fifo)
    book.stop()
    book.add(1, "k", receipt: 1, "A")
    #expect(book.takeStarts().isEmpty)
    #expect(book.start() == [.start(1)])
    book.stop()
    book.add(2, "l", receipt: 1, "A")
    #expect(book.finish(1).isEmpty)
    #expect(book.start() == [.start(2)])
  }

  @Test("All that have not begun can be taken")
  func takeWaiting() {
    var book = book(.fifo)
    for number in UInt64(1)...3 { book.add(number, "\(number)", receipt: 1, "\(number)") }
    _ = book.takeStarts()
    let taken = book.takeWaiting()
    #expect(taken.map(\.number) == [2, 3])
    #expect(taken.map(\.waiters) == [["2"], ["3"]])
    #expect(book.waitingCount == 0)
    #expect(book.finish(1).isEmpty)
  }

  @Test("The response of a download that waits takes it out of the line")
  func closedInLine() {
    var book = book(.fifo)
    for number in UInt64(1)...3 { book.add(number, "\(number)", receipt: 1, "\(number)") }
    _ = book.takeStarts()
    book.close(2)
    #expect((book.activeCount, book.waitingCount) == (1, 1))
    #expect(book.join("2", receipt: 2, "B") == nil)
    #expect(book.finish(1) == [.start(3)], "it does not begin any more")
    #expect(book.next(2)?.waiter == "2")
    #expect(book.take(2, receipt: 1) == "2")
    #expect(book.finish(2) == [])
    #expect((book.activeCount, book.waitingCount) == (1, 0))
    book.close(9)
    #expect(book.finish(9) == [])
    #expect(book.activeCount == 1)
  }

  @Test("A download that is closed or ends twice leaves a later one of the same image alone")
  func closedTwice() {
    var book = book(.fifo, active: 2)
    book.add(1, "k", receipt: 1, "A")
    book.close(1)
    book.add(2, "k", receipt: 2, "B")
    book.close(1)
    #expect(book.join("k", receipt: 3, "C") == 2)
    #expect(book.waiters(of: 2) == ["B", "C"])
    #expect(book.waiters(of: 1) == ["A"])
    #expect(book.waiters(of: 3) == [])
    #expect(book.cancel(1, receipt: 1)?.steps.first == .cancel(1))
    #expect(book.join("k", receipt: 4, "D") == 2)
  }

  @Test("Waiters leave by their own receipts, in any order")
  func receipts() {
    var book = book(.lifo)
    book.add(1, "k", receipt: 1, "A")
    for (receipt, name) in [(UInt64(2), "B"), (3, "C")] {
      #expect(book.join("k", receipt: receipt, name) == 1)
    }
    #expect(book.takeStarts() == [.start(1)])
    #expect(book.take(1, receipt: 2) == "B")
    #expect(book.take(1, receipt: 2) == nil)
    #expect(book.take(2, receipt: 1) == nil)
    #expect(book.cancel(2, receipt: 1) == nil)
    #expect(book.next(1)?.receipt == 1)
    #expect(book.cancel(1, receipt: 24) == nil)
    #expect(book.cancel(1, receipt: 3)?.waiter == "C")
    #expect(book.waiters(of: 1) == ["A"])
    #expect(book.cancel(1, receipt: 1)?.steps == [.cancel(1)])
    #expect((book.activeCount, book.waitingCount, book.downloads.count) == (0, 0, 0))
  }

  @Test("A download whose response has arrived keeps its place until its end, also if it is cancelled")
  func cancelledWithResponse() {
    for isClosed in [false, true] {
      var book = book(.fifo)
      book.add(1, "k", receipt: 1, "A")
      #expect(book.takeStarts() == [.start(1)])
      #expect(book.receive(1) == true)
      #expect(book.join("k", receipt: 2, "B") == 1, "others can join it")
      if isClosed { book.close(1) }
      book.add(2, "l", receipt: 3, "C")
      #expect(book.cancel(1, receipt: 2)?.steps == [])
      let last = book.cancel(1, receipt: 1)
      #expect(last?.waiter == "A")
      #expect(last?.steps == [.cancel(1)], "the body is in memory, so that no other begins")
      #expect(book.join("k", receipt: 4, "D") == nil, "it is another download")
      #expect(book.cancel(1, receipt: 1) == nil)
      #expect(book.next(1) == nil)
      #expect((book.activeCount, book.waitingCount) == (1, 1))
      #expect(book.finish(1) == [.start(2)])
      #expect(book.finish(1) == [])
      #expect((book.activeCount, book.waitingCount, book.downloads.count) == (1, 0, 1))
    }
  }

  @Test("The response of a cancelled download is dropped, and one that waited does not begin")
  func received() {
    var book = book(.fifo)
    for number in UInt64(1)...3 { book.add(number, "\(number)", receipt: 1, "") }
    _ = book.takeStarts()
    #expect(book.cancel(1, receipt: 1)?.steps == [.cancel(1), .start(2)])
    #expect(book.receive(1) == false)
    #expect(book.receive(3) == true)
    #expect(book.finish(2) == [])
    #expect(book.cancel(3, receipt: 1)?.steps == [.cancel(3)])
    #expect((book.activeCount, book.waitingCount, book.downloads.count) == (0, 0, 0))
  }

  @Test("When all that wait are taken, none of them begins, and none that is added later")
  func takenWhileFree() {
    var book = book(.fifo, active: 2)
    book.stop()
    for number in UInt64(1)...3 { book.add(number, "\(number)", receipt: 1, "\(number)") }
    _ = book.start()
    #expect((book.activeCount, book.waitingCount) == (2, 1))
    #expect(book.finish(1) == [.start(3)])
    book.add(4, "4", receipt: 1, "4")
    _ = book.join("4", receipt: 2, "5")
    #expect(book.finish(2) == [.start(4)])
    for number in UInt64(5)...6 { book.add(number, "\(number)", receipt: 1, "\(number)") }
    _ = book.join("6", receipt: 2, "7")
    let taken = book.takeWaiting()
    #expect(taken.map(\.number) == [5, 6])
    #expect(taken.map(\.waiters) == [["5"], ["6", "7"]])
    #expect(book.isStopped)
    #expect((book.activeCount, book.waitingCount, book.downloads.count) == (2, 0, 2))
    book.add(8, "8", receipt: 1, "8")
    #expect(book.takeStarts() == [])
    #expect(book.finish(3) == [])
    // A place is free, and the book is not stopped, when all are taken.
    #expect(book.start() == [.start(8)])
    var free = Book(.fifo, maximumActive: 9)
    for number in UInt64(1)...3 { free.add(number, "\(number)", receipt: 1, "\(number)") }
    #expect(free.takeWaiting().map(\.number) == [1, 2, 3])
    #expect((free.activeCount, free.waitingCount, free.isStopped) == (0, 0, true))
  }

  @Test("Whatever happens, the limit holds, and each waiter leaves once", .seeded, arguments: 0..<20)
  func walk(index: Int) {
    var generator = Seed.generator(index)
    let limit = Int.random(in: 1...4, using: &generator)
    var book = Book(Bool.random(using: &generator) ? .fifo : .lifo, maximumActive: limit)
    var active: Set<UInt64> = []
    // The numbers of downloads, by the numbers of receipts.
    var outstanding: [UInt64: UInt64] = [:]
    var received: Set<UInt64> = []
    var last: UInt64 = 0
    func perform(_ steps: [Book.BookStep]) {
      for step in steps {
        switch step {
        case .start(let number): #expect(active.insert(number).inserted)
        case .cancel(let number): if !received.contains(number) { active.remove(number) }
        }
      }
    }
    for turn in UInt64(0)..<500 {
      switch Int.random(in: 0..<7, using: &generator) {
      case 0, 1, 2:
        let key = "\(Int.random(in: 0..<8, using: &generator))"
        if let number = book.join(key, receipt: turn, "\(turn)") {
          outstanding[turn] = number
        } else {
          last += 1
          outstanding[turn] = last
          book.add(last, key, receipt: turn, "\(turn)")
          perform(book.takeStarts())
        }
      case 3:
        guard let (receipt, number) = outstanding.randomElement(using: &generator) else { continue }
        let cancelled = book.cancel(number, receipt: receipt)
        #expect(cancelled?.waiter == "\(receipt)")
        outstanding[receipt] = nil
        perform(cancelled?.steps ?? [])
      case 4:
        guard let number = active.randomElement(using: &generator) else { continue }
        book.close(number)
        while let next = book.next(number) {
          #expect(book.take(number, receipt: next.receipt) == next.waiter)
          #expect(outstanding.removeValue(forKey: next.receipt) == number)
        }
        active.remove(number)
        perform(book.finish(number))
      case 5:
        guard let number = active.randomElement(using: &generator) else { continue }
        received.insert(number)
        #expect(book.receive(number) == true)
      default:
        if book.isStopped { perform(book.start()) } else { book.stop() }
      }
      #expect(active.count == book.activeCount)
      #expect(active.count <= limit)
      #expect(book.isStopped || active.count == limit || book.waitingCount == 0)
    }
  }
}
