import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// What a request core knows of the file that it downloads.
package final class DownloadPlan: Sendable {
  private struct Attempt {
    var sink: any FileBodySink
    /// The name of the file once it is complete, or named by resume data: from then on it does not go with the process.
    let lastingPath: String
    /// What the user's resume data tells of an earlier download, when its file is there.
    var part: ResumeData?
    var head: ResponseHead?

    /// Whether the file has the name that lasts.
    private var isKept = false

    init(sink: any FileBodySink, lastingPath: String, part: ResumeData?) {
      self.sink = sink
      self.lastingPath = lastingPath
      self.part = part
    }

    /// The path of the file.
    private var path: String { isKept ? lastingPath : sink.path }

    /// Gives the file the name that lasts. Returns its path.
    mutating func keep() -> String {
      if !isKept, !extendsPart { isKept = rename(sink.path, lastingPath) == 0 }
      return path
    }

    /// Whether the bytes go behind those of the earlier download.
    var extendsPart: Bool { part?.path == sink.path }
    /// The resume data of the download. If there are any, its file lasts.
    mutating func resumeData(of request: URLRequest?) -> Data? {
      guard let request, let head,
        var data = ResumeData(request: request, head: head, file: sink.path, received: sink.size)
      else { return nil }
      data.name(keep())
      return data.data
    }
    /// Removes the file, unless the user may still go on from what is in it.
    func remove() {
      if !extendsPart { try? FileManager.default.removeItem(atPath: path) }
    }
    /// The earlier download is of no use any more: there is something better.
    func removePart() {
      if let part, !extendsPart { BodyFiles.removePart(part.path) }
    }
  }

  private struct State {
    /// The file into which the attempt at hand is written, until it is moved or removed.
    var attempt: Attempt?
    /// Where the bytes of its response began; known also afterwards.
    var offset: Int64 = 0
  }

  /// How the names of its files begin and end.
  static let fileName = (prefix: "Alamofire_", suffix: ".tmp")

  let downloadable: DownloadRequest.Downloadable
  let destination: DownloadRequest.Destination?
  private let state = Mutex(State())

  init(_ downloadable: DownloadRequest.Downloadable, destination: DownloadRequest.Destination?) {
    self.downloadable = downloadable
    self.destination = destination
  }

  /// Where the bytes of the next hop go. The file of an attempt serves all its hops.
  ///
  /// An earlier download is never written over by anything but what follows it: as long as the user has
  /// resume data that name it, also in another process, its first bytes are those that the data speak of.
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

  /// What the user's resume data says; `nil` for a download that begins.
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

  /// Where the bytes of the response began; what came before counts as progress.
  var offset: Int64 { state.withLock { $0.offset } }

  private func take() -> Attempt? {
    state.withLock { state in
      defer { state.attempt = nil }
      return state.attempt
    }
  }

  /// Another attempt begins where this one did; what it wrote goes.
  func forget() {
    guard let left = take() else { return }
    _ = left.sink.finish()
    left.remove()
  }

  /// Takes the file of a complete response, to be moved.
  func takeFile() -> URL? {
    guard var left = take() else { return nil }
    if left.head?.status == 200 { left.removePart() }
    // The page of a redirect that is not followed was not written, and there was nothing else.
    if left.head == nil {
      _ = FileManager.default.createFile(
        atPath: left.sink.path, contents: nil, attributes: [.posixPermissions: 0o600])
    }
    return URL(fileURLWithPath: left.keep())
  }

  /// The resume data of the current attempt, whose transfer has failed; otherwise the data that it continued from. Its
  /// file stays, and gets the name that lasts, because the data name it.
  func resumeData(of request: URLRequest?) -> Data? {
    if let sink = state.withLock({ $0.attempt?.sink }) {
      _ = sink.finish()
      if let data = state.withLock({ $0.attempt?.resumeData(of: request) }) { return data }
    }
    return earlierData
  }

  /// Takes what a broken attempt can be gone on from; without anything of that kind its file is removed. What
  /// the user went on from stays good until there is something better.
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

  /// The resume data that the download was made from, if its file is still there.
  private var earlierData: Data? {
    guard case .resumeData(let data) = downloadable, (try? ResumeData(data))?.isUsable == true else {
      return nil
    }
    return data
  }
}
