import Alamofire
import Foundation
import FoundationNetworking

/// Downloads and uploads of a background session that is killed at any moment and started again. Each completion is one
/// line in a file.
///
///     SoakClient background <url> <folder> <count>
struct BackgroundTransfers {
  let url: String
  let folder: URL
  let count: Int

  init(_ words: [String]) throws {
    guard words.count == 4, let count = Int(words[3]) else {
      throw SoakClient.Failure(description: "usage: SoakClient background <url> <folder> <count>")
    }
    url = words[1]
    folder = URL(fileURLWithPath: words[2])
    self.count = count
  }

  func run() async throws {
    let folder = folder
    let configuration = URLSessionConfiguration.background(
      withIdentifier: "soak", folder: folder.appendingPathComponent("journal")
    ) { _, response in
      (folder.appendingPathComponent(response.url?.lastPathComponent ?? "unknown"), [])
    }
    configuration.urlCache = nil
    let session = Session(configuration: configuration)
    let log = CompletionLog(folder.appendingPathComponent("log"))
    var names = try log.names()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for request in session.restoredRequests {
        guard let name = request.originalRequest?.url?.lastPathComponent else {
          throw SoakClient.Failure(description: "a restored request without a URL")
        }
        names.insert(name)
        group.addTask { try await wait(for: request, name, log) }
      }
      for number in 0..<count {
        for kind in ["download", "put", "post", "draft", "tus"] where !names.contains("\(kind)-\(number)") {
          let name = "\(kind)-\(number)"
          let request = make(session, kind, name)
          group.addTask { try await wait(for: request, name, log) }
        }
      }
      try await group.waitForAll()
    }
    // The journal of the last completions is removed after the handlers.
    while try FileManager.default.contentsOfDirectory(atPath: folder.path + "/journal") != ["lock"] {
      await Task.yield()
    }
  }

  private func make(_ session: Session, _ kind: String, _ name: String) -> Request {
    let target = folder.appendingPathComponent(name)
    let file = folder.appendingPathComponent("body-\(name)")
    return switch kind {
    case "download": session.download("\(url)/\(name)", to: { _, _ in (target, []) })
    case "put": session.upload(file, to: "\(url)/\(name)", method: .put)
    case "draft": session.upload(file, to: "\(url)/\(name)").resumable(options(.draft))
    case "tus": session.upload(file, to: "\(url)/\(name)").resumable(options(.tus))
    default: session.upload(file, to: "\(url)/\(name)")
    }
  }

  /// Options with many requests for each upload, so that losing one does not end the upload.
  private func options(_ scheme: ResumableUpload.Scheme) -> ResumableUpload {
    var options = ResumableUpload(scheme)
    options.createsWithContent = false
    options.maximumPartSize = 40_000
    options.initialDelay = 0.01
    options.maximumFailureCount = 100
    return options
  }

  /// Adds the handler that logs the completion, unless an earlier process has done so.
  private func wait(for request: Request, _ name: String, _ log: CompletionLog) async throws {
    let mayBeLogged = request.mayHaveBeenDelivered
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
      let handle: @Sendable (AFError?) -> Void = { error in
        continuation.resume(with: Result { try log.add(name, error, unlessThere: mayBeLogged) })
      }
      if let download = request as? DownloadRequest {
        download.response(queue: .global()) { handle($0.error) }
      } else if let upload = request as? UploadRequest {
        upload.response(queue: .global()) { handle($0.error) }
      }
    }
  }
}

/// A file with a line for each completion.
private final class CompletionLog: Sendable {
  private let path: String
  private let queue = DispatchQueue(label: "completion-log")

  init(_ url: URL) { path = url.path }

  func names() throws -> Set<String> {
    let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
    return Set(text.split(separator: "\n").compactMap { $0.split(separator: " ").first.map(String.init) })
  }

  func add(_ name: String, _ error: AFError?, unlessThere: Bool) throws {
    try queue.sync {
      if unlessThere, try names().contains(name) { return }
      let code = (error?.underlyingError as? URLError)?.code.rawValue ?? 0
      let line = Array("\(name) \(error == nil ? "ok" : "error \(code)")\n".utf8)
      let descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT, 0o600)
      defer { close(descriptor) }
      guard write(descriptor, line, line.count) == line.count else {
        throw SoakClient.Failure(description: "the log cannot be written")
      }
    }
  }
}
