import FoundationEssentials
import Glibc
import HTTPWire
import Synchronization

/// The names of temporary files: partial downloads and encoded forms.
///
/// A lock distinguishes a file in use from one that a killed process left. Each process holds an exclusive `flock` on
/// one empty file per folder for its whole life. The names of its temporary files contain the owner of that lock. The
/// first file of a process removes the files of all owners that no longer hold their lock. The kernel releases a lock
/// with its process, and a lock holds across containers of one machine. Owners of another boot are ignored, because
/// several machines may share the folder.
package enum TemporaryFiles {
  static let prefix = "Alamofire_"
  private static let lockSuffix = ".lock"

  /// The owner of each folder that this process has used; `nil` if no lock could be acquired.
  private static let owners = TrackedMutex<[ByteText: String?]>([:])

  /// Returns the path of a new temporary file in `folder`; the file is not created. The owner removes the file, or
  /// renames it to a name without an owner if it is to outlive the process.
  ///
  /// - Parameter suffix: The end of the name, such as `.part`.
  package static func path(in folder: String, suffix: String) -> String {
    let (owner, isFirst) = owners.withLock { owners in
      if let owner = owners[ByteText(folder)] { return (owner, false) }
      let owner = makeOwner(in: folder)
      owners[ByteText(folder)] = .some(owner)
      return (owner, true)
    }
    // This runs on another thread because a folder can have many entries.
    if isFirst { Task.detached(priority: .background) { removeOrphans(in: folder) } }
    let name = UUID().uuidString
    guard let owner else { return "\(folder)/\(prefix)\(name)\(suffix)" }
    return "\(folder)/\(prefix)\(owner)_\(name)\(suffix)"
  }

  /// The first digits of the identifier of this boot, which precede each owner.
  private static let boot: String? = {
    let text = try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)
    return text.flatMap { $0.count >= 8 ? String($0.prefix(8)) : nil }
  }()

  /// Creates and locks the file of an owner. The descriptor stays open until the process ends.
  private static func makeOwner(in folder: String) -> String? {
    guard let boot else { return nil }
    for _ in 0..<3 {
      let owner = "\(boot)-\(UUID().uuidString)"
      let path = "\(folder)/\(prefix)\(owner)\(lockSuffix)"
      let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
      guard descriptor >= 0 else { return nil }
      guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
        let isTaken = errno == EWOULDBLOCK
        close(descriptor)
        if isTaken { continue }
        // On a file system without locks, files in use cannot be distinguished from orphans.
        unlink(path)
        return nil
      }
      var status = stat()
      if fstat(descriptor, &status) == 0, status.st_nlink > 0 { return owner }
      // Another process took the file for one of an ended process before it was locked, and removed it.
      close(descriptor)
    }
    return nil
  }

  /// Removes the temporary files of processes of this user that have ended, on this machine and since its start.
  package static func removeOrphans(in folder: String) {
    guard let boot else { return }
    for name in names(in: folder) where name.hasPrefix("\(prefix)\(boot)-") && name.hasSuffix(lockSuffix) {
      removeFiles(of: String(name.dropLast(lockSuffix.count)), in: folder)
    }
  }

  /// Removes the files of an owner that no longer runs, and its lock.
  ///
  /// - Parameter owner: The beginning of the names of its files.
  private static func removeFiles(of owner: String, in folder: String) {
    let lock = "\(folder)/\(owner)\(lockSuffix)"
    let descriptor = open(lock, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, isOurs(status), flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      return
    }
    for name in names(in: folder) where name.hasPrefix("\(owner)_") {
      let path = "\(folder)/\(name)"
      guard lstat(path, &status) == 0, isOurs(status) else { continue }
      unlink(path)
    }
    // The lock file is removed last. If this process is killed before, another one continues.
    unlink(lock)
  }

  private static func isOurs(_ status: stat) -> Bool {
    status.st_mode & S_IFMT == S_IFREG && status.st_uid == geteuid()
  }

  private static func names(in folder: String) -> [String] {
    (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
  }
}
