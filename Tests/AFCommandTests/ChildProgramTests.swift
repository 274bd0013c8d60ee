import ChildProcesses
import Foundation
import Glibc
import Testing

/// The programs that the tests run as child processes.
@Suite("Child programs", .timeLimit(.minutes(1))) struct ChildProgramTests {
  /// Tries the lowest numbers that a pipe can have, and some of a process with hundreds of open sockets.
  @Test("What a program writes arrives, whatever number its descriptor has")
  func numbers() async throws {
    for lowest in Array(Int32(3)..<12) + [898, 899, 900, 901, 902] {
      let said = Pipe()
      let complained = Pipe()
      let output = fcntl(said.fileHandleForWriting.fileDescriptor, F_DUPFD_CLOEXEC, lowest)
      let complaints = fcntl(complained.fileHandleForWriting.fileDescriptor, F_DUPFD_CLOEXEC, lowest)
      let program = try ChildProgram(
        ["sh", "-c", "cat; echo said; echo complained >&2"], output: output, complaints: complaints)
      #expect(await program.end() == .exited(0))
      for descriptor in [output, complaints] { close(descriptor) }
      try said.fileHandleForWriting.close()
      try complained.fileHandleForWriting.close()
      #expect(try said.fileHandleForReading.readToEnd() == Data("said\n".utf8), "from \(lowest)")
      #expect(try complained.fileHandleForReading.readToEnd() == Data("complained\n".utf8), "from \(lowest)")
    }
  }
}
