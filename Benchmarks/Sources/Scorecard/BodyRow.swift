/// A measured way of moving one large body.
package enum BodyRow: String, CaseIterable, Codable, Sendable {
  /// From a file to a server that drops it.
  case uploadFile = "upload-file"
  /// From a server to a new file.
  case downloadFile = "download-file"
  /// From a server, handed over in chunks that the client drops.
  case streamDiscard = "stream-discard"
}
