import HTTPWire

/// Names of files, for `af` too.
package enum FileNames {
  /// Returns a file name that a server sends as one visible path component that is not hidden. Returns `nil` if nothing
  /// of it is left. It is the rule of `suggestedFilename`.
  ///
  /// - Parameter longest: The largest number of bytes.
  package static func component(of name: String, longest: Int) -> String? {
    SuggestedFilename.component(name, longest: longest)
  }

  /// Returns the path of a file beside another one, with `suffix` at the end of its name. The name is shortened if it
  /// would be too long.
  package static func path(beside path: String, suffix: String) -> String {
    CompanionName.path(beside: path, suffix: suffix)
  }
}
