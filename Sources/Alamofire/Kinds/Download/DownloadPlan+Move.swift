import Foundation
import FoundationNetworking
import HTTPSystem

// The move of a complete file to its destination.
extension DownloadPlan {
  /// The place to which the file of a background download is moved.
  struct Place {
    let url: URL
    let options: MoveOptions
    /// Whether the file gets the mode that the umask gives to new files. Other users may read the temporary folder.
    let isShared: Bool
  }

  /// Returns the place for a file in the folder of a background session. Without a destination, or if it is the file
  /// itself, this is the temporary folder, because the folder of the session is not the caller's.
  func place(of source: URL, _ chosen: (URL, MoveOptions)?) -> Place {
    guard let (url, options) = chosen, !Self.isSameFile(source, url) else {
      return Place(url: Self.temporaryTarget, options: [], isShared: false)
    }
    return Place(url: url, options: options, isShared: destination != nil)
  }

  /// Moves the file of a download. At its destination it has the mode that the umask gives to new files. A previous
  /// file stays if the move fails.
  ///
  /// - Parameters:
  ///   - isShared:      Whether the file gets that mode. Without, only its owner can read it.
  ///   - removesSource: Whether a file that cannot be moved is removed.
  static func move(
    _ source: URL, to target: URL, _ options: MoveOptions, isShared: Bool = true, removesSource: Bool = true
  ) -> Result<URL, AFError> {
    guard !isSameFile(source, target) else { return .success(target) }
    let files = FileManager.default
    do {
      // A URL of another scheme has a path, too, at which the download would not be found.
      guard target.isFileURL else {
        throw CocoaError(.fileWriteUnsupportedScheme, userInfo: [NSURLErrorKey: target])
      }
      let isReplacing = try options.contains(.removePreviousFile) && hasFile(at: target)
      if options.contains(.createIntermediateDirectories) {
        try files.createDirectory(
          at: target.deletingLastPathComponent(), withIntermediateDirectories: true)
      }
      switch FileMove.move(source.path, to: target.path, isShared: isShared, isReplacing: isReplacing) {
      case .moved: break
      case .failed(ENOSPC), .failed(EDQUOT): throw CocoaError(.fileWriteOutOfSpace)
      case .failed(EIO), .failed(EFBIG): throw CocoaError(.fileWriteUnknown)
      // Foundation would not replace the file.
      case .failed(let code) where isReplacing: throw failure(code, String(cString: strerror(code)))
      // Foundation throws the reason or moves the file.
      case .failed: try files.moveItem(at: source, to: target)
      }
      return .success(target)
    } catch {
      if removesSource { try? files.removeItem(at: source) }
      return .failure(.downloadedFileMoveFailed(error: error, source: source, destination: target))
    }
  }

  /// Whether there is a file, or a link, that a download replaces. Throws if a folder is there, because its content is
  /// not what the caller wants to lose.
  private static func hasFile(at target: URL) throws -> Bool {
    // This does not follow links, and so also finds a link to a missing file.
    guard let attributes = try? FileManager.default.attributesOfItem(atPath: target.path) else {
      return false
    }
    guard attributes[.type] as? FileAttributeType != .typeDirectory else {
      throw failure(
        EISDIR, "It is a folder, which a file does not replace. Add the name of a file to the destination.")
    }
    return true
  }

  private static func failure(_ code: Int32, _ text: String) -> NSError {
    NSError(domain: NSPOSIXErrorDomain, code: Int(code), userInfo: [NSLocalizedDescriptionKey: text])
  }

  /// Whether the file is at its destination already, however the path is spelt.
  private static func isSameFile(_ source: URL, _ target: URL) -> Bool {
    guard source != target else { return true }
    // Names that are equal as texts may differ in their bytes.
    let names = [source, target].map { Array($0.lastPathComponent.utf8) }
    guard target.isFileURL, names[0] == names[1] else { return false }
    let folders = [source, target].map {
      Array($0.deletingLastPathComponent().resolvingSymlinksInPath().path.utf8)
    }
    return folders[0] == folders[1]
  }
}
