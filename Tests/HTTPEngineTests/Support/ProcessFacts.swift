import FoundationEssentials
import Glibc
import Testing

/// Facts of the kernel about this process. They are meaningful in the child of an exit test, where no other code runs.
enum ProcessFacts {
  /// The number of descriptors. Dispatch's timers do not count, because Dispatch opens one for each clock at its first
  /// use.
  static var descriptorCount: Int { descriptors.count { $0 != "anon_inode:[timerfd]" } }

  /// The targets of the descriptors.
  static var descriptors: [String] {
    names(in: "/proc/self/fd").compactMap {
      try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
    }
  }

  /// The descriptors that a child process would inherit.
  static var inheritedDescriptors: Set<Int32> {
    Set(
      names(in: "/proc/self/fd").compactMap { Int32($0) }.filter {
        let flags = fcntl($0, F_GETFD)
        return flags >= 0 && flags & FD_CLOEXEC == 0
      })
  }

  /// The number of threads of engines.
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
    // POSIX: in microseconds on every machine.
    .microseconds(clock())
  }

  /// Polls a condition for at most half a minute. Only for threads and descriptors, because the kernel has no event for
  /// their end. Other conditions have events.
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

/// Fails a test if an engine leaves a descriptor or a thread behind. For the child of an exit test, where no other code
/// opens any.
enum LeakGuard {
  static func watch(
    _ location: SourceLocation = #_sourceLocation, _ body: () async throws -> Void
  ) async throws {
    // The first sleep of a process opens the descriptors of Dispatch's timers. The second check runs after a sleep.
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
