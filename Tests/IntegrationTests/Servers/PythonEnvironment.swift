import ChildProcesses
import Foundation

/// The environment of Python in `.build/venv`, which `Scripts/install httpbin` makes.
enum PythonEnvironment {
  private static let folder = HTTPBinServer.packageRoot.appendingPathComponent(".build/venv")

  static let program = folder.appendingPathComponent("bin/python").path

  /// Returns whether the environment has a package. An older environment may lack it.
  static func has(_ package: String) -> Bool {
    let list = folder.appendingPathComponent("installed.txt")
    return (try? String(contentsOf: list, encoding: .utf8))?.contains("\n\(package)==") == true
  }
}
