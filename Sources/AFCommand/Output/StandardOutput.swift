import Alamofire
import Foundation
import Glibc

/// The reason why bytes were not written to the standard output.
package struct OutputFailure: Error, Equatable, Sendable {
  /// The value of `errno`.
  package let code: Int32

  package init(code: Int32) { self.code = code }
}

/// The standard output up to the first write that fails, so that no output follows a gap.
final class StandardOutput: Sendable {
  private let output: @Sendable (Data) throws(OutputFailure) -> Void
  /// The first failure of a write, for the queues of the output and the main thread.
  private let firstFailure = Mutex<OutputFailure?>(nil)

  init(_ output: @escaping @Sendable (Data) throws(OutputFailure) -> Void) { self.output = output }

  /// Returns whether all bytes were written.
  func write(_ data: Data) -> Bool {
    guard firstFailure.withLock({ $0 == nil }) else { return false }
    do throws(OutputFailure) {
      try output(data)
      return true
    } catch {
      firstFailure.withLock { $0 = $0 ?? error }
      return false
    }
  }

  /// The sentence for an output that was not written. `nil` if all was written, and if the reader of a pipe has seen
  /// enough (`af … | head`).
  var failure: String? {
    guard let failure = firstFailure.withLock({ $0 }), failure.code != EPIPE else { return nil }
    return "The output cannot be written: \(String(cString: strerror(failure.code)))."
  }
}

/// The descriptors 0, 1 and 2 of a process.
enum StandardDescriptors {
  /// Opens the descriptors that are closed. Otherwise a socket or a file could get the number of the standard output,
  /// and bodies would be written into it. They are opened so that a read or a write fails as on a closed one.
  ///
  /// - Returns: Those that the runtime of Swift has opened for itself before, and that must not be used.
  static func reserve() -> Set<Int32> {
    var taken: Set<Int32> = []
    for (descriptor, mode) in [
      (STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_RDONLY),
    ] {
      if fcntl(descriptor, F_GETFD) >= 0 {
        if isOfRuntime(descriptor) { taken.insert(descriptor) }
        continue
      }
      let opened = open("/dev/null", mode)
      guard opened >= 0, opened != descriptor else { continue }
      dup2(opened, descriptor)
      close(opened)
    }
    return taken
  }

  /// Whether a descriptor is an event source, which no program has as its input or output.
  private static func isOfRuntime(_ descriptor: Int32) -> Bool {
    var target = [CChar](repeating: 0, count: 64)
    let count = readlink("/proc/self/fd/\(descriptor)", &target, target.count)
    return count > 0 && target.map { UInt8(bitPattern: $0) }.starts(with: "anon_inode:".utf8)
  }
}

/// The file of `--har`: an HTTP archive of the requests that were sent.
final class ArchiveFile: Sendable {
  let recorder = RequestRecorder()
  private let path: String

  /// Checks the path, so that one that cannot be written is found before a request is sent; `nil` without the option.
  /// An earlier archive stays until the new one is complete.
  init?(_ invocation: Invocation) throws(UsageError) {
    guard let path = invocation.archive else { return nil }
    self.path = path
    var isFolder: ObjCBool = false
    let exists = FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
    if isFolder.boolValue { throw UsageError(SavedFile.Failure(path, code: EISDIR).sentence) }
    guard access(exists ? path : Self.folder(path), W_OK) == 0 else {
      throw UsageError(SavedFile.Failure(path).sentence)
    }
  }

  private static func folder(_ path: String) -> String {
    URL(fileURLWithPath: path).deletingLastPathComponent().path
  }

  /// Writes the requests that have ended. Returns the reason if they cannot be written.
  func write() -> String? {
    recorder.queue.sync {}
    do {
      let archive = try recorder.har()
      // A new archive is accessible only to its owner, because not all secrets can be recognized.
      try PrivateFile.write(archive, to: path, keepsMode: true)
      return nil
    } catch let failure as PrivateFile.Failure {
      return SavedFile.Failure(path, code: failure.code).sentence
    } catch {
      return error.localizedDescription
    }
  }
}
