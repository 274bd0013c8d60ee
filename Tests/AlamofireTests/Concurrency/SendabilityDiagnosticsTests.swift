import ChildProcesses
import Foundation
import Glibc
import Testing

/// The compiler's diagnostics for code of users that is not `Sendable`, in both language modes.
///
/// The targets of `SourceCompatibility` compile the same file in the Swift 5 mode. They cannot compile it in the Swift
/// 6 mode, where it has warnings, because their warnings are errors.
@Suite(.timeLimit(.minutes(5))) struct SendabilityDiagnosticsTests {
  @Test("Closures that are not Sendable are not errors in either language mode", arguments: ["5", "6"])
  func modes(mode: String) async throws {
    let output = try await compile("Sendability.swift", ["-swift-version", mode, "-D", "ALLOWS_WARNINGS"])
    #expect(output.lines(with: ": error:") == [])
    // Otherwise the file would contain no code of interest.
    #expect(output.lines(with: ": warning:").isEmpty == false)
  }

  @Test("Closures that are not Sendable cause no warnings in the Swift 5 mode")
  func swift5() async throws {
    let output = try await compile("Sendability.swift", ["-swift-version", "5", "-warnings-as-errors"])
    #expect(output.lines(with: ": error:") == [])
  }

  /// Returns the compiler's diagnostics for a file of `Tests/SourceCompatibility/Shared`.
  private func compile(_ name: String, _ options: [String]) async throws -> Diagnostics {
    let package = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
    let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let modules = URL(fileURLWithPath: program).deletingLastPathComponent().appendingPathComponent("Modules")
    let libraries = ["COpenSSL/include", "CPSL", "CZlib", "CBrotli", "CZstd", "CNghttp2", "CLinux/include"]
      .flatMap {
        ["-I", package.appendingPathComponent("Sources/\($0)").path]
      }
    let folder = try TemporaryFolder()
    let log = folder["diagnostics"]
    let descriptor = open(log.path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    defer { close(descriptor) }
    // The compiler leaves its own folder there.
    let compiler = try ChildProgram(
      ["swiftc", "-typecheck", "-D", "IMPORTS_FOUNDATION", "-I", modules.path] + libraries + options + [
        package.appendingPathComponent("Tests/SourceCompatibility/Shared/\(name)").path
      ], environment: ["TMPDIR": folder.url.path], output: descriptor, complaints: descriptor)
    let end = await compiler.end()
    let text = try String(contentsOf: log, encoding: .utf8)
    // A compiler that fails without a diagnostic did not work.
    if end != .exited(0), !text.contains(": error:") { Issue.record("\(end): \(text)") }
    return Diagnostics(text: text)
  }

  private struct Diagnostics {
    let text: String

    /// Returns the lines with a word and the name of a file. The compiler repeats them, indented, below the code.
    func lines(with word: String) -> [Substring] {
      text.split(separator: "\n").filter { $0.contains(word) && !$0.hasPrefix(" ") }
    }
  }
}
