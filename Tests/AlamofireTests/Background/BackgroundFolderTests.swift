import Alamofire
import Foundation
import FoundationNetworking
import Glibc
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Testing

/// Folders of background sessions that cannot be used, or that contain other files than the transfers'.
@Suite("Folders of background sessions", .timeLimit(.minutes(5))) struct BackgroundFolderTests {
  private let fixture: BackgroundFixture

  init() throws {
    fixture = try BackgroundFixture()
    try FileManager.default.createDirectory(
      at: fixture.journal, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
  }

  private func path(_ name: String) -> String { fixture.journal.appendingPathComponent(name).path }

  private func session(in folder: URL) -> Session {
    let configuration = URLSessionConfiguration.background(
      withIdentifier: "org.alamofire.tests", folder: folder
    ) { url, _ in (url, []) }
    return Session(configuration: configuration)
  }

  @Test("A folder that cannot be used is an error, not an empty list") func unusableFolder() async throws {
    // A disk that cannot be written to is simulated by paths at which no folder can be created.
    let file = fixture.folder["plain"]
    try Data().write(to: file)
    let shared = fixture.folder["shared"]
    try FileManager.default.createDirectory(at: shared, withIntermediateDirectories: true)
    #expect(chmod(shared.path, 0o770) == 0)
    for (folder, reason) in [
      (file.appendingPathComponent("folder"), "cannot be used"),
      (URL(fileURLWithPath: "/proc/self/folder"), "cannot be used"),
      (file, "Not a directory"), (shared, "others may write to it"),
    ] {
      let session = session(in: folder)
      #expect(session.restoredRequests.isEmpty)
      let error = session.backgroundFolderError
      #expect((error?.underlyingError as? URLError)?.code == .cannotCreateFile)
      #expect(error?.localizedDescription.contains("org.alamofire.tests") == true)
      #expect(error?.localizedDescription.contains(reason) == true, "\(folder.path)")
      let response = await session.download("http://127.0.0.1:1/").ended()
      #expect((response.error?.underlyingError as? URLError)?.code == .cannotCreateFile)
    }
  }

  @Test("A folder that cannot be listed is an error, and can be used by the next session")
  func unlistedFolder() throws {
    struct Unlisted: TransferFiles {
      let folder: any TransferFiles
      var location: String { folder.location }
      var boot: String { folder.boot }
      func names() -> [String]? { nil }
      func read(_ name: String) -> Data? { folder.read(name) }
      func size(of name: String) -> Int64? { folder.size(of: name) }
      func changed(_ name: String) -> Int64? { folder.changed(name) }
      func make(_ name: String, _ bytes: Data) -> Int32? { folder.make(name, bytes) }
      func replace(_ name: String, by bytes: Data) -> Int32? { folder.replace(name, by: bytes) }
      func append(_ bytes: Data, to name: String, at length: Int) -> Int32? {
        folder.append(bytes, to: name, at: length)
      }
      func synchronize(_ name: String) -> Bool { folder.synchronize(name) }
      func remove(_ name: String) { folder.remove(name) }
      func unlock() { folder.unlock() }
    }
    let id = UUID()
    try Data("journal".utf8).write(to: fixture.journal.appendingPathComponent("\(id).body"))
    let files = Unlisted(folder: try TransferFolder(path: fixture.journal.path))
    let transfers = BackgroundTransfers(identifier: "tests", files: .success(files), isDiscretionary: false)
    #expect(transfers.restore().isEmpty)
    #expect((transfers.folderError?.underlyingError as? URLError)?.code == .cannotCreateFile)
    #expect(fixture.files == ["\(id).body"], "no file is removed")
    #expect(throws: Never.self) { _ = try TransferFolder(path: fixture.journal.path) }
  }

  @Test("A session with a folder has no error, unless the folder is in use") func usedFolder() {
    let first = fixture.session()
    #expect(first.backgroundFolderError == nil)
    let second = fixture.session()
    #expect(second.restoredRequests.isEmpty)
    #expect(
      (second.backgroundFolderError?.underlyingError as? URLError)?.code
        == .backgroundSessionInUseByAnotherProcess)
    #expect(Session.real().backgroundFolderError == nil)
  }

  @Test("Pipes, links and foreign files in the folder do not keep it from being used")
  func foreignFiles() async throws {
    let server = try HTTPTestServer()
    let victim = fixture.folder["victim"]
    try Data("victim".utf8).write(to: victim)
    let id = UUID().uuidString
    for suffix in [".journal", ".body", ".response", ".journal.new"] {
      #expect(mkfifo(path(id + suffix), 0o600) == 0)
      #expect(symlink(victim.path, path(UUID().uuidString + suffix)) == 0)
    }
    #expect(mkfifo(path("Alamofire_\(id).tmp"), 0o600) == 0)
    try Data("notes".utf8).write(to: URL(fileURLWithPath: path("notes.txt")))
    let session = fixture.session()
    #expect(session.restoredRequests.isEmpty && session.backgroundFolderError == nil)
    let response = await session.download(server.url("/bytes/10"), to: fixture.destination("file")).ended()
    #expect(response.error == nil)
    #expect(try Data(contentsOf: victim) == Data("victim".utf8))
    #expect(fixture.files.contains("notes.txt"))
  }

  @Test("A link instead of the file of a transfer is not written through", arguments: ["pipe", "link"])
  func fileOfTransfer(kind: String) async throws {
    let server = try HTTPTestServer()
    let id = UUID()
    let victim = fixture.folder["victim"]
    try Data("victim".utf8).write(to: victim)
    let description = TransferDescription(
      kind: .download, url: server.url("/bytes/10"), method: "GET", fields: [:],
      created: Date().timeIntervalSince1970, boot: "")
    let line = try #require(Journal.standard.line(of: .described(description)))
    try line.write(to: URL(fileURLWithPath: path("\(id.uuidString).journal")))
    let file = path("Alamofire_\(id.uuidString).tmp")
    #expect(kind == "pipe" ? mkfifo(file, 0o600) == 0 : symlink(victim.path, file) == 0)
    let session = fixture.session()
    let request = try #require(session.restoredRequests.first as? DownloadRequest)
    #expect(await request.ended().error == nil)
    #expect(try Data(contentsOf: victim) == Data("victim".utf8))
    #expect(try Data(contentsOf: fixture.folder["restored-10"]).count == 10)
    #expect(await fixture.isEmptied())
  }

  @Test("Files that do not belong to a transfer are removed, files of resume data after a week")
  func sweeping() throws {
    let week = 7 * 86_400.0
    let names = ["a.body", "a.response", "a.journal.new", "Alamofire_new.tmp", "Alamofire_old.tmp", "other"]
    for name in names {
      try Data("x".utf8).write(to: URL(fileURLWithPath: path(name)))
      let age = name == "Alamofire_old.tmp" ? week + 60 : week - 60
      try FileManager.default.setAttributes(
        [.modificationDate: Date(timeIntervalSinceNow: -age)], ofItemAtPath: path(name))
    }
    withExtendedLifetime(fixture.session()) {
      #expect(fixture.files == ["Alamofire_new.tmp", "other"])
    }
  }
}
