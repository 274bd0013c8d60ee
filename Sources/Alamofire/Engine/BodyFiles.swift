import HTTPEngine
package import HTTPWire

/// Files that bodies come from and go to.
package enum BodyFiles {
  /// A file that is sent. Throws when it is not there, or no regular file.
  package static func source(path: String) throws(TransportFailure) -> any BodySource {
    try FileSource(path: path)
  }
}
