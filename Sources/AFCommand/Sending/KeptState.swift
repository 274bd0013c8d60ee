import Alamofire
package import Foundation
import FoundationNetworking
import Glibc

/// The state that persists from one run of the command to the next: a session, a cookie jar, or both.
///
/// A run may take hours, and others may change the files while it does. So a file is read again before it is written,
/// and only the changes of this run are applied to it.
final class KeptState: Sendable {
  /// A cookie jar and its cookies as they were read.
  private struct Jar {
    let path: String
    let cookies: [HTTPCookie]
  }

  /// The session as it was read.
  private let named: NamedSession?
  /// The file of the session; `nil` if it is not written.
  private let path: String?
  private let jar: Jar?
  /// The folder of the session that is made for it; `nil` if the session is named by its path.
  private let folder: String?
  /// Whether the arguments have credentials.
  private let hasTypedCredentials: Bool
  /// The reason if the state was not stored, for the main thread and its task.
  private let storeFailure = Mutex<String?>(nil)
  /// The cookies of both, with which the run begins. Of equal ones the last counts.
  let cookies: [HTTPCookie]
  /// The reason if the state could not be stored.
  var failure: String? { storeFailure.withLock { $0 } }

  init(_ invocation: Invocation, variables: [String: String]) throws(UsageError) {
    hasTypedCredentials = invocation.credentials != nil
    var cookies: [HTTPCookie] = []
    if let name = invocation.session {
      let host = NamedSession.host(of: URLComponents(string: invocation.url))
      let (folder, path) = NamedSession.place(name, host: host, variables: variables)
      let kept = try NamedSession(path: path)
      cookies += kept.cookieLines.compactMap(\.cookie)
      named = kept
      self.path = invocation.isSessionReadOnly ? nil : path
      self.folder = folder
    } else {
      (named, path, folder) = (nil, nil, nil)
    }
    jar = try invocation.cookieJar.map { path throws(UsageError) in
      Jar(path: path, cookies: try CookieJar.read(path))
    }
    self.cookies = cookies + (jar?.cookies ?? [])
  }

  /// Returns the cookies of the session that a request gets.
  func sessionCookies(for url: URL?) -> [HTTPCookie] {
    Self.matching(named?.cookieLines.compactMap(\.cookie) ?? [], for: url)
  }

  /// Returns the cookies of the session and the cookie jar that a request gets.
  func requestCookies(for url: URL?) -> [HTTPCookie] { Self.matching(cookies, for: url) }

  private static func matching(_ all: [HTTPCookie], for url: URL?) -> [HTTPCookie] {
    let storage = URLSessionConfiguration.ephemeral.httpCookieStorage
    for cookie in all { storage?.setCookie(cookie) }
    return url.flatMap { storage?.cookies(for: $0) } ?? []
  }

  /// Returns the invocation with what the session stores.
  func applied(to invocation: Invocation) throws(UsageError) -> Invocation {
    try named?.applied(to: invocation) ?? invocation
  }

  /// Checks the files, so that one that cannot be written is found before a request is sent.
  func checkFiles() throws(UsageError) {
    if path != nil, let folder { try NamedSession.makeFolder(folder) }
    for file in [path, jar?.path].compactMap({ $0 }) {
      var isFolder: ObjCBool = false
      let exists = FileManager.default.fileExists(atPath: file, isDirectory: &isFolder)
      if isFolder.boolValue { throw UsageError(SavedFile.Failure(file, code: EISDIR).sentence) }
      try LocalFile.checkLink(file)
      if exists, !LocalFile.isRegular(file) { continue }
      // A new file is created next to the earlier one.
      let folder = URL(fileURLWithPath: file).deletingLastPathComponent().path
      guard access(folder, W_OK) == 0 else { throw UsageError(SavedFile.Failure(file).sentence) }
    }
  }

  /// Stores what was typed, and the cookies that have changed since the files were read.
  func store(from session: Session, _ invocation: Invocation) {
    let later = session.sessionConfiguration.httpCookieStorage?.cookies ?? []
    if let named, let path {
      note { () throws(UsageError) in
        try Self.update(path) { () throws(UsageError) -> Data? in
          let found = LocalFile.isSpecial(path) ? named : try NamedSession(path: path)
          var current = found
          current.remember(invocation, hasTypedCredentials: hasTypedCredentials)
          let changes = CookieChanges(from: named.cookieLines.compactMap(\.cookie), of: cookies, to: later)
          if changes.isEmpty, current == found, LocalFile.isRegular(path) { return nil }
          current.cookies = CookieJar.lines(changes.applied(to: current.cookieLines.compactMap(\.cookie)))
          return try current.content(for: path)
        }
      }
    }
    guard let jar else { return }
    note { () throws(UsageError) in
      try Self.update(jar.path) { () throws(UsageError) -> Data? in
        let changes = CookieChanges(from: jar.cookies, of: cookies, to: later)
        if LocalFile.isSpecial(jar.path) { return CookieJar.content(changes.applied(to: jar.cookies)) }
        if changes.isEmpty, LocalFile.isRegular(jar.path) { return nil }
        return CookieJar.content(changes.applied(to: try CookieJar.read(jar.path)))
      }
    }
  }

  /// Writes the new content of a file, unless it has that content or `content` returns `nil`. Another run waits until
  /// that is done. Pipes and devices are never read again.
  private static func update(_ path: String, _ content: () throws(UsageError) -> Data?) throws(UsageError) {
    let lock = FolderLock(of: PrivateFile.destination(of: path))
    defer { lock.release() }
    let mode = mode(of: path)
    guard let new = try content() else {
      // Cookies and credentials are for the owner alone.
      if let mode, mode & 0o077 != 0 { chmod(path, mode & 0o700) }
      return
    }
    // A new file is for its owner alone.
    if let mode, mode & 0o077 == 0, try LocalFile.content(path, limit: LocalFile.largestSettings) == new {
      return
    }
    try write(new, to: path)
  }

  /// Returns the permissions of a regular file; `nil` if there is none.
  private static func mode(of path: String) -> mode_t? {
    var information = stat()
    guard stat(path, &information) == 0, information.st_mode & S_IFMT == S_IFREG else { return nil }
    return information.st_mode & 0o7777
  }

  /// Writes one of the files.
  private static func write(_ data: Data, to path: String) throws(UsageError) {
    do throws(PrivateFile.Failure) {
      try PrivateFile.write(data, to: path)
    } catch {
      throw UsageError(SavedFile.Failure(path, code: error.code).sentence)
    }
  }

  private func note(_ write: () throws(UsageError) -> Void) {
    do throws(UsageError) { try write() } catch { storeFailure.withLock { $0 = $0 ?? error.message } }
  }
}

extension NamedSession {
  /// Returns the name of an origin: `example.com` for port 443 of `https`, `example.com_8443_tls` for another one of
  /// its ports, and `example.com_80` for a port of `http`. The schemes never share a name, because the secrets for one
  /// of them need TLS.
  static func host(of url: URLComponents?) -> String {
    let isSecure = ["https", "wss"].contains(url?.scheme?.lowercased())
    let host = url?.host?.lowercased() ?? ""
    let port = url?.port ?? (isSecure ? 443 : 80)
    // A host such as `box_80` is called like another one with its port.
    let isAmbiguous = host.split(separator: ".").last?.contains("_") == true
    if isSecure, port == 443, !isAmbiguous { return host }
    return "\(host)_\(port)" + (isSecure ? "_tls" : "")
  }

  /// Returns the file of a session. If its name is a path, the path is the file; otherwise the file is in the folder
  /// for the data of programs. There each host has its own folder, so that no host sees the secrets of another. The
  /// folder is `nil` for a path. A relative `XDG_DATA_HOME` is ignored, as its specification demands.
  static func place(
    _ name: String, host: String, variables: [String: String]
  ) -> (folder: String?, path: String) {
    if name.utf8.contains(UInt8(ascii: "/")) { return (nil, LocalFile.expanded(name)) }
    let home =
      variables["XDG_DATA_HOME"].flatMap { $0.utf8.first == UInt8(ascii: "/") ? $0 : nil }
      ?? LocalFile.home(variables["HOME"]) + "/.local/share"
    let part = String(String.UnicodeScalarView(host.unicodeScalars.map { $0 == "/" ? "_" : $0 }))
    let folder = "\(home)/af/sessions/\(part)"
    return (folder, "\(folder)/\(name).json")
  }

  /// Makes the folder of a session, for its owner alone.
  static func makeFolder(_ folder: String) throws(UsageError) {
    do {
      try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      throw UsageError("The folder '\(folder)' cannot be created.")
    }
  }

  /// Reads a session from its file; an empty one if there is no file yet.
  init(path: String) throws(UsageError) {
    self.init()
    guard FileManager.default.fileExists(atPath: path) else { return }
    do {
      self = try NamedSession(try LocalFile.content(path, limit: LocalFile.largestSettings))
    } catch let error as UsageError {
      throw error
    } catch {
      throw UsageError("'\(path)' is not a session of af.")
    }
  }

  /// Returns the content of the file.
  ///
  /// - Parameter path: The path of the file, for errors.
  func content(for path: String) throws(UsageError) -> Data {
    guard let data = try? encoded() else { throw UsageError("'\(path)' cannot be written.") }
    return data
  }

  // MARK: Use

  /// Returns the invocation with the fields and credentials of the session after the ones that were typed. Typed
  /// credentials are stronger than a stored `Authorization` field, and a typed field than stored credentials.
  func applied(to invocation: Invocation) throws(UsageError) -> Invocation {
    var invocation = invocation
    var typed = Set(
      invocation.items.compactMap { item in
        switch item {
        case .header(let name, _), .omission(let name): name.lowercased()
        default: nil
        }
      })
    let hasField = invocation.typedFields.single["Authorization"] != nil
    if invocation.credentials != nil { typed.insert("authorization") }
    let fields = headers.filter { !typed.contains($0.name.lowercased()) }
    invocation.items += fields.map { .header(name: $0.name, value: $0.value) }
    invocation.storedItemCount = fields.count
    guard invocation.credentials == nil, !hasField, let credentials else { return invocation }
    let stored = Invocation.Authentication(rawValue: credentials.type) ?? .basic
    let way = invocation.isAuthenticationTyped ? invocation.authentication : stored
    if (way == .bearer) == (stored == .bearer) {
      invocation.credentials = Invocation.Credentials(user: credentials.user, password: credentials.password)
      invocation.authentication = way
    } else if invocation.netrcFile == nil {
      // A password would be sent as a token, or a token as a name.
      throw UsageError(
        "The session has credentials for \(stored.rawValue), not for \(way.rawValue): add --auth.")
    }
    return invocation
  }

  /// Remembers what was typed: credentials, and fields other than the ones for a single body or condition. Credentials
  /// and an `Authorization` field replace each other. Stored credentials get the way that was typed.
  ///
  /// - Parameter hasTypedCredentials: Whether the arguments have credentials.
  mutating func remember(_ invocation: Invocation, hasTypedCredentials: Bool) {
    var typed: [Field] = []
    for item in invocation.items.dropLast(invocation.storedItemCount) {
      switch item {
      case .header(let name, let value) where Self.isRemembered(name):
        typed.append(Field(name: name, value: value))
      case .omission(let name): typed.removeAll { $0.name.lowercased() == name.lowercased() }
      default: continue
      }
    }
    var names = Set(typed.map { $0.name.lowercased() })
    if names.contains("authorization"), invocation.credentials == nil { credentials = nil }
    if hasTypedCredentials { names.insert("authorization") }
    headers = headers.filter { !names.contains($0.name.lowercased()) } + typed
    if hasTypedCredentials, let typed = invocation.credentials, let password = typed.password {
      credentials = Credentials(
        type: invocation.authentication.rawValue, user: typed.user, password: password)
    } else if invocation.isAuthenticationTyped, invocation.credentials != nil, let stored = credentials,
      (stored.type == "bearer") == (invocation.authentication == .bearer)
    {
      credentials?.type = invocation.authentication.rawValue
    }
  }

  private static func isRemembered(_ name: String) -> Bool {
    let key = name.lowercased()
    return !key.hasPrefix("content-") && !key.hasPrefix("if-") && key != "range" && key != "cookie"
  }
}

extension HTTPCookie {
  /// The line of the cookie in a jar.
  fileprivate var jarLine: CookieJarLine {
    // The policy is the value in lower case.
    let policy = sameSitePolicy?.rawValue
    let sameSite = CookieJarLine.SameSite.allCases.first { $0.rawValue.lowercased() == policy }
    return CookieJarLine(self, sameSite: sameSite)
  }
}

/// Cookies in a file, a line each (``CookieJarLine``).
enum CookieJar {
  private static let header = "# Netscape HTTP Cookie File\n"

  /// Returns the cookies of a file; none if there is no file yet. Throws if the file is something else.
  static func read(_ path: String) throws(UsageError) -> [HTTPCookie] {
    guard FileManager.default.fileExists(atPath: path) else { return [] }
    let content = try LocalFile.content(path, limit: LocalFile.largestSettings)
    guard String(validating: content, as: UTF8.self) != nil else {
      throw UsageError("The cookies in '\(path)' are not text.")
    }
    // The jar would replace what is there.
    guard CookieJarLine.isJar(content) else { throw UsageError("'\(path)' is not a cookie jar.") }
    return CookieJarLine.all(in: content).compactMap(\.cookie)
  }

  /// Returns the lines of cookies, in the order of their bytes: names that Unicode calls equal have an order, too.
  /// Cookies that a line cannot hold are left out.
  static func lines(_ cookies: [HTTPCookie]) -> [String] {
    func place(_ cookie: HTTPCookie) -> [UInt8] {
      Array([cookie.domain, cookie.path, cookie.name].joined(separator: "\t").utf8)
    }
    return cookies.map { (place: place($0), cookie: $0) }
      .sorted { $0.place.lexicographicallyPrecedes($1.place) }
      .flatMap { $0.cookie.jarLine.lines }
  }

  /// Returns the content of a file.
  static func content(_ cookies: [HTTPCookie]) -> Data {
    Data((header + lines(cookies).map { $0 + "\n" }.joined()).utf8)
  }
}

/// Files that are replaced as a whole. The ones with secrets are for their owner alone: sessions, cookie jars and
/// archives.
package enum PrivateFile {
  /// The reason why a file could not be written.
  package struct Failure: Error, Sendable {
    package let code: Int32
  }

  /// Replaces a file as a whole, so that an earlier one stays if this fails, or if the machine crashes. The new one has
  /// its mode from its beginning on. A link is followed. A device or a pipe is written to, because a new file would
  /// replace it.
  ///
  /// - Parameters:
  ///   - mode:      The permissions of a new file.
  ///   - keepsMode: Whether an earlier file keeps its permissions.
  ///   - flush:     Flushes the new file to the disk before it replaces the earlier one. Returns the number of the
  ///     error, or 0.
  package static func write(
    _ data: Data, to path: String, mode: UInt32 = 0o600, keepsMode: Bool = false,
    flush: (Int32) -> Int32 = { fsync($0) == 0 ? 0 : errno }
  ) throws(Failure) {
    let target = destination(of: path)
    var information = stat()
    let exists = stat(target, &information) == 0
    let reason = errno
    // A file would replace a link that the system does not follow.
    if !exists, isLink(target) { throw Failure(code: reason) }
    if exists, isLink(target) || information.st_mode & S_IFMT != S_IFREG {
      return try overwrite(target, data)
    }
    let new = "\(target).\(UUID().uuidString.prefix(8))"
    let descriptor = open(new, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode)
    guard descriptor >= 0 else {
      let code = errno
      // A file can exist in a folder in which no other one can be created.
      guard exists, keepsMode else { throw Failure(code: code) }
      return try overwrite(target, data)
    }
    if exists, keepsMode { fchmod(descriptor, information.st_mode & 0o777) }
    var failure: Failure?
    do throws(Failure) { try write(data, to: descriptor) } catch { failure = error }
    if failure == nil, case let code = flush(descriptor), code != 0 { failure = Failure(code: code) }
    if close(descriptor) != 0, failure == nil { failure = Failure(code: errno) }
    if failure == nil, rename(new, target) != 0 { failure = Failure(code: errno) }
    guard let failure else { return }
    unlink(new)
    throw failure
  }

  /// Returns the path to which a link and its further links lead, even if there is no file yet. Foundation resolves a
  /// link only if its target exists. Any other path is returned unchanged. So are a link that the system does not
  /// follow, and a link of `/proc` to what has no path: a pipe, or a file that was removed.
  static func destination(of path: String) -> String {
    guard isLink(path) else { return path }
    var url = URL(fileURLWithPath: path).resolvingSymlinksInPath()
    for _ in 0..<40 {
      guard let target = try? FileManager.default.destinationOfSymbolicLink(atPath: url.path) else { break }
      url = URL(fileURLWithPath: target, relativeTo: url.deletingLastPathComponent())
        .resolvingSymlinksInPath()
    }
    var (end, found) = (stat(), stat())
    guard stat(path, &end) == 0 else {
      // The system refuses to follow links that others have placed in shared folders, and so does this.
      let isDangling = errno == ENOENT && stat(url.path, &found) != 0 && errno == ENOENT
      return isDangling ? url.path : path
    }
    let isFound = stat(url.path, &found) == 0 && found.st_dev == end.st_dev && found.st_ino == end.st_ino
    return isFound ? url.path : path
  }

  private static func isLink(_ path: String) -> Bool {
    var information = stat()
    return lstat(path, &information) == 0 && information.st_mode & S_IFMT == S_IFLNK
  }

  private static func overwrite(_ path: String, _ data: Data) throws(Failure) {
    let descriptor = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC)
    guard descriptor >= 0 else { throw Failure(code: errno) }
    defer { close(descriptor) }
    try write(data, to: descriptor)
  }

  private static func write(_ data: Data, to descriptor: Int32) throws(Failure) {
    var rest = data[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count > 0 {
        rest = rest.dropFirst(count)
      } else if errno != EINTR {
        throw Failure(code: errno)
      }
    }
  }
}

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

  /// Makes the changes of a file.
  ///
  /// - Parameters:
  ///   - earlier: The cookies of the file as they were read.
  ///   - all:     All cookies with which the run has begun. The ones of another file are not changes. Default: the
  ///     cookies of the file.
  ///   - later:   All cookies at the end of the run.
  init(from earlier: [HTTPCookie], of all: [HTTPCookie]? = nil, to later: [HTTPCookie]) {
    let (before, after) = (Self.byKey(all ?? earlier), Self.byKey(later))
    self.earlier = Self.byKey(earlier)
    for (key, cookie) in after where !Self.isSame(cookie, before[key]) {
      changes.updateValue(cookie, forKey: key)
    }
    for key in self.earlier.keys where after[key] == nil { changes.updateValue(nil, forKey: key) }
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
    let (line, otherLine) = (one.jarLine, other.jarLine)
    return line == otherLine && line.value.utf8.elementsEqual(otherLine.value.utf8)
  }
}

/// A lock of the folder of a file, so that two programs do not change the file at once. The file itself cannot be
/// locked, because a new one replaces it.
struct FolderLock {
  private let descriptor: Int32

  /// Waits for the lock, at most ten seconds, because a slow disk takes seconds to flush a file. After that, the lock
  /// may be held for another purpose. File systems without locks have none.
  init(of path: String) {
    let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
    descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    for _ in 0..<500 {
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
