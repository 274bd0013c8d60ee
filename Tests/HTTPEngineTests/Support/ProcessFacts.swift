import FoundationEssentials
import Glibc
import Testing

/// What the kernel knows about this process. Only meaningful where nothing else runs: in the child of
/// an exit test.
enum ProcessFacts {
  /// Those of Dispatch's timers do not count: it opens one for each clock when it gets to it, for good.
  static var descriptorCount: Int { descriptors.count { $0 != "anon_inode:[timerfd]" } }

  /// What the descriptors are.
  static var descriptors: [String] {
    names(in: "/proc/self/fd").compactMap {
      try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
    }
  }

  /// The descriptors that a program would inherit that is started now.
  static var inheritedDescriptors: Set<Int32> {
    Set(
      names(in: "/proc/self/fd").compactMap { Int32($0) }.filter {
        let flags = fcntl($0, F_GETFD)
        return flags >= 0 && flags & FD_CLOEXEC == 0
      })
  }

  /// How many threads drive an engine.
  static var engineThreadCount: Int {
    names(in: "/proc/self/task").count { task in
      guard let data = FileManager.default.contents(atPath: "/proc/self/task/\(task)/comm") else {
        return false
      }
      return data == Data("http-engine\n".utf8)
    }
  }

  /// The processor time that this process has used.
  static var processorTime: Duration {
    // POSIX: in microseconds, whatever the machine.
    .microseconds(clock())
  }

  /// Asks again and again until it is so, for at most half a minute. The kernel tells nobody when a thread
  /// or a descriptor of this process is gone; whatever else a test waits for has an event of its own.
  static func eventually(_ isSo: () -> Bool) async -> Bool {
    let limit = ContinuousClock.now.advanced(by: .seconds(30))
    while !isSo() {
      guard ContinuousClock.now < limit else { return false }
      try? await Task.sleep(for: .milliseconds(2))
    }
    return true
  }

  private static func names(in folder: String) -> [String] {
    (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
  }
}

/// Fails a test that leaves a descriptor or a thread of an engine behind. For the child of an exit
/// test, where nobody else opens any.
enum LeakGuard {
  static func watch(
    _ location: SourceLocation = #_sourceLocation, _ body: () async throws -> Void
  ) async throws {
    // The first sleep of a process opens the descriptors of Dispatch's timers; the second question is
    // asked after one.
    var questions = 0
    _ = await ProcessFacts.eventually {
      questions += 1
      return questions == 2
    }
    let descriptors = ProcessFacts.descriptorCount
    let threads = ProcessFacts.engineThreadCount
    try await body()
    let isClean = await ProcessFacts.eventually {
      ProcessFacts.engineThreadCount <= threads && ProcessFacts.descriptorCount <= descriptors
    }
    #expect(
      isClean,
      """
      left behind: \(ProcessFacts.descriptorCount - descriptors) descriptors, \
      \(ProcessFacts.engineThreadCount - threads) threads; open are \(ProcessFacts.descriptors)
      """, sourceLocation: location)
  }
}
