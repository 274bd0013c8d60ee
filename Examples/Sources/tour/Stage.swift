import Alamofire
import HTTPTestServer

/// The environment of all steps: two servers, on ports that the system chose, and the output.
struct Stage: Sendable {
  /// A server over HTTP.
  let server: HTTPTestServer
  /// A server over HTTPS, with a certificate authority that systems do not trust.
  let secureServer: HTTPTestServer
  /// The authority of `secureServer`, as PEM.
  let authority: Data
  let isTerminal: Bool

  init() throws {
    server = try HTTPTestServer()
    secureServer = try HTTPTestServer(.tls(.localhost))
    authority = Data(TestIdentity.localhost.caPEM.utf8)
    isTerminal = isatty(STDOUT_FILENO) == 1
  }

  func begin(_ step: Step, number: Int) {
    let title = "\(number < 10 ? " " : "")\(number)  \(step.title) "
    let line = String(repeating: "─", count: max(2, 78 - title.count - step.file.count))
    write("\n\(title)\(line) \(step.file)")
  }

  /// Prints a line of a step.
  func say(_ line: String) {
    write("    " + line)
  }

  /// Prints the name of a request and its result.
  func show(_ what: String, _ result: String) {
    let padding = String(repeating: " ", count: max(1, 34 - what.count))
    say("\(what)\(padding)\(result)")
  }

  /// Prints a long text, wrapped between words.
  func explain(_ text: String) {
    var line = ""
    for word in text.split(separator: " ") {
      if !line.isEmpty, line.count + word.count > 72 {
        say("  " + line)
        line = ""
      }
      line += line.isEmpty ? word : " " + word
    }
    say("  " + line)
  }

  /// Prints text at once and without a line break, for lines that are redrawn.
  func draw(_ text: String) {
    try? FileHandle.standardOutput.write(contentsOf: Data(text.utf8))
  }

  func write(_ line: String) {
    draw(line + "\n")
  }
}
