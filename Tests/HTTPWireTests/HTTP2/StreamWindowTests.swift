import HTTPWire
import Randomness
import Testing

@Suite("Windows of streams") struct StreamWindowTests {
  static let kibi = 1 << 10

  /// Lets a reader that keeps pace read `count` bytes in pieces.
  static func read(
    _ count: Int, by piece: Int = 16 << 10, _ window: inout StreamWindow, _ budget: inout WindowBudget
  ) -> [Int] {
    var sizes: [Int] = []
    for _ in 0..<count / piece {
      window.received(piece)
      if let size = window.read(piece, in: &budget) { sizes.append(size) }
    }
    return sizes
  }

  @Test("A window doubles with each window that was read, up to 8 MiB") func growth() {
    var budget = WindowBudget()
    var window = StreamWindow(in: &budget)
    #expect(window.size == 262_144 && budget.total == 262_144)
    #expect(Self.read(256 * Self.kibi - 16_384, &window, &budget).isEmpty, "not a whole window yet")
    #expect(Self.read(16_384, &window, &budget) == [512 * Self.kibi])
    #expect(Self.read(512 * Self.kibi - 16_384, &window, &budget).isEmpty)
    #expect(Self.read(16_384, &window, &budget) == [1_024 * Self.kibi])
    #expect(Self.read(100 << 20, &window, &budget) == [2 << 20, 4 << 20, 8 << 20])
    #expect(window.size == 8 << 20 && budget.total == 8 << 20)
    window.close(in: &budget)
    window.close(in: &budget)
    #expect(budget.total == 0)
  }

  @Test("The window of a reader that falls behind stays small") func slowReader() {
    var budget = WindowBudget()
    var window = StreamWindow(in: &budget)
    window.received(200 * Self.kibi)
    for _ in 0..<1_000 {
      #expect(window.read(16 << 10, in: &budget) == nil)
      window.received(16 << 10)
    }
    #expect(window.size == 262_144)
    #expect(window.unread == 200 * Self.kibi)
    // It catches up, and reads a whole window from then on.
    while window.unread > 0 { #expect(window.read(8 << 10, in: &budget) == nil) }
    #expect(!Self.read(256 << 10, &window, &budget).isEmpty)
  }

  @Test("Half a window may wait without a penalty") func halfWindow() {
    for (waiting, grows) in [(128 << 10, true), ((128 << 10) + 1, false)] {
      var budget = WindowBudget()
      var window = StreamWindow(in: &budget)
      _ = Self.read(240 << 10, &window, &budget)
      window.received(waiting)
      #expect((window.read(16 << 10, in: &budget) != nil) == grows, "\(waiting)")
    }
  }

  @Test("All windows of a connection share 64 MiB") func sharedLimit() {
    var budget = WindowBudget()
    var windows = (0..<100).map { _ in StreamWindow(in: &budget) }
    for _ in 0..<3 {
      for index in windows.indices { _ = Self.read(9 << 20, &windows[index], &budget) }
    }
    #expect(budget.total <= 64 << 20)
    #expect(budget.total > 60 << 20)
    #expect(windows.map(\.size).reduce(0, +) == budget.total)
    // The space of a stream that has ended is free again.
    windows[0].close(in: &budget)
    let last = windows.count - 1
    let size = windows[last].size
    _ = Self.read(64 << 20, &windows[last], &budget)
    #expect(windows[last].size > size)
    var small = WindowBudget(limit: 300 << 10)
    var window = StreamWindow(in: &small)
    #expect(Self.read(4 << 20, &window, &small).isEmpty)
    _ = StreamWindow(in: &small)
    #expect(small.total == 512 << 10, "a new stream always has its first window")
  }

  @Test("The whole budget may be used") func exactLimit() {
    var budget = WindowBudget(limit: 512 << 10)
    var window = StreamWindow(in: &budget)
    #expect(Self.read(256 << 10, &window, &budget) == [512 << 10])
  }

  @Test("Counts that cannot be are ignored") func oddCounts() {
    var budget = WindowBudget()
    var window = StreamWindow(in: &budget)
    #expect(window.read(1 << 30, in: &budget) == nil, "more than was received")
    window.received(-5)
    #expect(window.unread == 0)
    window.received(10)
    #expect(window.read(-5, in: &budget) == nil)
    #expect(window.unread == 10)
    window.close(in: &budget)
    window.received(10)
    #expect(window.read(5, in: &budget) == nil)
    #expect(window.unread == 10)
  }

  @Test("Random readers keep the sizes and the sum", arguments: 0..<4 as Range<UInt64>)
  func walks(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var budget = WindowBudget(limit: 4 << 20)
    var windows: [StreamWindow] = []
    for step in 0..<20_000 {
      let index = windows.indices.randomElement(using: &random)
      switch (Int.random(in: 0..<40, using: &random), index) {
      case (0, _) where windows.count < 10: windows.append(StreamWindow(in: &budget))
      case (1, let index?):
        windows[index].close(in: &budget)
        windows.remove(at: index)
      case (2..<20, let index?):
        windows[index].received(
          min(Int.random(in: 0...40_000, using: &random), windows[index].size - windows[index].unread))
      case (_, let index?):
        let before = windows[index].size
        let grown = windows[index].read(Int.random(in: 0...60_000, using: &random), in: &budget)
        #expect(windows[index].size == grown ?? before, "seed \(seed), step \(step)")
        if let grown { #expect(grown == before * 2 && budget.total <= 4 << 20, "seed \(seed), step \(step)") }
      default: break
      }
      #expect(windows.map(\.size).reduce(0, +) == budget.total, "seed \(seed), step \(step)")
      #expect(windows.allSatisfy { $0.unread <= $0.size }, "seed \(seed), step \(step)")
    }
  }
}
