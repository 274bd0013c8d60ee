/// A measured way to move a large body.
package enum BodyRow: String, CaseIterable, Codable, Sendable {
  /// From a file to a server that drops it.
  case uploadFile = "upload-file"
  /// From a server to a new file.
  case downloadFile = "download-file"
  /// From a server, delivered in chunks that are dropped.
  case streamDiscard = "stream-discard"
}
