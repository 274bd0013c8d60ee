import Foundation
import Testing

@testable import AFCommand

@Suite("Questions for secrets", .timeLimit(.minutes(5))) struct SecretPromptTests {
  @Test("A signal at the end of a question does not write into the next file") func lateSignal() throws {
    let folder = try Folder()
    let interruption = Interruption()
    let (taken, answered, ended) = (
      DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)
    )
    let path = try folder.file("terminal", "")
    var terminal = OpenTerminal(path)
    let number = try #require(terminal).descriptor
    interruption.onSignal { [terminal] in
      taken.signal()
      answered.wait()
      terminal?.show("\n")
    }
    DispatchQueue.global().async {
      interruption.interrupt(SIGINT)
      ended.signal()
    }
    taken.wait()
    interruption.questionEnded()
    terminal = nil
    let nextPath = try folder.file("next", "")
    let next = try #require(FileHandle(forUpdatingAtPath: nextPath))
    #expect(
      next.fileDescriptor != number, "the descriptor of the terminal is closed while the signal uses it")
    answered.signal()
    ended.wait()
    #expect(try String(contentsOfFile: nextPath, encoding: .utf8) == "")
    #expect(try String(contentsOfFile: path, encoding: .utf8) == "\n")
  }

  @Test(
    "A line is read without its break; without one there is no answer",
    arguments: ["secret\n", "\nx", "x", ""])
  func lines(content: String) throws {
    let folder = try Folder()
    let terminal = OpenTerminal(try folder.file("terminal", content))
    let expected =
      content.contains("\n") ? content.split(separator: "\n", omittingEmptySubsequences: false).first : nil
    #expect(terminal?.line() == expected.map { Array($0.utf8) })
    #expect(OpenTerminal(folder.path("missing")) == nil)
  }
}
