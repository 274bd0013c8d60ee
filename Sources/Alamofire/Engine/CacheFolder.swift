import HTTPEngine
package import HTTPWire

/// Folders in which responses are stored.
package enum CacheFolder {
  /// `nil` when there is no such folder that is ours alone, and none can be made.
  package static func open(_ path: String) -> (any EntryFiles)? { EntryFolder(path: path) }
}
