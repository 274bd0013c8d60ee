import ChildProcesses
import Foundation
import Glibc
import HTTPTestServer
import Testing

#if ADDRESS_SANITIZER
  private let needsOtherFiles = true
#else
  private let needsOtherFiles = false
#endif

/// The images of `Containers`, as far as they can be tested without a container engine.
@Suite(
  .timeLimit(.minutes(5)), .enabled(if: Programs.isInstalled("strip"), "strip of binutils is missing"),
  .disabled(if: needsOtherFiles, "the sanitizer reads files outside of the root"))
struct ContainerTests {
  private static let collector = HTTPBinServer.packageRoot.appendingPathComponent(
    "Scripts/lib/collect-program"
  ).path

  private let server: HTTPTestServer
  private let folder: Folder

  init() throws {
    server = try HTTPTestServer()
    folder = try Folder()
  }

  @Test("A collected program runs with nothing but the files of its root") func collected() async throws {
    let root = folder.path("image")
    let collection = try await ChildRun([Self.collector, Programs.af, root], isJoined: true)
    try #require(collection.status == 0, "\(String(decoding: collection.output, as: UTF8.self))")
    for file in ["etc/ssl/certs/ca-certificates.crt", "etc/passwd", "etc/nsswitch.conf"] {
      #expect(FileManager.default.isReadableFile(atPath: "\(root)/\(file)"))
    }
    let inside = try await Self.entrance(root) + ["/usr/local/bin/af"]
    let version = try await ChildRun(inside + ["--version"])
    #expect(version.status == 0 && version.output.starts(with: Data("af ".utf8)), "\(version.complaints)")
    server.enqueue(.text("inside"))
    let address = "http://127.0.0.1:\(server.port)/"
    let response = try await ChildRun(inside + ["--proxy", "none", address], environment: ["HOME": "/"])
    #expect(response.status == 0 && response.output == Data("inside".utf8), "\(response.complaints)")
  }

  /// Returns the words that run a program in a root: as the user of the images if possible.
  private static func entrance(_ root: String) async throws -> [String] {
    let isRoot = geteuid() == 0
    // A container engine mounts /proc too. Swift finds the arguments of the process there.
    let script = """
      mkdir -p "$0/proc" && mount --rbind /proc "$0/proc" \
        && exec /usr/sbin/chroot \(isRoot ? "--userspec=65534:65534" : "") "$0" "$@"
      """
    let words =
      ["unshare", "--mount"] + (isRoot ? [] : ["--user", "--map-root-user"]) + ["sh", "-c", script, root]
    // The root has no such program, and without permission the status is another one.
    let attempt = try await ChildRun(words + ["/none"])
    guard attempt.status == 127 else {
      try Test.cancel("this user may not mount and change the root folder: \(attempt.complaints)")
    }
    return words
  }

  @Test("Collecting a program that does not exist is an error") func missing() async throws {
    let run = try await ChildRun([Self.collector, folder.path("none"), folder.path("image")])
    #expect(run.status != 0)
    #expect(try await ChildRun([Self.collector]).status == 2)
  }

  @Test("A Containerfile names scripts and products that exist, and the program that it collects")
  func containerfiles() throws {
    let containers = HTTPBinServer.packageRoot.appendingPathComponent("Containers")
    let files = try FileManager.default.contentsOfDirectory(at: containers, includingPropertiesForKeys: nil)
      .filter { $0.pathExtension == "Containerfile" }
    #expect(files.count == 2)
    let manifest = try String(
      contentsOf: HTTPBinServer.packageRoot.appendingPathComponent("Package.swift"), encoding: .utf8)
    let tools = try #require(manifest.prefix { !$0.isNewline }.split(separator: ":").last)
    for file in files {
      let text = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").filter {
        !$0.hasPrefix("#")
      }
      .joined(separator: " ")
      let words = text.split { " \\&".contains($0) }.map(String.init)
      for script in words where script.hasPrefix("Scripts/") {
        let path = HTTPBinServer.packageRoot.appendingPathComponent(script).path
        #expect(FileManager.default.isExecutableFile(atPath: path), "\(script)")
      }
      let place = try #require(words.firstIndex(of: "Scripts/lib/collect-program"))
      let program = try #require(words[place + 1].split(separator: "/").last)
      #expect(text.contains("ENTRYPOINT [\"/usr/local/bin/\(program)\"]"))
      if let option = words.firstIndex(of: "--product") {
        let package = HTTPBinServer.packageRoot.appendingPathComponent("Examples/Package.swift")
        #expect(try String(contentsOf: package, encoding: .utf8).contains("\"\(words[option + 1])\""))
      }
      #expect(text.hasPrefix("FROM swift:\(tools)-"))
    }
  }
}
