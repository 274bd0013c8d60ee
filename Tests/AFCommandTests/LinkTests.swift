import Foundation
import HTTPTestServer
import Testing

@testable import AFCommand

/// Links that the system does not follow. Links that another user has placed in a shared folder are such ones, but only
/// an administrator can make them, so a chain of more links than the system follows stands for them.
@Suite("Links that the system does not follow", .timeLimit(.minutes(5))) struct LinkTests {
  private let server: HTTPTestServer
  private let folder: Folder

  init() throws {
    server = try HTTPTestServer()
    folder = try Folder()
  }

  /// Makes a chain of links to a file. Returns the path of its first link.
  private func chain(to file: String) throws -> String {
    var target = file
    for number in 1...45 {
      let link = folder.path("link\(number)")
      try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: target)
      target = link
    }
    return target
  }

  private func isLink(_ path: String) -> Bool {
    var information = stat()
    return lstat(path, &information) == 0 && information.st_mode & S_IFMT == S_IFLNK
  }

  @Test(
    "A file behind one of them is not written, and the link stays",
    arguments: [
      ["-o"], ["-c", "-o"], ["--segments", "1", "-o"], ["--cookie-jar"], ["--session"], ["--har"],
    ])
  func refused(options: [String]) async throws {
    let file = try folder.file("file", "kept")
    let link = try chain(to: file)
    server.enqueue(Reply.text("planted").with(header: "Set-Cookie", value: "a=planted"))
    let run = await Terminal.pipe.run(options + [link, server.url("/")])
    #expect(run.status != .success && run.error.contains("'\(link)' cannot be written"), "\(run.error)")
    #expect(FileManager.default.contents(atPath: file) == Data("kept".utf8))
    #expect(isLink(link), "a file has replaced the link")
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    #expect(names.count == 46 && names.allSatisfy { $0 == "file" || $0.hasPrefix("link") }, "\(names)")
  }

  @Test("A file that does not exist yet is made only where the system would make it") func dangling() throws {
    let file = folder.path("missing")
    let link = try chain(to: file)
    #expect(PrivateFile.destination(of: link) == link)
    #expect(PrivateFile.destination(of: folder.path("link9")).hasSuffix("/missing"))
    #expect(throws: PrivateFile.Failure.self) { try PrivateFile.write(Data("new".utf8), to: link) }
    try PrivateFile.write(Data("new".utf8), to: folder.path("link9"))
    #expect(FileManager.default.contents(atPath: file) == Data("new".utf8))
    #expect(isLink(link) && isLink(folder.path("link9")))
  }
}
