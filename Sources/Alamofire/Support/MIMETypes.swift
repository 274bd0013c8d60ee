import Foundation
import HTTPWire

/// MIME types by the extension of a file name.
package struct MIMETypes: Sendable {
  /// The types of this system, read when they are first needed.
  package static let system = MIMETypes(
    mimeTypes: contents("/etc/mime.types"), globs: contents("/usr/share/mime/globs2"))

  /// The type of an unknown extension.
  static let unknown = "application/octet-stream"

  private var types: [String: String] = [:]

  /// Makes a table of the types in two texts.
  ///
  /// - Parameters:
  ///   - mimeTypes: A table in the format of `/etc/mime.types`: a type and its extensions in a line. This table takes
  ///     precedence.
  ///   - globs: A table in the format of shared-mime-info's `globs2`: weight, type and pattern in a line, by
  ///     descending weight.
  package init(mimeTypes: String?, globs: String?) {
    if let mimeTypes { readMIMETypes(mimeTypes) }
    if let globs { readGlobs(globs) }
  }

  /// Returns the type of a file name's extension, which is given without its dot. Case does not count.
  package func type(forExtension pathExtension: String) -> String {
    let pathExtension = pathExtension.lowercased()
    return types[pathExtension] ?? Self.wellKnown[pathExtension] ?? Self.unknown
  }

  private mutating func readMIMETypes(_ text: String) {
    for line in text.utf8.split(separator: 0x0A) where line.first != UInt8(ascii: "#") {
      let words = line.split { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
      guard words.count > 1 else { continue }
      for word in words.dropFirst() { add(String(words[0]) ?? "", for: String(word) ?? "") }
    }
  }

  private mutating func readGlobs(_ text: String) {
    for line in text.utf8.split(separator: 0x0A) where line.first != UInt8(ascii: "#") {
      let fields = line.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
      // A fourth field may say that case counts, as for `*.C`.
      guard fields.count >= 3, !fields.dropFirst(3).joined().elementsEqual("cs".utf8) else { continue }
      let pattern = fields[2].starts(with: "*.".utf8) ? fields[2].dropFirst(2) : ""[...].utf8
      guard !pattern.contains(where: { "*?[].".utf8.contains($0) }) else { continue }
      add(String(fields[1]) ?? "", for: String(pattern) ?? "")
    }
  }

  /// Adds a type, unless it is invalid or the extension has a type already.
  private mutating func add(_ type: String, for pathExtension: String) {
    let parts = type.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, parts.allSatisfy({ HeaderFieldRules.isToken(String($0)) }), !pathExtension.isEmpty
    else { return }
    let key = pathExtension.lowercased()
    if types[key] == nil { types[key] = type }
  }

  private static func contents(_ path: String) -> String? {
    FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
  }
}

extension MIMETypes {
  /// For systems that have neither table.
  private static let wellKnown = [
    "aac": "audio/aac", "avi": "video/x-msvideo", "avif": "image/avif", "bmp": "image/bmp",
    "bz2": "application/x-bzip2",
    "css": "text/css", "csv": "text/csv", "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "epub": "application/epub+zip",
    "flac": "audio/flac", "gif": "image/gif", "gz": "application/gzip", "heic": "image/heic",
    "htm": "text/html",
    "html": "text/html", "ico": "image/vnd.microsoft.icon", "ics": "text/calendar", "jpeg": "image/jpeg",
    "jpg": "image/jpeg", "js": "text/javascript", "json": "application/json", "jsonl": "application/jsonl",
    "m4a": "audio/mp4", "m4v": "video/x-m4v", "md": "text/markdown", "mjs": "text/javascript",
    "mkv": "video/x-matroska",
    "mov": "video/quicktime", "mp3": "audio/mpeg", "mp4": "video/mp4", "mpeg": "video/mpeg",
    "odt": "application/vnd.oasis.opendocument.text", "oga": "audio/ogg", "ogg": "audio/ogg",
    "ogv": "video/ogg",
    "otf": "font/otf", "pdf": "application/pdf", "png": "image/png",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "rtf": "application/rtf",
    "svg": "image/svg+xml", "tar": "application/x-tar", "tif": "image/tiff", "tiff": "image/tiff",
    "ttf": "font/ttf",
    "txt": "text/plain", "wasm": "application/wasm", "wav": "audio/x-wav", "weba": "audio/webm",
    "webm": "video/webm",
    "webp": "image/webp", "woff": "font/woff", "woff2": "font/woff2", "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xml": "application/xml",
    "yaml": "application/yaml", "yml": "application/yaml", "zip": "application/zip",
    "zst": "application/zstd",
  ]
}

/// Names of files, for `af` too.
package enum FileNames {
  /// The ending of a journal's name.
  package static let journalEnding = CompanionName.Ending.journal.rawValue
  /// The ending of the name of a download whose own name is not known yet.
  package static let unnamedEnding = CompanionName.Ending.unnamed.rawValue

  /// Returns a file name that a server sends as one visible path component that is not hidden. Returns `nil` if nothing
  /// of it is left. It is the rule of `suggestedFilename`.
  ///
  /// - Parameter longest: The largest number of bytes.
  package static func component(of name: String, longest: Int) -> String? {
    SuggestedFilename.component(name, longest: longest)
  }

  /// Returns the path of a file next to another one, with `suffix` at the end of its name. The name is shortened if it
  /// would be too long.
  package static func path(beside path: String, suffix: String) -> String {
    CompanionName.path(beside: path, suffix: suffix)
  }
}
