import Foundation

/// An option of the file of defaults. Each line of the file has one option, and its value after a space or `=`, without
/// quotes. Empty lines and lines that begin with `#` are ignored.
package struct DefaultOption: Sendable {
  let choice: OptionReader.Choice

  /// Returns the path of the file: that of `AF_CONFIG`, or `af/config` in the folder for configurations (XDG Base
  /// Directory Specification); `nil` if `AF_CONFIG` is empty, or there is no such folder.
  static func path(_ variables: [String: String]) -> String? {
    if let path = variables["AF_CONFIG"] { return path.isEmpty ? nil : path }
    // A relative path is to be ignored.
    if let folder = variables["XDG_CONFIG_HOME"], folder.hasPrefix("/") { return "\(folder)/af/config" }
    return variables["HOME"].flatMap { $0.isEmpty ? nil : "\($0)/.config/af/config" }
  }

  /// Reads the file; none if there is no file, unless `AF_CONFIG` names it.
  static func read(_ variables: [String: String]) throws(UsageError) -> [DefaultOption] {
    guard let path = path(variables) else { return [] }
    guard variables["AF_CONFIG"] != nil || FileManager.default.fileExists(atPath: path) else { return [] }
    let content = try LocalFile.content(path, limit: LocalFile.largestSettings)
    guard let text = String(validating: content, as: UTF8.self) else {
      throw UsageError("The options in '\(path)' are not text in UTF-8.")
    }
    return try read(text, path: path)
  }

  static func read(_ text: String, path: String) throws(UsageError) -> [DefaultOption] {
    var options: [DefaultOption] = []
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      let line = line.trimmingCharacters(in: .whitespaces.union(["\r"]))
      if line.isEmpty || line.hasPrefix("#") { continue }
      let place = "\(path), line \(index + 1)"
      do throws(UsageError) {
        options += try read(line: line).map { choice in
          var choice = choice
          choice.place = place
          return DefaultOption(choice: choice)
        }
      } catch {
        throw UsageError("\(place): \(error.message)")
      }
    }
    return options
  }

  private static func read(line: String) throws(UsageError) -> [OptionReader.Choice] {
    let parts = line.split(maxSplits: 1, whereSeparator: \.isWhitespace).map {
      $0.trimmingCharacters(in: .whitespaces)
    }
    guard parts[0].hasPrefix("-") else {
      throw UsageError("'\(line)' is not an option. Header fields for every request belong into a --session.")
    }
    var reader = OptionReader(parts)
    try reader.readAll()
    guard reader.positionals.isEmpty else { throw UsageError("\(parts[0]) does not take a value.") }
    let hasText = reader.choices.contains { ["--completion", "--no-config"].contains($0.option.longName) }
    guard reader.text == nil, !hasText else { throw UsageError("\(parts[0]) is for the command line.") }
    return reader.choices
  }
}
