import Foundation
import Glibc

/// Sets folders for caches, data, journals and temporary files of the test process, before Foundation reads their
/// paths. Files of the user's programs must not answer tests, and tests must not leave files there.
///
/// A plain `swift test` makes a folder and removes it at its end. The scripts set `ALAMOFIRE_TEST_HOME` themselves, so
/// that the folder can be inspected afterwards. Programs that tests start inherit the variables.
private enum TestHome {
  // Accessed before `main` and at the exit alone.
  nonisolated(unsafe) private static var temporary: [String] = []

  static func make() {
    // A program that tests start has all from its parent.
    guard getenv("ALAMOFIRE_TEST_HOME_OWNER") == nil else { return }
    setenv("ALAMOFIRE_TEST_HOME_OWNER", "\(getpid())", 1)
    atexit { TestHome.remove() }
    if let given = getenv("ALAMOFIRE_TEST_HOME") { return use(String(cString: given)) }
    guard let path = makeFolder(in: getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp") else { return }
    setenv("ALAMOFIRE_TEST_HOME", path, 1)
    use(path)
  }

  /// Makes a folder that is removed at the exit.
  private static func makeFolder(in parent: String) -> String? {
    guard let template = strdup("\(parent)/alamofire-tests-XXXXXX") else { return nil }
    defer { free(template) }
    guard let made = mkdtemp(template) else { return nil }
    chmod(made, 0o755)
    let path = String(cString: made)
    temporary.append(path)
    return path
  }

  private static func use(_ path: String) {
    mkdir(path, 0o755)
    let folders = [
      ("XDG_CACHE_HOME", "cache"), ("XDG_DATA_HOME", "data"), ("XDG_STATE_HOME", "state"), ("TMPDIR", "tmp"),
    ]
    for (variable, name) in folders {
      mkdir("\(path)/\(name)", 0o755)
      setenv(variable, "\(path)/\(name)", 1)
    }
    if !isUsableByServers("\(path)/tmp"), let folder = makeFolder(in: "/tmp") { setenv("TMPDIR", folder, 1) }
  }

  /// Whether servers of the tests can use a folder. Paths of their Unix-domain sockets may have 107 bytes, 60 of which
  /// they need below the folder. Those that the superuser starts read files as another user.
  private static func isUsableByServers(_ path: String) -> Bool {
    guard path.utf8.count <= 45 else { return false }
    let parts = path.split(separator: "/")
    return geteuid() != 0
      || parts.indices.allSatisfy { end in
        var status = stat()
        return stat("/" + parts[...end].joined(separator: "/"), &status) == 0 && status.st_mode & 0o001 != 0
      }
  }

  private static func remove() {
    // Forked children of the tests have the handler too, and must not remove the folders.
    guard let owner = getenv("ALAMOFIRE_TEST_HOME_OWNER"), String(cString: owner) == "\(getpid())" else {
      return
    }
    for path in temporary { try? FileManager.default.removeItem(atPath: path) }
  }
}

// The linker collects functions that run before `main`. A test would run too late, because the first one may use a
// shared session.
@section(".init_array") @used
private let makeTestHome: @convention(c) () -> Void = { TestHome.make() }
