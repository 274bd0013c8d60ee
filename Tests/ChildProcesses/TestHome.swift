import Foundation
import Glibc

/// Gives the process of the tests folders of its own for caches and data, before Foundation looks for them: what the
/// user's programs have stored must not answer tests, and tests must leave nothing there.
///
/// A plain `swift test` needs that; the scripts name the folder in `ALAMOFIRE_TEST_HOME`, so that it can be looked at
/// afterwards. Programs that tests start inherit it.
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
    // Children of the tests that were forked have the handler too, and leave the folder alone.
    guard let owner = getenv("ALAMOFIRE_TEST_HOME_OWNER"), String(cString: owner) == "\(getpid())",
      let path = getenv("ALAMOFIRE_TEST_HOME")
    else { return }
    try? FileManager.default.removeItem(atPath: String(cString: path))
  }
}

// The linker collects what runs before `main`. No test can be early enough: the first one may use a shared session.
@section(".init_array") @used
private let makeTestHome: @convention(c) () -> Void = { TestHome.make() }
