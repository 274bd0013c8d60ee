import Foundation
import HTTPSystem
package import HTTPWire

/// Folders of background transfers.
package enum BackgroundFolder {
  /// Opens and locks a folder, which is made if it does not exist.
  package static func open(_ path: String) throws(TransferFolderError) -> any TransferFiles {
    try TransferFolder(path: path)
  }

  /// The journals of background transfers.
  package static var log: TransferLog { TransferLog(hashes: OpenSSLHashes()) }

  /// Returns the folder of an identifier: `$XDG_STATE_HOME/alamofire/background/<identifier>`, below `~/.local/state`
  /// without that variable.
  package static func path(of identifier: String) -> String {
    let state = ProcessInfo.processInfo.environment["XDG_STATE_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
    let base = state ?? FileManager.default.homeDirectoryForCurrentUser.path + "/.local/state"
    return "\(base)/alamofire/background/\(name(of: identifier))"
  }

  /// Returns a name for the folder of an identifier. Different identifiers have different names.
  static func name(of identifier: String) -> String {
    var plain = CharacterSet.alphanumerics
    plain.insert(charactersIn: "-_.")
    let name = identifier.utf8.map { byte -> String in
      let isPlain = byte < 0x80 && plain.contains(Unicode.Scalar(byte))
      return isPlain
        ? String(Unicode.Scalar(byte)) : "%" + String(0x100 + UInt16(byte), radix: 16).dropFirst()
    }.joined()
    // A name that begins with a full stop is hidden, or one of the system's own.
    if name.utf8.count <= 200, !name.isEmpty, !name.hasPrefix(".") { return name }
    return "%" + (OpenSSLHashes().text(.sha256, Array(identifier.utf8)) ?? "")
  }
}
