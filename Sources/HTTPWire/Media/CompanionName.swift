/// The name of a file beside another one, such as the record of a partial file. It fits into a file system however long
/// the name of the other file is.
package enum CompanionName {
  /// Returns the path of a file beside `path`, with `suffix` at the end of its name. A name that would be too long is
  /// shortened, and has a hash of the whole name in front of the suffix.
  ///
  /// - Parameter count: The number of bytes by which the caller makes the name longer.
  package static func path(beside path: String, suffix: String, reserving count: Int = 0) -> String {
    let name =
      path.utf8.lastIndex(of: UInt8(ascii: "/")).map { path[path.utf8.index(after: $0)...] } ?? path[...]
    let room = SuggestedFilename.longest - suffix.utf8.count - count
    guard name.utf8.count > room else { return path + suffix }
    let hash = FNVHash(name).text
    var stem = name
    while stem.utf8.count > room - hash.utf8.count - 1 { stem.removeLast() }
    return "\(path[..<name.startIndex])\(stem)~\(hash)\(suffix)"
  }
}
