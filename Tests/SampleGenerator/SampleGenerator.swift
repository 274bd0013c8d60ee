import PackagePlugin

/// Writes the samples of the documents as sources of a test target, before each build.
@main struct SampleGenerator: BuildToolPlugin {
  func createBuildCommands(context: PluginContext, target: any Target) -> [Command] {
    let folder = context.pluginWorkDirectoryURL.appending(path: "Samples")
    let script = context.package.directoryURL.appending(path: "Scripts/samples")
    return [
      .prebuildCommand(
        displayName: "Samples of \(target.name)", executable: script, arguments: [target.name, folder.path],
        outputFilesDirectory: folder)
    ]
  }
}
