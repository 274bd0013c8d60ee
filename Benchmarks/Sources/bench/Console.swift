import Foundation

/// Writes lines to standard output without buffering, so that they appear at once, also through a pipe.
enum Console {
  static func say(_ line: String = "") {
    FileHandle.standardOutput.write(Data("\(line)\n".utf8))
  }
}
