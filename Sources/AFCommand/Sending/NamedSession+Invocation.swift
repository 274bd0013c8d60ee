import Alamofire
import Foundation

extension NamedSession {
  /// Returns the file of a session. If its name is a path, the path is the file; otherwise the file is in the folder
  /// for the data of programs. There each host has its own folder, so that no host sees the secrets of another.
  static func path(_ name: String, host: String, variables: [String: String]) throws(UsageError) -> String {
    if name.contains("/") { return LocalFile.expanded(name) }
    let home =
      variables["XDG_DATA_HOME"].flatMap { $0.isEmpty ? nil : $0 } ?? LocalFile.expanded("~/.local/share")
    let folder = "\(home)/af/sessions/\(host.replacingOccurrences(of: "/", with: "_"))"
    do {
      try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      throw UsageError("The folder '\(folder)' cannot be created.")
    }
    return "\(folder)/\(name).json"
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

  func write(to path: String) throws(UsageError) {
    guard let data = try? encoded() else { throw UsageError("'\(path)' cannot be written.") }
    try KeptState.write(data, to: path)
  }

  // MARK: Use

  /// Returns the invocation with the fields and credentials of the session behind those that were typed.
  func applied(to invocation: Invocation) -> Invocation {
    var invocation = invocation
    let typed = Set(
      invocation.items.compactMap { item in
        switch item {
        case .header(let name, _), .omission(let name): name.lowercased()
        default: nil
        }
      })
    invocation.items += headers.filter { !typed.contains($0.name.lowercased()) }
      .map { .header(name: $0.name, value: $0.value) }
    if invocation.credentials == nil, let credentials {
      invocation.credentials = Invocation.Credentials(user: credentials.user, password: credentials.password)
      invocation.authentication = Invocation.Authentication(rawValue: credentials.type) ?? .basic
    }
    return invocation
  }

  /// Remembers what was typed: fields, but those of one body or of one condition, and credentials.
  mutating func remember(_ invocation: Invocation) {
    var typed: [Field] = []
    for item in invocation.items {
      switch item {
      case .header(let name, let value) where Self.isKept(name): typed.append(Field(name: name, value: value))
      case .omission(let name): typed.removeAll { $0.name.lowercased() == name.lowercased() }
      default: continue
      }
    }
    let names = Set(typed.map { $0.name.lowercased() })
    headers = headers.filter { !names.contains($0.name.lowercased()) } + typed
    if let typed = invocation.credentials, let password = typed.password {
      credentials = Credentials(
        type: invocation.authentication.rawValue, user: typed.user, password: password)
    }
  }

  private static func isKept(_ name: String) -> Bool {
    let key = name.lowercased()
    return !key.hasPrefix("content-") && !key.hasPrefix("if-") && key != "range" && key != "cookie"
  }
}
