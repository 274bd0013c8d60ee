import Foundation

/// The terminal, or whatever stands for it. Each line is seen at once, also through a pipe.
enum Console {
  static func say(_ line: String = "") {
    FileHandle.standardOutput.write(Data("\(line)\n".utf8))
  }
}
