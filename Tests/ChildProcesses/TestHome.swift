import Foundation
import Glibc

/// Sets folders for caches and data of the test process, before Foundation reads their paths. Files of the user's
/// programs must not answer tests, and tests must leave no files there.
///
/// A plain `swift test` needs that. The scripts set `ALAMOFIRE_TEST_HOME` themselves, so that the folder can be
/// inspected afterwards. Programs that tests start inherit the variable.
private enum TestHome {
  static func make() {
    if let given = getenv("ALAMOFIRE_TEST_HOME") { return use(String(cString: given)) }
    let temporary = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    guard let path = strdup("\(temporary)/alamofire-tests-XXXXXX") else { return }
    defer { free(path) }
    guard mkdtemp(path) != nil else { return }
    setenv("ALAMOFIRE_TEST_HOME", path, 1)
    setenv("ALAMOFIRE_TEST_HOME_OWNER", "\(getpid())", 1)
    use(String(cString: path))
    atexit { TestHome.remove() }
  }

  private static func use(_ path: String) {
    mkdir(path, 0o700)
    for (variable, name) in [("XDG_CACHE_HOME", "cache"), ("XDG_DATA_HOME", "data")] {
      mkdir("\(path)/\(name)", 0o700)
      setenv(variable, "\(path)/\(name)", 1)
    }
  }

  private static func remove() {
    // Forked children of the tests have the handler too, and must not remove the folder.
    guard let owner = getenv("ALAMOFIRE_TEST_HOME_OWNER"), String(cString: owner) == "\(getpid())",
      let path = getenv("ALAMOFIRE_TEST_HOME")
    else { return }
    try? FileManager.default.removeItem(atPath: String(cString: path))
  }
}

// The linker collects functions that run before `main`. A test would run too late, because the first one may use a
// shared session.
@section(".init_array") @used
private let makeTestHome: @convention(c) () -> Void = { TestHome.make() }
