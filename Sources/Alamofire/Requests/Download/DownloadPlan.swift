import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// What a request core knows of the file that it downloads.
package final class DownloadPlan: Sendable {
  private struct Attempt {
    var path: String
    var sink: any FileBodySink
    var head: ResponseHead?
    /// Where the bytes of the response began.
    var offset: Int64 = 0
  }

  let downloadable: DownloadRequest.Downloadable
  let destination: DownloadRequest.Destination?
  /// The file into which the attempt at hand is written, until it is moved or removed.
  private let attempt = Mutex<Attempt?>(nil)

  init(_ downloadable: DownloadRequest.Downloadable, destination: DownloadRequest.Destination?) {
    self.downloadable = downloadable
    self.destination = destination
  }

  /// Where the bytes of the next hop go. The file of an attempt serves all its hops.
  func sink() throws(AFError) -> any BodySink {
    if let sink = attempt.withLock({ $0?.sink }) { return sink }
    var path = FileManager.default.temporaryDirectory
      .appendingPathComponent("Alamofire_\(UUID().uuidString).tmp").path
    var resume: ResumeData?
    if case .resumeData(let data) = downloadable {
      let parsed = try ResumeData(data)
      if parsed.isUsable {
        path = parsed.path
        resume = parsed
      }
    }
    let known = resume
    let sink = BodyFiles.sink(path: path) { [weak self] head in
      let offset = known?.offset(for: head) ?? .success(0)
      if case .success(let start) = offset { self?.begun(head, at: start) }
      return offset
    }
    attempt.withLock { $0 = Attempt(path: path, sink: sink) }
    return sink
  }

  private func begun(_ head: ResponseHead, at offset: Int64) {
    attempt.withLock { attempt in
      attempt?.head = head
      attempt?.offset = offset
    }
  }

  /// Where the bytes of the response began; what came before counts as progress.
  var offset: Int64 { attempt.withLock { $0?.offset ?? 0 } }

  /// Another attempt begins from the beginning; what is left of the last one goes.
  func forget() {
    let left = attempt.withLock { attempt in
      defer { attempt = nil }
      return attempt
    }
    guard let left else { return }
    _ = left.sink.finish()
    try? FileManager.default.removeItem(atPath: left.path)
  }

  /// Takes the file of a complete response, to be moved.
  func takeFile() -> URL? {
    attempt.withLock { attempt in
      defer { attempt = nil }
      return attempt.map { URL(fileURLWithPath: $0.path) }
    }
  }

  /// Takes what a broken attempt can be gone on from; without anything of that kind its file is removed.
  func takeResumeData(of request: URLRequest?) -> Data? {
    let left = attempt.withLock { attempt in
      defer { attempt = nil }
      return attempt
    }
    guard let left else { return nil }
    _ = left.sink.finish()
    if let request, let head = left.head,
      let data = ResumeData(request: request, head: head, file: left.path, received: left.sink.size)?.data
    {
      return data
    }
    // The part that resume data of the user names may be needed again.
    if case .resumeData(let data) = downloadable, (try? ResumeData(data))?.path == left.path,
      left.head == nil
    {
      return data
    }
    try? FileManager.default.removeItem(atPath: left.path)
    return nil
  }
}
