import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// The file of a download.
package final class DownloadPlan: Sendable {
  private struct Attempt {
    var sink: any FileBodySink
    /// The name of the file once it is complete or in resume data. A file with this name is not removed with the
    /// process.
    let lastingPath: String
    /// The earlier download in the user's resume data, if its file exists.
    var part: ResumeData?
    var head: ResponseHead?

    /// Whether the file has its lasting name.
    private var isKept = false

    init(sink: any FileBodySink, lastingPath: String, part: ResumeData?) {
      self.sink = sink
      self.lastingPath = lastingPath
      self.part = part
    }

    /// The path of the file.
    private var path: String { isKept ? lastingPath : sink.path }

    /// Renames the file to its lasting name. Returns the path.
    mutating func keep() -> String {
      if !isKept, !extendsPart { isKept = rename(sink.path, lastingPath) == 0 }
      return path
    }

    /// Whether the bytes are appended to the file of the earlier download.
    var extendsPart: Bool { part?.path == sink.path }
    /// Returns the resume data of the download. If there are any, the file gets its lasting name.
    mutating func resumeData(of request: URLRequest?) -> Data? {
      guard let request, let head,
        var data = ResumeData(request: request, head: head, file: sink.path, received: sink.size)
      else { return nil }
      data.name(keep())
      return data.data
    }
    /// Removes the file, unless it is the one of the user's resume data.
    func remove() {
      if !extendsPart { try? FileManager.default.removeItem(atPath: path) }
    }
    /// Removes the earlier file, which a newer one replaces.
    func removePart() {
      if let part, !extendsPart { BodyFiles.removePart(part.path) }
    }
  }

  private struct State {
    /// The file of the current attempt, until it is moved or removed.
    var attempt: Attempt?
    /// The offset at which the response began; kept after the attempt.
    var offset: Int64 = 0
  }

  /// The prefix and the suffix of lasting names.
  static let fileName = (prefix: "Alamofire_", suffix: ".tmp")

  let downloadable: DownloadRequest.Downloadable
  let destination: DownloadRequest.Destination?
  private let state = Mutex(State())

  init(_ downloadable: DownloadRequest.Downloadable, destination: DownloadRequest.Destination?) {
    self.downloadable = downloadable
    self.destination = destination
  }

  /// Returns the sink of the next hop. All hops of an attempt share a file.
  ///
  /// The file of an earlier download is only appended to, never overwritten. Resume data that the user keeps, also in
  /// another process, describe its first bytes.
  func sink() throws(AFError) -> any BodySink {
    if let sink = state.withLock({ $0.attempt?.sink }) { return sink }
    let resume = try earlier()
    let part = resume.flatMap { $0.isUsable ? $0 : nil }
    let folder = FileManager.default.temporaryDirectory
    let path = BodyFiles.temporaryPath(in: folder, suffix: ".part")
    let name = "\(Self.fileName.prefix)\(UUID().uuidString)\(Self.fileName.suffix)"
    let lastingPath = folder.appendingPathComponent(name).path
    let sink = BodyFiles.sink(path: path) { [weak self] head in
      let place = resume?.place(for: head, hasPart: part != nil) ?? .success(.new)
      if case .success(let place) = place { self?.begun(head, at: place) }
      return place
    }
    state.withLock { $0 = State(attempt: Attempt(sink: sink, lastingPath: lastingPath, part: part)) }
    return sink
  }

  /// Returns the user's resume data; `nil` for a new download.
  private func earlier() throws(AFError) -> ResumeData? {
    guard case .resumeData(let data) = downloadable else { return nil }
    return try ResumeData(data)
  }

  private func begun(_ head: ResponseHead, at place: DownloadPlace) {
    state.withLock { state in
      state.attempt?.head = head
      if case .part(_, let offset) = place { state.offset = offset } else { state.offset = 0 }
    }
  }

  /// The offset at which the response began; earlier bytes count as progress.
  var offset: Int64 { state.withLock { $0.offset } }

  private func take() -> Attempt? {
    state.withLock { state in
      defer { state.attempt = nil }
      return state.attempt
    }
  }

  /// Removes the bytes of the attempt, before another one begins at the same offset.
  func forget() {
    guard let left = take() else { return }
    _ = left.sink.finish()
    left.remove()
  }

  /// Takes the file of a complete response, to be moved.
  func takeFile() -> URL? {
    guard var left = take() else { return nil }
    if left.head?.status == 200 { left.removePart() }
    // Without a head no bytes were written, as for the body of a redirect that is not followed.
    if left.head == nil {
      _ = FileManager.default.createFile(
        atPath: left.sink.path, contents: nil, attributes: [.posixPermissions: 0o600])
    }
    return URL(fileURLWithPath: left.keep())
  }

  /// Returns the resume data of the current attempt, whose transfer has failed; without any, the data that it
  /// continued from. Its file gets its lasting name, because the data contain it.
  func resumeData(of request: URLRequest?) -> Data? {
    if let sink = state.withLock({ $0.attempt?.sink }) {
      _ = sink.finish()
      if let data = state.withLock({ $0.attempt?.resumeData(of: request) }) { return data }
    }
    return earlierData
  }

  /// Takes the resume data of a failed attempt; if there are none, its file is removed. The user's resume data stay
  /// valid until newer ones exist.
  func takeResumeData(of request: URLRequest?) -> Data? {
    if var left = take() {
      _ = left.sink.finish()
      if let data = left.resumeData(of: request) {
        left.removePart()
        return data
      }
      left.remove()
    }
    return earlierData
  }

  /// The resume data that the download was made from, if their file still exists.
  private var earlierData: Data? {
    guard case .resumeData(let data) = downloadable, (try? ResumeData(data))?.isUsable == true else {
      return nil
    }
    return data
  }
}
