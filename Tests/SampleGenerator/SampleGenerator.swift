import Foundation
import PackagePlugin

/// Writes the samples of the documents as sources of a test target.
@main struct SampleGenerator: BuildToolPlugin {
  func createBuildCommands(context: PluginContext, target: any Target) -> [Command] {
    let root = context.package.directoryURL
    let folder = context.pluginWorkDirectoryURL.appending(path: "Samples")
    let script = root.appending(path: "Scripts/samples")
    let inputs = [
      "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "Documentation", "Examples",
      "Benchmarks", "Sources",
    ]
    .flatMap { Self.files(below: root.appending(path: $0)) }
    return [
      .buildCommand(
        displayName: "Samples of \(target.name)", executable: script, arguments: [target.name, folder.path],
        inputFiles: [script] + inputs,
        outputFiles: ["Documents", "Comments", "TestServer"].map { folder.appending(path: "\($0).swift") })
    ]
  }

  /// Returns a file or a folder with all that may have samples. A folder changes when a file is added.
  private static func files(below place: URL) -> [URL] {
    let all =
      FileManager.default.enumerator(at: place, includingPropertiesForKeys: nil)?.allObjects as? [URL] ?? []
    return [place] + all.filter { $0.hasDirectoryPath || ["md", "swift"].contains($0.pathExtension) }
  }
}
