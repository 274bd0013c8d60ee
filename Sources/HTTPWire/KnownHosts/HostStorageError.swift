public import FoundationEssentials

/// Why a file with what is remembered of hosts could not be used.
public enum HostStorageError: Error, Sendable, Equatable, LocalizedError {
  /// Its folder belongs to somebody else, or others may write to it, who could change the file then.
  case folderNotOurs
  /// The file is there and cannot be read, or is too large to be one.
  case unreadable
  /// The file holds something else. It is left as it is.
  case otherFile
  /// This line of the file is none, counted from 1. The next time something is written, the file is whole again.
  case brokenLine(Int)
  /// The file could not be written.
  case notWritten

  /// What is wrong, and what to do about it.
  public var errorDescription: String? {
    switch self {
    case .folderNotOurs:
      "The folder of the file belongs to another user, or others may write to it; choose one of your own."
    case .unreadable: "The file cannot be read; check its permissions."
    case .otherFile: "The file holds something else and is not touched; choose another name."
    case .brokenLine(let number):
      "Line \(number) of the file is broken, and nothing of it is used; it will be replaced."
    case .notWritten: "The file could not be written; check the permissions of its folder and the space left."
    }
  }
}
