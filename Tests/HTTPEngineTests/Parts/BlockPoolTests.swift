import Foundation
import HTTPEngine
import Testing

#if ADDRESS_SANITIZER || THREAD_SANITIZER
  // Their blocks have no more room than was asked for, and do not fit to the next request.
  private let hasRoundSizes = false
#else
  private let hasRoundSizes = true
#endif

/// Each test is its thread's alone from its first line to its last: it awaits nothing.
@Suite(.enabled(if: hasRoundSizes)) struct BlockPoolTests {
  private func withPool(_ body: () throws -> Void) rethrows {
    BlockPool.serve()
    defer {
      BlockPool.retire()
      #expect(BlockPool.held == nil)
    }
    try body()
  }

  /// A block of this size comes back.
  private func expectReuse(of size: Int) throws {
    let block = try #require(BlockPool.allocate(size))
    BlockPool.release(block)
    #expect(!isEmpty)
    // The system may have given more than was asked for; then the block fits to other requests.
    let room = size < 16_384 ? BlockPool.room(of: block) : size
    #expect(BlockPool.allocate(room) == block)
    #expect(isEmpty)
    BlockPool.release(block)
  }

  @Test(
    "What is given back is handed out again",
    arguments: [0, 1, 24, 25, 88, 752, 1_496, 2_000, 16_384, 16_385])
  func again(size: Int) throws {
    try withPool { try expectReuse(of: size) }
  }

  @Test("Other sizes are not kept", arguments: [2_100, 10_000, 16_384 + 2_000, 524_289])
  func others(size: Int) {
    withPool {
      BlockPool.release(BlockPool.allocate(size))
      #expect(isEmpty)
    }
  }

  @Test("Every block has the room that was asked for, and is nobody else's")
  func room() throws {
    try withPool {
      var blocks: [(block: UnsafeMutableRawPointer, size: Int, mark: UInt8)] = []
      var dice = SystemRandomNumberGenerator()
      for round in 0..<20_000 {
        if blocks.count < 100 || Bool.random(using: &dice) {
          let size = Int.random(in: 0...(round % 10 == 0 ? 20_000 : 2_100), using: &dice)
          let block = try #require(
            round % 3 == 0 ? BlockPool.allocateCleared(size, 1) : BlockPool.allocate(size))
          if round % 3 == 0 { #expect(isFilled(block, size, 0)) }
          blocks.append((block, size, UInt8(truncatingIfNeeded: round)))
        } else {
          let index = blocks.indices.randomElement(using: &dice) ?? 0
          var (block, size, mark) = blocks.remove(at: index)
          #expect(isFilled(block, size, mark))
          if Bool.random(using: &dice) {
            let next = Int.random(in: 1...3_000, using: &dice)
            block = try #require(BlockPool.reallocate(block, next))
            #expect(isFilled(block, min(size, next), mark))
            size = next
            mark = mark &+ 1
            blocks.append((block, size, mark))
          } else {
            BlockPool.release(block)
            continue
          }
        }
        if let last = blocks.last { memset(last.block, Int32(last.mark), last.size) }
      }
      for (block, size, mark) in blocks {
        #expect(isFilled(block, size, mark))
        BlockPool.release(block)
      }
    }
  }

  private func isFilled(_ block: UnsafeMutableRawPointer, _ size: Int, _ mark: UInt8) -> Bool {
    UnsafeRawBufferPointer(start: block, count: size).allSatisfy { $0 == mark }
  }

  private var isEmpty: Bool { BlockPool.held.map { $0.bytes == 0 && $0.buffers == 0 } ?? false }

  @Test("There is an end to what is kept")
  func limit() throws {
    try withPool {
      let blocks =
        (0..<200).map { _ in BlockPool.allocate(16_384) } + (0..<2_000).map { _ in BlockPool.allocate(1_000) }
      for block in blocks { BlockPool.release(block) }
      let held = try #require(BlockPool.held)
      #expect(held.buffers == BlockPool.bufferLimit)
      #expect(held.bytes <= BlockPool.limit)
    }
  }

  @Test("What nobody asks for again makes room for what somebody does")
  func turnover() throws {
    try withPool {
      for size in stride(from: 24, to: 2_000, by: 16) {
        let blocks = (0..<100).map { _ in BlockPool.allocate(size) }
        for block in blocks { BlockPool.release(block) }
      }
      let block = try #require(BlockPool.allocate(88))
      BlockPool.release(block)
      #expect(BlockPool.allocate(BlockPool.room(of: block)) == block)
      BlockPool.release(block)
    }
  }

  @Test("Memory that is given back twice ends the process")
  func twice() async {
    await #expect(processExitsWith: .failure) {
      BlockPool.serve()
      let block = BlockPool.allocate(88)
      BlockPool.release(block)
      BlockPool.release(block)
    }
  }

  @Test(
    "What grows keeps its bytes and its place, as long as there is room")
  func growth() throws {
    try withPool {
      var block = try #require(BlockPool.reallocate(nil, 32))
      memset(block, 7, 32)
      block = try #require(BlockPool.reallocate(block, 65))
      #expect(isFilled(block, 32, 7))
      #expect(BlockPool.reallocate(block, 129) == block)
      #expect(BlockPool.reallocate(block, 300) == block)
      block = try #require(BlockPool.reallocate(block, 100_000))
      #expect(isFilled(block, 32, 7))
      BlockPool.release(BlockPool.reallocate(block, 10))
    }
  }

  @Test("More than there can be is refused")
  func tooMuch() {
    withPool {
      #expect(BlockPool.allocateCleared(.max, 16) == nil)
      #expect(BlockPool.allocateCleared(-1, -16) == nil)
      #expect(BlockPool.allocate(.max) == nil)
    }
  }

  @Test("Blocks may come from a thread without a pool, and go to one")
  func strangers() throws {
    let stranger = try #require(BlockPool.allocate(100))
    try withPool {
      BlockPool.release(stranger)
      #expect(!isEmpty)
      let text = try #require(BlockPool.duplicate("a text"))
      #expect(String(cString: text) == "a text")
      BlockPool.release(text)
    }
    BlockPool.release(nil)
    #expect(BlockPool.held == nil)
    #expect(BlockPool.duplicate(nil) == nil)
  }
}
