import Foundation
import HTTPEngine
package import HTTPWire

/// Files that bodies come from and go to.
package enum BodyFiles {
  /// Opens a file that is sent, or a range of its bytes. Throws when it is missing, too short, or no regular file.
  package static func source(
    path: String, range: Range<Int64>? = nil
  ) throws(TransportFailure) -> any BodySource {
    try FileSource(path: path, range: range)
  }

  /// Returns a sink that writes a response to a file. `place` chooses the new file at `path`, or the file of an
  /// earlier download.
  package static func sink(
    path: String, place: @escaping @Sendable (ResponseHead) -> Result<DownloadPlace, TransportFailure>
  ) -> any FileBodySink {
    FileSink(path: path) { head in
      place(head).map { place in
        switch place {
        case .new: .new
        case .part(let path, let offset): .part(path: path, offset: offset)
        }
      }
    }
  }

  /// Returns the path of a new file in the temporary folder that belongs to this process. If the process is killed, a
  /// later process of the user removes the file.
  package static func temporaryPath(in folder: URL, suffix: String) -> String {
    TemporaryFiles.path(in: folder.path, suffix: suffix)
  }

  /// Removes the files of ended processes of this user in a folder; see ``temporaryPath(in:suffix:)``.
  package static func removeOrphans(in folder: URL) { TemporaryFiles.removeOrphans(in: folder.path) }

  /// Removes the file of an earlier download, unless another download is appending to it.
  package static func removePart(_ path: String) { FileSink.removePart(path) }

  /// Moves the first `count` bytes of an earlier download to a place where nothing is. Returns false if that is not
  /// possible, as while another download is appending to it.
  package static func movePart(_ path: String, to target: String, count: Int64) -> Bool {
    FileSink.movePart(path, to: target, count: count)
  }

  /// Moves a file to a place where nothing is, all of it at once. Returns the number of the error if nothing
  /// has happened.
  package static func move(_ source: String, to target: String) -> Int32? {
    guard case .failed(let code) = FileMove.move(source, to: target) else { return nil }
    return code
  }
}

/// The destination of the bytes of a download.
package enum DownloadPlace: Sendable {
  case new
  /// The file of an earlier download, after its first `offset` bytes.
  case part(path: String, offset: Int64)
}

/// A file that is written.
package protocol FileBodySink: BodySink {
  /// The path of the file.
  var path: String { get }
  /// The size of the file in bytes.
  var size: Int64 { get }
  /// Locks the file against other transfers, and waits until its bytes are on the disk. Returns their number; `nil` if
  /// the file is not open, or in use.
  func flush() -> Int64?
}

extension FileSink: FileBodySink {}
