/// Which downloads are under way, which wait, and who waits for which: decisions without requests or threads.
struct DownloadBook<Key: Hashable & Sendable, Waiter: Sendable>: Sendable {
  /// A download that one or several receipts wait for.
  struct Download: Sendable {
    let key: Key
    /// Those who wait, with the numbers of their receipts, which are unique in the download.
    var waiters: [(receipt: UInt64, waiter: Waiter)]
    var isActive = false
    /// Whether the body of its response is in memory.
    var hasResponse = false
  }

  /// A change of a request. Changes are made in their order.
  enum BookStep: Equatable, Sendable {
    case start(UInt64)
    case cancel(UInt64)
  }

  let prioritization: ImageDownloader.DownloadPrioritization
  let maximumActive: Int
  private(set) var downloads: [UInt64: Download] = [:]
  private var numbers: [Key: UInt64] = [:]
  private var waiting = WaitingDownloads()
  private(set) var activeCount = 0
  private(set) var isStopped = false

  init(_ prioritization: ImageDownloader.DownloadPrioritization, maximumActive: Int) {
    self.prioritization = prioritization
    self.maximumActive = max(1, maximumActive)
  }

  var waitingCount: Int { waiting.count }

  /// Adds a waiter to the download with a key, and returns its number, or `nil` if there is none.
  mutating func join(_ key: Key, receipt: UInt64, _ waiter: Waiter) -> UInt64? {
    guard let number = numbers[key] else { return nil }
    downloads[number]?.waiters.append((receipt, waiter))
    return number
  }

  /// Adds a download, which begins when it is its turn.
  mutating func add(_ number: UInt64, _ key: Key, receipt: UInt64, _ waiter: Waiter) {
    downloads[number] = Download(key: key, waiters: [(receipt, waiter)])
    numbers[key] = number
    waiting.append(number)
  }

  /// Lets downloads begin, as many as may begin now.
  mutating func takeStarts() -> [BookStep] {
    var steps: [BookStep] = []
    while !isStopped, activeCount < maximumActive, let number = waiting.takeNext(prioritization) {
      downloads[number]?.isActive = true
      activeCount += 1
      steps.append(.start(number))
    }
    return steps
  }

  /// Takes a waiter off its download. Without waiters, the download is cancelled. If its response has arrived, it stays
  /// active until ``finish(_:)``, because the body is in memory.
  mutating func cancel(_ number: UInt64, receipt: UInt64) -> (waiter: Waiter, steps: [BookStep])? {
    guard let waiter = take(number, receipt: receipt), let download = downloads[number] else { return nil }
    guard download.waiters.isEmpty else { return (waiter, []) }
    guard download.isActive, download.hasResponse else { return (waiter, [.cancel(number)] + remove(number)) }
    close(number)
    return (waiter, [.cancel(number)])
  }

  /// Notes that the response of a download has arrived, which others can still join. It does not begin any more.
  ///
  /// - Returns: Whether there is such a download. It is over if it was cancelled.
  mutating func receive(_ number: UInt64) -> Bool {
    guard downloads[number] != nil else { return false }
    downloads[number]?.hasResponse = true
    waiting.remove(number)
    return true
  }

  /// Notes that the images of a response are being made. From now on, a request for the same image is another download.
  /// This one stays active until ``finish(_:)``.
  mutating func close(_ number: UInt64) {
    guard receive(number), let download = downloads[number], numbers[download.key] == number else { return }
    numbers[download.key] = nil
  }

  /// Returns the waiter of a download that is answered next. It can still be cancelled.
  func next(_ number: UInt64) -> (receipt: UInt64, waiter: Waiter)? { downloads[number]?.waiters.first }

  /// Takes a waiter off its download to answer it, unless it was cancelled.
  mutating func take(_ number: UInt64, receipt: UInt64) -> Waiter? {
    guard let index = downloads[number]?.waiters.firstIndex(where: { $0.receipt == receipt }) else {
      return nil
    }
    return downloads[number]?.waiters.remove(at: index).waiter
  }

  /// Takes all downloads that have not begun, with their waiters. None begins any more.
  mutating func takeWaiting() -> [(number: UInt64, waiters: [Waiter])] {
    isStopped = true
    var taken: [(number: UInt64, waiters: [Waiter])] = []
    while let number = waiting.takeNext(prioritization) {
      taken.append((number, waiters(of: number)))
      _ = remove(number)
    }
    return taken
  }

  /// Removes a download, and lets others begin.
  mutating func finish(_ number: UInt64) -> [BookStep] { remove(number) }

  mutating func stop() { isStopped = true }

  mutating func start() -> [BookStep] {
    isStopped = false
    return takeStarts()
  }

  /// Returns the waiters of a download.
  func waiters(of number: UInt64) -> [Waiter] { downloads[number]?.waiters.map(\.waiter) ?? [] }

  private mutating func remove(_ number: UInt64) -> [BookStep] {
    guard let download = downloads.removeValue(forKey: number) else { return [] }
    if numbers[download.key] == number { numbers[download.key] = nil }
    if download.isActive { activeCount -= 1 } else { waiting.remove(number) }
    return takeStarts()
  }
}

/// The numbers of the downloads that wait. Each operation takes constant time on average.
private struct WaitingDownloads: Sendable {
  /// In the order in which they were added, with some that no longer wait.
  private var numbers: [UInt64] = []
  /// The number of those at the beginning that no longer wait.
  private var head = 0
  private var present: Set<UInt64> = []

  var count: Int { present.count }

  mutating func append(_ number: UInt64) {
    if present.insert(number).inserted { numbers.append(number) }
  }

  mutating func remove(_ number: UInt64) {
    guard present.remove(number) != nil else { return }
    compact()
  }

  /// Takes the one that begins next; `nil` if none waits.
  mutating func takeNext(_ order: ImageDownloader.DownloadPrioritization) -> UInt64? {
    while head < numbers.count {
      let number: UInt64
      switch order {
      case .fifo:
        number = numbers[head]
        head += 1
      case .lifo: number = numbers.removeLast()
      }
      guard present.remove(number) != nil else { continue }
      compact()
      return number
    }
    return nil
  }

  /// Removes those that no longer wait, when they are most.
  private mutating func compact() {
    guard numbers.count > 2 * present.count + 32 else { return }
    numbers = numbers[head...].filter { present.contains($0) }
    head = 0
  }
}
