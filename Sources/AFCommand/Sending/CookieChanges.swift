import Foundation
import FoundationNetworking
import Glibc

/// The cookies that a run has added, changed or removed.
struct CookieChanges {
  /// The identity of a cookie (RFC 6265 §5.3), by its bytes: names that Unicode calls equal are different names.
  private struct Key: Hashable {
    let bytes: [UInt8]

    init(_ cookie: HTTPCookie) {
      bytes = Array([cookie.domain.lowercased(), cookie.path, cookie.name].joined(separator: "\t").utf8)
    }
  }

  /// The new value of each cookie that differs; `nil` for one that is gone.
  private var changes: [Key: HTTPCookie?] = [:]
  private let earlier: [Key: HTTPCookie]

  var isEmpty: Bool { changes.isEmpty }

  init(from earlier: [HTTPCookie], to later: [HTTPCookie]) {
    let (before, after) = (Self.byKey(earlier), Self.byKey(later))
    self.earlier = before
    for (key, cookie) in after where !Self.isSame(cookie, before[key]) {
      changes.updateValue(cookie, forKey: key)
    }
    for key in before.keys where after[key] == nil { changes.updateValue(nil, forKey: key) }
  }

  /// Returns cookies with the changes. A cookie that is gone stays if another run has changed it.
  func applied(to cookies: [HTTPCookie]) -> [HTTPCookie] {
    var all = Self.byKey(cookies)
    for (key, change) in changes {
      if let change {
        all[key] = change
      } else if Self.isSame(all[key], earlier[key]) {
        all[key] = nil
      }
    }
    return Array(all.values)
  }

  /// Returns the cookies by their identity. Of equal ones the last counts.
  private static func byKey(_ cookies: [HTTPCookie]) -> [Key: HTTPCookie] {
    Dictionary(cookies.map { (Key($0), $0) }, uniquingKeysWith: { $1 })
  }

  private static func isSame(_ one: HTTPCookie?, _ other: HTTPCookie?) -> Bool {
    guard let one, let other else { return one == nil && other == nil }
    let (line, otherLine) = (CookieJarLine(one), CookieJarLine(other))
    return line == otherLine && line.value.utf8.elementsEqual(otherLine.value.utf8)
  }
}

/// A lock of the folder of a file, so that two programs do not change the file at once. The file itself cannot be
/// locked, because a new one replaces it.
struct FolderLock {
  private let descriptor: Int32

  /// Waits for the lock, at most two seconds: another program may hold it for another purpose. File systems without
  /// locks have none.
  init(of path: String) {
    let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
    descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    for _ in 0..<100 {
      if flock(descriptor, LOCK_EX | LOCK_NB) == 0 || ![EWOULDBLOCK, EINTR].contains(errno) { return }
      usleep(20_000)
    }
  }

  func release() {
    guard descriptor >= 0 else { return }
    // A process that is being started has a copy of the descriptor until its program begins.
    flock(descriptor, LOCK_UN)
    close(descriptor)
  }
}
