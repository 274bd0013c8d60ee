import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer

/// Background sessions that share a folder, one after the other, like the sessions of several processes.
struct BackgroundFixture {
  let folder: TemporaryFolder
  let journal: URL

  init() throws {
    folder = try TemporaryFolder()
    journal = folder["journal"]
  }

  func session(
    delegate: SessionDelegate = SessionDelegate(), isDiscretionary: Bool = false,
    interceptor: (any RequestInterceptor)? = nil, startRequestsImmediately: Bool = true,
    requestSetup: Session.RequestSetup = .lazy, eventMonitors: [any EventMonitor] = [],
    configure: (URLSessionConfiguration) -> Void = { _ in }
  ) -> Session {
    let folder = folder
    let configuration = URLSessionConfiguration.background(
      withIdentifier: "org.alamofire.tests", folder: journal
    ) { _, response in
      (folder["restored-\(response.url?.lastPathComponent ?? "")"], [.removePreviousFile])
    }
    configuration.urlCache = nil
    configuration.isDiscretionary = isDiscretionary
    configure(configuration)
    return Session(
      configuration: configuration, delegate: delegate, startRequestsImmediately: startRequestsImmediately,
      requestSetup: requestSetup, interceptor: interceptor, eventMonitors: eventMonitors)
  }

  /// The names of the files in the journal.
  var files: [String] {
    let names = try? FileManager.default.contentsOfDirectory(atPath: journal.path)
    return (names ?? []).filter { $0 != "lock" }.sorted()
  }

  /// Waits until the journal has no file.
  func isEmptied() async -> Bool { await eventually { files.isEmpty } }

  /// Waits until no session has the journal.
  func isReleased() async -> Bool {
    let lock = journal.appendingPathComponent("lock").path
    return await eventually {
      let file = open(lock, O_RDWR | O_CLOEXEC)
      guard file >= 0 else { return true }
      defer { close(file) }
      let isFree = flock(file, LOCK_EX | LOCK_NB) == 0
      // Before the end, because a process that is being started has a copy of the descriptor.
      flock(file, LOCK_UN)
      return isFree
    }
  }

  /// The journal of the only transfer.
  var record: URL? { files.first { $0.hasSuffix(".journal") }.map { journal.appendingPathComponent($0) } }

  func destination(_ name: String) -> DownloadRequest.Destination {
    let target = folder[name]
    return { _, _ in (target, []) }
  }
}

extension DownloadRequest {
  /// Waits for the response.
  func ended() async -> AFDownloadResponse<URL?> {
    await withCheckedContinuation { continuation in
      response(queue: .global()) { continuation.resume(returning: $0) }
    }
  }
}

extension DownloadRequest {
  /// Waits for the response, and removes the file of a download without a destination.
  func endedWithoutFile() async -> AFDownloadResponse<URL?> {
    let response = await ended()
    response.removeFile()
    return response
  }
}

extension DataRequest {
  /// Waits for the response.
  func ended() async -> AFDataResponse<Data?> {
    await withCheckedContinuation { continuation in
      response(queue: .global()) { continuation.resume(returning: $0) }
    }
  }
}

/// A file whose first response stops after some bytes; later responses have the rest.
final class StallingFile: Sendable {
  let file: VersionedFile
  private let rest: Mutex<[Int]>

  init(size: Int, stallingAfter counts: Int...) {
    file = VersionedFile(size: size)
    rest = Mutex(counts)
  }

  var bytes: Data { file.bytes }

  var routes: Routes {
    Routes.none.adding("/file", methods: ["GET"]) { [self] request, _ in
      let reply = file.reply(to: request)
      let stall = rest.withLock { $0.isEmpty ? nil : $0.removeFirst() }
      return stall.map { reply.with(effect: .stallAfterBody(bytes: $0)) } ?? reply
    }
  }
}
