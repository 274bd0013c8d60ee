import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire
import Testing

@testable import Alamofire

/// The results of a download, without a transfer.
@Suite("Results of downloads") struct DownloadPlanTests {
  private let plan = DownloadPlan(resuming: nil, destination: nil)

  @Test("Another attempt forgets the file and the resume data of the one before") func results() {
    let file = URL(fileURLWithPath: "/a")
    (plan.fileURL, plan.resumeData) = (file, Data("x".utf8))
    #expect(plan.fileAndResumeData.0 == file && plan.fileAndResumeData.1 == Data("x".utf8))
    #expect(plan.forgetResults() == file && plan.fileURL == nil && plan.resumeData == nil)
    plan.fileURL = file
    #expect(plan.takeFileURL() == file && plan.takeFileURL() == nil && plan.forgetResults() == nil)
  }

  @Test("The file of an attempt that is forgotten is removed later, on another thread") func forgotten()
    throws
  {
    for takesData in [false, true] {
      let file = try #require(
        try plan.sink(method: "GET", fields: [], profile: ConnectionProfile()) as? FileSink)
      #expect(file.begin(ResponseHead(status: 200), wake: {}) == nil)
      _ = Array("a".utf8).withUnsafeBytes { file.receive($0) }
      if takesData { #expect(plan.takeResumeData() == nil) } else { plan.forget() }
      #expect(FileManager.default.fileExists(atPath: file.path) && plan.hasForgotten)
      plan.removeForgotten()
      #expect(!FileManager.default.fileExists(atPath: file.path) && !plan.hasForgotten)
    }
  }

  @Test("A complete file is locked until it has a name that is in no resume data") func completeFile() throws
  {
    let part = DownloadPlan.temporaryTarget
    try Data("0123456789".utf8).write(to: part)
    let data = ResumeData(
      request: URLRequest(url: try #require(URL(string: "http://a.test/"))),
      version: Representation(length: 12, validator: "\"v\""), file: part.path, received: 10)
    let plan = DownloadPlan(resuming: try #require(data?.data(isOnDisk: true)), destination: nil)
    let head = ResponseHead(
      status: 206,
      fields: [
        HTTPHeader(name: "Content-Range", value: "bytes 10-11/12"), HTTPHeader(name: "ETag", value: "\"v\""),
      ])
    let sink = try plan.sink(method: "GET", fields: [], profile: ConnectionProfile())
    #expect(sink.begin(head, wake: {}) == nil)
    _ = Array("ab".utf8).withUnsafeBytes { sink.receive($0) }
    #expect(sink.finish() == nil)
    /// Returns the failure of another download that continues the file.
    func failure(_ path: String) -> TransportFailure.FailureKind? {
      let other = FileSink(path: "/none", continuing: { _ in .success(.part(path: path, offset: 12)) })
      return other.begin(head, wake: {})?.kind
    }
    #expect(failure(part.path) == .cannotContinue)
    let file = try #require(plan.takeFile())
    defer { try? FileManager.default.removeItem(at: file) }
    #expect(file.path != part.path && !FileManager.default.fileExists(atPath: part.path))
    #expect(failure(part.path) == .cannotContinue && failure(file.path) == nil)
    #expect(try Data(contentsOf: file) == Data("0123456789ab".utf8))
  }

  @Test("Bytes that are lost when the file is closed are in no resume data", arguments: [true, false])
  func lostAtClose(isLost: Bool) throws {
    let plan = DownloadPlan(
      resuming: nil, destination: nil,
      close: { descriptor in
        close(descriptor)
        return isLost ? EDQUOT : 0
      })
    plan.noteInitialRequest(URLRequest(url: try #require(URL(string: "http://a.test/"))))
    let sink = try plan.sink(method: "GET", fields: [], profile: ConnectionProfile())
    let head = ResponseHead(status: 200, fields: [HTTPHeader(name: "ETag", value: "\"v\"")])
    #expect(sink.begin(head, wake: {}) == nil)
    _ = Array("ab".utf8).withUnsafeBytes { sink.receive($0) }
    let data = plan.takeResumeData()
    #expect((data == nil) == isLost)
    if let data { try FileManager.default.removeItem(atPath: ResumeData(data).path) }
    plan.removeForgotten()
  }

  @Test("Each handler of resume data is called once, and any of them asks for the data") func handlers() {
    #expect(!plan.producesResumeData)
    plan.requestResumeData { _ in }
    #expect(plan.producesResumeData)
    plan.requestResumeData()
    plan.requestResumeData { _ in }
    plan.resumeData = Data("x".utf8)
    let first = plan.takeResumeDataHandlers()
    #expect(first.handlers.count == 2 && first.data == Data("x".utf8))
    let second = plan.takeResumeDataHandlers()
    #expect(second.handlers.isEmpty && second.data == Data("x".utf8))
  }

  @Test("A moved file is at its destination, and one that cannot be moved is removed") func moves() throws {
    let folder = try TemporaryFolder()
    func moved(
      to target: URL, _ options: MoveOptions, existing: Bool = false
    ) throws -> (result: Result<URL, AFError>, hasSource: Bool) {
      let source = try folder.file("source", Data("new".utf8))
      if existing { try Data("old".utf8).write(to: target) }
      let result = DownloadPlan.move(source, to: target, options)
      return (result, FileManager.default.fileExists(atPath: source.path))
    }
    func content(_ url: URL) throws -> String { String(decoding: try Data(contentsOf: url), as: UTF8.self) }
    let plain = try moved(to: folder["a"], [])
    #expect(try plain.result.get() == folder["a"] && !plain.hasSource && content(folder["a"]) == "new")
    let replaced = try moved(to: folder["b"], [.removePreviousFile], existing: true)
    #expect(try replaced.result.get() == folder["b"] && content(folder["b"]) == "new")
    let present = try moved(to: folder["c"], [], existing: true)
    #expect(try present.result.failure != nil && !present.hasSource && content(folder["c"]) == "old")
    let deep = folder["x"].appendingPathComponent("y").appendingPathComponent("z")
    let missing = try moved(to: deep, [])
    #expect(missing.result.failure != nil && !missing.hasSource)
    let made = try moved(to: deep, [.createIntermediateDirectories])
    #expect(try made.result.get() == deep && content(deep) == "new")
    let remote = try moved(to: try #require(URL(string: "https://a.test\(folder["d"].path)")), [])
    #expect(remote.result.failure != nil && !FileManager.default.fileExists(atPath: folder["d"].path))
    // The same file, however its path is spelt, is neither removed nor moved.
    let spelt = folder.url.appendingPathComponent("../\(folder.url.lastPathComponent)/source")
    for target in [folder["source"], spelt] {
      let same = try moved(to: target, [.removePreviousFile])
      #expect(try same.result.get() == target && same.hasSource && content(folder["source"]) == "new")
    }
    // Names that differ in their bytes alone are names of two files.
    let composed = folder["\u{E9}"]
    try Data("old".utf8).write(to: composed)
    let decomposed = DownloadPlan.move(composed, to: folder["e\u{301}"], [])
    #expect(try decomposed.get().lastPathComponent.utf8.count == 3)
    #expect(!FileManager.default.fileExists(atPath: composed.path))
    // A link is replaced itself, also if there is nothing at its end.
    try FileManager.default.createSymbolicLink(at: folder["link"], withDestinationURL: folder["nowhere"])
    let linked = try moved(to: folder["link"], [.removePreviousFile])
    #expect(try linked.result.get() == folder["link"] && content(folder["link"]) == "new")
    #expect(!FileManager.default.fileExists(atPath: folder["nowhere"].path))
    // A file of the same name in another folder is another one.
    let namesake = try moved(to: folder["x"].appendingPathComponent("source"), [])
    #expect(try namesake.result.get() == folder["x"].appendingPathComponent("source") && !namesake.hasSource)
  }

  @Test("A file that cannot replace another one leaves it") func failedReplacement() async {
    await #expect(processExitsWith: .success) {
      let folder = try TemporaryFolder()
      // On most machines, the file system in memory does not have the temporary files.
      let elsewhere = URL(fileURLWithPath: "/dev/shm/alamofire-tests-\(UUID().uuidString)")
      try FileManager.default.createDirectory(at: elsewhere, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(at: elsewhere) }
      let target = elsewhere.appendingPathComponent("file")
      try Data("old".utf8).write(to: target)
      let source = try folder.file("source", Data(count: 100_000))
      // The limit makes writes beyond it fail.
      signal(SIGXFSZ, SIG_IGN)
      var limit = rlimit()
      getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
      let usual = limit.rlim_cur
      limit.rlim_cur = 1000
      #expect(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
      let result = DownloadPlan.move(source, to: target, [.removePreviousFile])
      limit.rlim_cur = usual
      setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
      if case .failure = result {
        #expect(try Data(contentsOf: target) == Data("old".utf8))
      } else {
        // The folders are on one file system, where nothing is copied.
        #expect(try Data(contentsOf: target).count == 100_000)
      }
      #expect(!FileManager.default.fileExists(atPath: source.path))
      #expect(try FileManager.default.contentsOfDirectory(atPath: elsewhere.path) == ["file"])
    }
  }
}
