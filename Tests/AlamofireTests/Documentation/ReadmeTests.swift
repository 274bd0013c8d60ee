import Alamofire
import ChildProcesses
import Foundation
import HTTPTestServer
import Testing

/// The first screen of the README, used as a reader uses it.
@Suite("README", .timeLimit(.minutes(5))) struct ReadmeTests {
  private static let programs = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
    .deletingLastPathComponent()

  /// Returns the fenced blocks of the README.
  private static func blocks() throws -> [String] {
    let parts = try PackageFiles.text(of: "README.md").split(
      separator: "\n```", omittingEmptySubsequences: false)
    return parts.enumerated().filter { $0.offset % 2 == 1 }
      .map { String($0.element.drop { $0 != "\n" }.dropFirst()) }
  }

  @Test("The sample is a whole program, also in a module that is isolated to the main actor")
  func sample() throws {
    let sample = try #require(try Self.blocks().first)
    let program = try PackageFiles.text(of: "Tests/Programs/ReadmeProgram/main.swift")
    #expect(program == sample + "\n")
    let isolated = try PackageFiles.text(of: "Tests/Programs/ReadmeMainActorProgram/main.swift")
    #expect(isolated == program.replacing("\nstruct Repository", with: "\nnonisolated struct Repository"))
    #expect(try PackageFiles.text(of: "README.md").contains("`nonisolated struct Repository`"))
  }

  // A proxy leads to a test server instead of the host.
  @Test(
    "The program prints what the server has sent", arguments: ["ReadmeProgram", "ReadmeMainActorProgram"])
  func program(name: String) async throws {
    let authority = TestIdentity.localhostAuthority
    let host = try TestIdentity(
      .init(commonName: "api.github.com", dnsNames: ["api.github.com"], issuer: authority))
    let server = try HTTPTestServer(.tls(host), routes: .none)
    server.enqueue(.json(#"{"id": 44838949, "name": "swift", "stargazers_count": 67890}"#))
    let seen = Recorder<String>()
    let proxy = try ProxiedByteStreamTests.proxy(to: server.port, seen: seen)
    let folder = try TemporaryFolder()
    try Data(authority.caPEM.utf8).write(to: folder["authority.pem"])
    let run = try await ChildRun(
      [Self.programs.appendingPathComponent(name).path],
      environment: [
        "https_proxy": "http://127.0.0.1:\(proxy.port)", "no_proxy": "",
        "SSL_CERT_FILE": folder["authority.pem"].path,
      ])
    #expect(run.status == 0, "\(run.complaints)")
    #expect(String(decoding: run.output, as: UTF8.self) == "swift has 67890 stars.\n")
    #expect(seen.values.first == "CONNECT api.github.com:443 HTTP/1.1")
    #expect(server.recordedRequests.first?.target == "/repos/swiftlang/swift")
  }

  @Test("The list of changes begins with the version of the library") func version() throws {
    let changes = try PackageFiles.text(of: "CHANGELOG.md")
    let title = try #require(changes.split(separator: "\n").first { $0.hasPrefix("## ") })
    #expect(title.dropFirst(3).prefix { $0 != "," } == AFInfo.version)
  }

  @Test("The manifest is whole, and its products exist") func manifest() async throws {
    let manifest = try #require(try Self.blocks().first { $0.hasPrefix("// swift-tools-version") })
    let folder = try TemporaryFolder()
    let sources = folder.url.appendingPathComponent("program/Sources/program")
    try FileManager.default.createDirectory(at: sources, withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(
      at: folder.url.appendingPathComponent("alamofire-linux"), withDestinationURL: PackageFiles.root)
    try Data(manifest.utf8).write(to: folder.url.appendingPathComponent("program/Package.swift"))
    try Data(try #require(try Self.blocks().first).utf8).write(
      to: sources.appendingPathComponent("main.swift"))

    // It reads both manifests and finds the products of the dependency. A build of them would take minutes.
    let variables = ["TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"].map {
      ($0, folder.url.path)
    }
    let run = try await ChildRun(
      [
        "swift", "package", "--package-path", folder.url.appendingPathComponent("program").path,
        "show-dependencies",
      ], environment: Dictionary(uniqueKeysWithValues: variables))
    #expect(run.status == 0, "\(run.complaints)")
    #expect(String(decoding: run.output, as: UTF8.self).contains("alamofire-linux"))
  }
}
