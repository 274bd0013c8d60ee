import Foundation

/// A run of SoakClient, which SwiftPM puts beside the tests.
struct ChildProcess {
  private static let program = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
    .deletingLastPathComponent().appendingPathComponent("SoakClient")

  enum End: Equatable { case exited(Int32), killed }

  private let process = Process()
  private let ends: AsyncStream<Void>
  private let complaints: URL

  /// - Parameters:
  ///   - folder: Its temporary folder.
  ///   - complaints: The file for what it says about failures.
  init(_ words: [String], folder: URL, complaints: URL) throws {
    self.complaints = complaints
    let (stream, continuation) = AsyncStream<Void>.makeStream()
    ends = stream
    process.executableURL = Self.program
    process.arguments = words
    process.environment = ProcessInfo.processInfo.environment.merging(["TMPDIR": folder.path]) { $1 }
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = FileHandle.nullDevice
    try Data().write(to: complaints)
    process.standardError = try FileHandle(forWritingTo: complaints)
    process.terminationHandler = { _ in continuation.finish() }
    try process.run()
  }

  /// What it said about failures.
  var said: String { (try? String(contentsOf: complaints, encoding: .utf8)) ?? "" }

  /// Ends it at once, by SIGKILL.
  func kill() { Foundation.kill(process.processIdentifier, SIGKILL) }

  /// Returns when it has ended.
  func end() async -> End {
    for await _ in ends {}
    // A test that is given up does not wait, and Foundation ends a process that asks too early.
    if process.isRunning {
      kill()
      process.waitUntilExit()
    }
    return process.terminationReason == .exit ? .exited(process.terminationStatus) : .killed
  }
}
