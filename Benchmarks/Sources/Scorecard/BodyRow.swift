/// What is measured with one large body: a way of moving it.
package enum BodyRow: String, CaseIterable, Codable, Sendable {
  /// From a file to a server that drops it.
  case uploadFile = "upload-file"
  /// From a server to a new file.
  case downloadFile = "download-file"
  /// From a server, handed over in chunks that nobody keeps.
  case streamDiscard = "stream-discard"
}
