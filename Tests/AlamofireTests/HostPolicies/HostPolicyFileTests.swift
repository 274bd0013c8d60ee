import Foundation
import HTTPWire
import Testing

@testable import Alamofire

@Suite("Files of known hosts", .timeLimit(.minutes(5)))
final class HostPolicyFileTests {
  private let folder: URL
  private var file: URL { folder.appendingPathComponent("sub/hosts.txt") }

  init() throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("hosts-\(UUID().uuidString)")
    try FileManager.default.createDirectory(
      at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
  }

  deinit { try? FileManager.default.removeItem(at: folder) }

  private func note(_ hosts: StrictTransportSecurity, _ host: String) {
    hosts.note(
      ResponseHead(
        status: 200,
        fields: [HTTPHeader(name: "Strict-Transport-Security", value: "max-age=1000; includeSubDomains")]),
      of: Origin(scheme: "https", host: host, port: nil))
  }

  @Test("Policies outlast the process") func persistence() throws {
    let hosts = StrictTransportSecurity(file: file)
    #expect(hosts.storageError == nil)
    note(hosts, "a.test")
    hosts.preload("b.test")
    try hosts.save()
    let again = StrictTransportSecurity(file: file)
    #expect(again.hosts == ["a.test"])
    #expect(again.protects("x.a.test"))
    #expect(!again.protects("b.test"))
    let mode = try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? NSNumber
    #expect(mode?.intValue == 0o600)
    let names = try FileManager.default.contentsOfDirectory(atPath: file.deletingLastPathComponent().path)
    #expect(names == ["hosts.txt"], "no other file is left")
  }

  @Test("Alternative services outlast the process") func persistentServices() throws {
    let origin = Origin(scheme: "https", host: "a.test", port: 8443)
    let services = AlternativeServices(file: file)
    services.note(
      ResponseHead(status: 200, fields: [HTTPHeader(name: "Alt-Svc", value: #"h2=":9443"; persist=1"#)]),
      of: origin)
    try services.save()
    #expect(AlternativeServices(file: file).choice(for: origin)?.port == 9443)
    let other = StrictTransportSecurity(file: file)
    #expect(other.storageError == .otherFile)
  }

  @Test("The number of hosts is limited, with a file and without", arguments: [true, false])
  func limits(hasFile: Bool) throws {
    let names = ["a.test", "b.test", "c.test"]
    let hosts =
      hasFile ? StrictTransportSecurity(file: file, hostLimit: 2) : StrictTransportSecurity(hostLimit: 2)
    for name in names { note(hosts, name) }
    #expect(hosts.hosts == ["a.test", "b.test"])
  }

  @Test("An older edition does not replace a newer one") func editions() throws {
    let place = try AtomicFile(file)
    #expect(try place.read() == nil)
    try place.write("new", edition: 2)
    try place.write("old", edition: 1)
    try place.write("old", edition: 2)
    #expect(try place.read() == "new")
    try place.write("newest", edition: 3)
    #expect(try AtomicFile(file).read() == "newest")
  }

  @Test("A text that cannot be flushed to the disk does not replace an earlier one") func failedFlush() throws
  {
    let codes = Mutex<[Int32]>([0, EIO, 0])
    let sizes = Recorder<Int>()
    let place = try AtomicFile(file) { descriptor in
      var status = stat()
      sizes.add(fstat(descriptor, &status) == 0 ? Int(status.st_size) : -1)
      return codes.withLock { $0.removeFirst() }
    }
    try place.write("old", edition: 1)
    #expect(throws: HostStorageError.notWritten) { try place.write("newer", edition: 2) }
    #expect(try place.read() == "old")
    try place.write("newest", edition: 2)
    #expect(try place.read() == "newest")
    #expect(sizes.values == [3, 5, 6])
  }

  @Test("Files that a killed process has not completed are removed, and others stay") func leftovers() throws
  {
    let place = file.deletingLastPathComponent()
    try FileManager.default.createDirectory(
      at: place, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let names = [".new-1-2-3", ".new-1-2-4", ".new-user", ".new-1-2-x"]
    for name in names {
      let url = place.appendingPathComponent(name)
      try Data("x".utf8).write(to: url)
      let age = name == ".new-1-2-4" ? 540.0 : 660
      try FileManager.default.setAttributes(
        [.modificationDate: Date(timeIntervalSinceNow: -age)], ofItemAtPath: url.path)
    }
    #expect(StrictTransportSecurity(file: file).storageError == nil)
    let left = try FileManager.default.contentsOfDirectory(atPath: place.path).sorted()
    #expect(left == [".new-1-2-4", ".new-1-2-x", ".new-user"])
  }

  @Test("A file whose lines end with CRLF is read") func windowsLines() throws {
    let folder = file.deletingLastPathComponent()
    let hosts = StrictTransportSecurity(file: file)
    for name in ["a.test", "b.test"] { note(hosts, name) }
    try hosts.save()
    let text = try String(contentsOf: file, encoding: .utf8).replacingOccurrences(of: "\n", with: "\r\n")
    try Data(text.utf8).write(to: folder.appendingPathComponent("other"))
    let other = StrictTransportSecurity(file: folder.appendingPathComponent("other"))
    #expect(other.storageError == nil)
    #expect(other.hosts == ["a.test", "b.test"])
  }

  @Test("Corrupt files are treated as empty") func corruptFiles() throws {
    let folder = file.deletingLastPathComponent()
    try FileManager.default.createDirectory(
      at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let texts: [(String, HostStorageError?)] = [
      ("", nil), ("a private key", .otherFile), ("# strict-transport-security 1\na.test", .brokenLine(2)),
      ("\u{0}\u{1}", .otherFile),
    ]
    for (text, error) in texts {
      try Data(text.utf8).write(to: file)
      let hosts = StrictTransportSecurity(file: file)
      #expect(hosts.storageError == error)
      #expect(hosts.hosts.isEmpty)
      note(hosts, "b.test")
      #expect(hosts.protects("b.test"))
      if error == .otherFile {
        #expect(throws: HostStorageError.otherFile) { try hosts.save() }
        #expect(try String(contentsOf: file, encoding: .utf8) == text)
      } else {
        try hosts.save()
        #expect(StrictTransportSecurity(file: file).hosts == ["b.test"])
      }
    }
    try Data([0xFF, 0xFE]).write(to: file)
    #expect(StrictTransportSecurity(file: file).storageError == .unreadable)
  }

  @Test("Folders that other users can write to are not used", arguments: [0o777, 0o1777]) func sharedFolders(
    permissions: Int
  ) throws {
    try FileManager.default.setAttributes([.posixPermissions: permissions], ofItemAtPath: folder.path)
    let hosts = StrictTransportSecurity(file: folder.appendingPathComponent("hosts.txt"))
    #expect(hosts.storageError == .folderNotOurs)
    note(hosts, "a.test")
    #expect(hosts.protects("a.test"))
    #expect(throws: HostStorageError.folderNotOurs) { try hosts.save() }
  }

  @Test("A file in a folder that cannot be written is read") func readOnlyFolder() throws {
    let file = folder.appendingPathComponent("hosts.txt")
    try Data("# strict-transport-security 1\na.test 99999999999\n".utf8).write(to: file)
    func setPermissions(_ permissions: Int) throws {
      try FileManager.default.setAttributes([.posixPermissions: permissions], ofItemAtPath: folder.path)
    }
    defer { try? setPermissions(0o700) }
    try setPermissions(0o500)
    let hosts = StrictTransportSecurity(file: file)
    #expect(hosts.storageError == nil && hosts.protects("a.test"))
    // The superuser can write to any folder, and search it.
    guard access(folder.path, W_OK) != 0 else { return }
    #expect(throws: HostStorageError.notWritten) { try hosts.save() }
    #expect(hosts.storageError == .notWritten)
    try setPermissions(0o400)
    #expect(StrictTransportSecurity(file: file).storageError == .unreadable)
  }

  @Test("Only file URLs store policies") func fileURLs() throws {
    let directory = URL(fileURLWithPath: folder.path, isDirectory: true)
    for url in [URL(string: "https://a.test/hosts.txt"), directory].compactMap({ $0 }) {
      #expect(AlternativeServices(file: url).storageError == .folderNotOurs)
    }
  }

  @Test("A symbolic link is not followed") func symbolicLink() throws {
    let target = folder.appendingPathComponent("target")
    try Data("# strict-transport-security 1\na.test 99999999999\n".utf8).write(to: target)
    let link = folder.appendingPathComponent("link")
    try FileManager.default.createSymbolicLink(at: link, withDestinationURL: target)
    #expect(StrictTransportSecurity(file: link).storageError == .unreadable)
    #expect(StrictTransportSecurity(file: target).hosts == ["a.test"])
  }

  @Test("A text that is too long to be read again is not written") func longText() throws {
    let place = try AtomicFile(file)
    try place.write("old", edition: 1)
    #expect(throws: HostStorageError.notWritten) {
      try place.write(String(repeating: "a", count: AtomicFile.largest + 1), edition: 2)
    }
    #expect(try place.read() == "old")
    try place.write(String(repeating: "a", count: AtomicFile.largest), edition: 3)
    #expect(try place.read()?.utf8.count == AtomicFile.largest)
  }
}
