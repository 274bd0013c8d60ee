import Foundation

/// The properties by which a file is recognised.
struct UploadFileIdentity: Decodable, Equatable, Sendable {
  let size: Int64
  /// The time of the last change, in seconds since 1970.
  let modified: TimeInterval

  init(size: Int64, modified: TimeInterval) {
    self.size = size
    self.modified = modified
  }

  /// Reads the properties of a file; `nil` for anything but a regular file that exists. A symbolic link is followed, as
  /// it is when the file is sent.
  init?(_ url: URL) {
    var status = stat()
    guard url.isFileURL, stat(url.path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    // Foundation's rounding, because the times are compared, also with the ones that earlier versions noted.
    let seconds = TimeInterval(status.st_mtim.tv_sec) - Date.timeIntervalBetween1970AndReferenceDate
    let date = Date(timeIntervalSinceReferenceDate: seconds + TimeInterval(status.st_mtim.tv_nsec) / 1e9)
    self.init(size: Int64(status.st_size), modified: date.timeIntervalSince1970)
  }
}
