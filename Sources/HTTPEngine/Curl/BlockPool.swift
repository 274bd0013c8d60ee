import CCurl
import Glibc

/// The memory that libcurl has given back on the thread of a loop, kept for what it asks for next.
///
/// For each transfer libcurl asks for some thirty blocks of the same few sizes. The system's allocator keeps few of
/// a size at hand for a thread, none of more than a kilobyte, and none for `calloc`, which libcurl calls most: with
/// many transfers under way, looking for memory costs a tenth of a small request.
///
/// Every block is one of the system's, whoever frees it: it may come from one thread and be given back on another, and
/// a thread without a pool, such as one of a program that uses libcurl for itself, has the system's functions.
///
/// Belongs to one thread. Raw memory throughout, since C calls it with nothing but a size or an address.
package struct BlockPool {
  package typealias Block = UnsafeMutableRawPointer

  /// How many bytes are kept at most, beside the buffers.
  package static let limit = 1 << 19
  /// How many buffers are kept at most.
  package static let bufferLimit = 64
  /// Blocks are kept by size, in steps of the system's own, up to two kilobytes.
  private static let step = 16
  private static let steps = 128
  /// No block of the system's is smaller, and every one that is kept has room for two words.
  private static let smallest = 24
  /// Beyond those, blocks of one size alone: that of the buffer into which a transfer receives, and of those into which a
  /// body is decoded, which are a byte smaller. They have the last list.
  private static let bufferSize = Transfer.receiveBufferSize + 1
  /// What grows gets at least this at once, since it goes on growing: the head of a request, written piece by piece.
  private static let firstGrowth = 512

  /// The first block of each size. A block that is kept begins with the address of the next, and with the ``key``.
  private let lists: UnsafeMutablePointer<Block?>
  /// Tells a block that is kept from others, so that one that is given back twice ends the process, as it would with
  /// the system's functions, and hides the addresses from whoever writes where he should not.
  private let key = UInt.random(in: .min ... .max)
  private var heldBytes = 0
  private var heldBuffers = 0

  private init() {
    lists = .allocate(capacity: Self.steps + 1)
    lists.initialize(repeating: nil, count: Self.steps + 1)
  }

  /// The list whose blocks have room for `size` bytes, all of them.
  private static func list(for size: Int) -> Int? {
    // A block of n steps has room for all of them but eight bytes.
    guard size > steps * step - 24 || size < 0 else { return (max(size, smallest) + 23) / step }
    return size == bufferSize || size == bufferSize - 1 ? steps : nil
  }

  /// The list for a block with room for `size` bytes.
  private static func list(of size: Int) -> Int? {
    guard size >= smallest else { return nil }
    let list = (size + 8) / step
    if list < steps { return list }
    return size >= bufferSize && size < bufferSize + 2 * step ? steps : nil
  }

  /// How many bytes a block has room for: what was asked for, or some more.
  package static func room(of block: Block) -> Int { ccurl_block_size(block) }

  private mutating func take(_ size: Int) -> Block? {
    guard let list = Self.list(for: size), let block = pop(list) else { return malloc(size) }
    if list < Self.steps { heldBytes -= Self.room(of: block) } else { heldBuffers -= 1 }
    return block
  }

  private mutating func keep(_ block: Block) {
    let size = Self.room(of: block)
    guard let list = Self.list(of: size) else { return free(block) }
    if list == Self.steps {
      guard heldBuffers < Self.bufferLimit else { return free(block) }
      heldBuffers += 1
    } else {
      // What is kept and never asked for again must not keep out what is.
      if heldBytes + size > Self.limit { giveBack(0..<Self.steps) }
      heldBytes += size
    }
    push(block, list)
  }

  private func push(_ block: Block, _ list: Int) {
    precondition(block.load(fromByteOffset: 8, as: UInt.self) != key, "memory was given back twice")
    block.storeBytes(of: UInt(bitPattern: lists[list]) ^ key, as: UInt.self)
    block.storeBytes(of: key, toByteOffset: 8, as: UInt.self)
    lists[list] = block
  }

  private func pop(_ list: Int) -> Block? {
    guard let block = lists[list] else { return nil }
    lists[list] = Block(bitPattern: block.load(as: UInt.self) ^ key)
    block.storeBytes(of: 0, toByteOffset: 8, as: UInt.self)
    return block
  }

  private mutating func giveBack(_ some: Range<Int>) {
    for list in some { while let block = pop(list) { free(block) } }
    heldBytes = 0
  }

  private mutating func grow(_ block: Block, to size: Int) -> Block? {
    let room = Self.room(of: block)
    guard size > room || Self.list(of: room) == nil else { return block }
    guard Self.list(for: size) != nil, size > 0 else { return realloc(block, size) }
    guard let other = take(max(size, Self.firstGrowth)) else { return nil }
    other.copyMemory(from: block, byteCount: min(room, size))
    keep(block)
    return other
  }

  // MARK: Threads

  /// The pool of the thread at hand.
  private static var current: UnsafeMutablePointer<BlockPool>? {
    ccurl_value_of_thread()?.assumingMemoryBound(to: BlockPool.self)
  }

  /// Whether somebody looks for misuse of memory, and has to see every block that is given back: the address sanitizer,
  /// or valgrind.
  private static let isSupervised: Bool = {
    if let preloaded = getenv("LD_PRELOAD"), strstr(preloaded, "vgpreload") != nil { return true }
    guard let process = dlopen(nil, RTLD_LAZY) else { return false }
    defer { dlclose(process) }
    return dlsym(process, "__asan_init") != nil
  }()

  /// Gives the thread at hand a pool, until ``retire()``; none under supervision.
  package static func serve() {
    guard !isSupervised else { return }
    let pool = UnsafeMutablePointer<BlockPool>.allocate(capacity: 1)
    pool.initialize(to: BlockPool())
    ccurl_set_value_of_thread(pool)
  }

  /// How many bytes and buffers the pool of the thread at hand keeps; `nil` without one.
  package static var held: (bytes: Int, buffers: Int)? {
    current.map { ($0.pointee.heldBytes, $0.pointee.heldBuffers) }
  }

  /// Gives everything back to the system.
  package static func retire() {
    guard let pool = current else { return }
    ccurl_set_value_of_thread(nil)
    pool.pointee.giveBack(0..<steps + 1)
    pool.pointee.lists.deallocate()
    pool.deallocate()
  }

  // MARK: What libcurl calls

  /// Initialises libcurl to call the functions below, from any thread. One that the program has initialised before
  /// keeps the functions it has.
  static func initialize() -> CURLcode {
    curl_global_init_mem(
      Int(CURL_GLOBAL_ALL), { BlockPool.allocate($0) }, { BlockPool.release($0) },
      { BlockPool.reallocate($0, $1) },
      { BlockPool.duplicate($0) }, { BlockPool.allocateCleared($0, $1) })
  }

  package static func allocate(_ size: Int) -> Block? {
    guard let pool = current else { return malloc(size) }
    return pool.pointee.take(size)
  }

  package static func release(_ block: Block?) {
    guard let block else { return }
    guard let pool = current else { return free(block) }
    pool.pointee.keep(block)
  }

  package static func reallocate(_ block: Block?, _ size: Int) -> Block? {
    guard let pool = current else { return realloc(block, size) }
    guard let block else { return pool.pointee.take(size) }
    return pool.pointee.grow(block, to: size)
  }

  package static func duplicate(_ text: UnsafePointer<CChar>?) -> UnsafeMutablePointer<CChar>? {
    guard let text else { return nil }
    let size = strlen(text) + 1
    guard let block = allocate(size) else { return nil }
    block.copyMemory(from: text, byteCount: size)
    return block.assumingMemoryBound(to: CChar.self)
  }

  package static func allocateCleared(_ count: Int, _ each: Int) -> Block? {
    guard let pool = current else { return calloc(count, each) }
    let (product, isTooMuch) = UInt(bitPattern: count).multipliedReportingOverflow(by: UInt(bitPattern: each))
    let size = Int(bitPattern: product)
    guard !isTooMuch, list(for: size) != nil else { return calloc(count, each) }
    guard let block = pool.pointee.take(size) else { return nil }
    memset(block, 0, size)
    return block
  }
}
