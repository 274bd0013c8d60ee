package import Foundation
import Glibc

/// One run of a program to its end, with its output.
package struct ChildRun: Sendable {
  package let end: ChildProgram.End
  package let output: Data
  package let complaints: String

  /// The exit status; −1 if a signal ended the process.
  package var status: Int32 {
    if case .exited(let status) = end { status } else { -1 }
  }

  /// Runs `words`, the first of which is a path or a name in `PATH`. It blocks no thread of the pool.
  ///
  /// - Parameter isJoined: Whether ``output`` includes the standard error, in the order of the writes.
  package init(
    _ words: [String], environment: [String: String] = [:], input: URL? = nil, isJoined: Bool = false
  ) async throws {
    let said = Pipe()
    let complained = isJoined ? said : Pipe()
    let source = try input.map { try FileHandle(forReadingFrom: $0) }
    let program = try ChildProgram(
      words, environment: environment, input: source?.fileDescriptor,
      output: said.fileHandleForWriting.fileDescriptor,
      complaints: complained.fileHandleForWriting.fileDescriptor)
    try said.fileHandleForWriting.close()
    if !isJoined { try complained.fileHandleForWriting.close() }
    async let first = Self.everything(of: said)
    async let second = isJoined ? Data() : Self.everything(of: complained)
    output = try await first
    complaints = String(decoding: try await second, as: UTF8.self)
    end = await program.end()
  }

  private static func everything(of pipe: Pipe) async throws -> Data {
    try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread {
        continuation.resume(with: Result { try pipe.fileHandleForReading.readToEnd() ?? Data() })
      }
    }
  }
}
