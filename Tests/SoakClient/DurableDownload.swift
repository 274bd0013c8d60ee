import Alamofire
import Synchronization

/// A download as one writes it that has to survive the end of its process: what it can go on from is saved
/// whenever there is some, and a new process begins with what is saved. Tries until it has the file.
///
///     SoakClient download <url> <destination> <file for resume data> <fuse>
struct DurableDownload {
  let url: String
  let destination: URL
  let notes: URL
  let fuse: Fuse
  private let queue = DispatchQueue(label: "durable-download")

  init(_ words: [String]) throws {
    guard words.count == 5, let fuse = Int(words[4]) else {
      throw SoakClient.Failure(
        description: "usage: SoakClient download <url> <destination> <file for resume data> <fuse>")
    }
    url = words[1]
    destination = URL(fileURLWithPath: words[2])
    notes = URL(fileURLWithPath: words[3])
    self.fuse = Fuse(fuse)
  }

  func run() async throws {
    let session = Session()
    defer { withExtendedLifetime(session) {} }
    var data = try? Data(contentsOf: notes)
    var isCautious = false
    #if THREAD_SANITIZER || ADDRESS_SANITIZER
      let deadline = ContinuousClock.now + .seconds(300)
    #else
      let deadline = ContinuousClock.now + .seconds(60)
    #endif
    while ContinuousClock.now < deadline {
      isCautious.toggle()
      let response = await attempt(session, data, isCautious: isCautious)
      fuse.burn()
      // A download that was cancelled when its file had been moved already leaves the file there.
      guard let error = response.error, !FileManager.default.fileExists(atPath: destination.path) else {
        return
      }
      guard error.isExplicitlyCancelledError || error.isSessionTaskError || error.responseCode == 503 else {
        throw error
      }
      data = response.resumeData
      try save(data)
      fuse.burn()
    }
    throw SoakClient.Failure(description: "there is no file yet")
  }

  /// - Parameter isCautious: Whether it is broken off as soon as there is something to save. The server is
  ///   told, which can send no more than that then.
  private func attempt(
    _ session: Session, _ data: Data?, isCautious: Bool
  ) async -> AFDownloadResponse<URL> {
    let (destination, fuse) = (destination, fuse)
    // What the server has to say when it has no file is not the file.
    let target: DownloadRequest.Destination = { temporary, response in
      fuse.burn()
      return (response.statusCode < 300 ? destination : temporary, [])
    }
    let hint = Adapter { request, _, completion in
      var request = request
      request.headers.update(name: "X-Cautious", value: isCautious ? "yes" : "no")
      completion(.success(request))
    }
    let request =
      data.map { session.download(resumingWith: $0, interceptor: hint, to: target) }
      ?? session.download(url, interceptor: hint, to: target)
    request.validate().downloadProgress(queue: queue) { [weak request] _ in
      fuse.burn()
      if isCautious { request?.cancel(producingResumeData: true) }
    }
    let response = await request.serializingDownloadedFileURL().response
    if response.error != nil, let page = response.fileURL { try? FileManager.default.removeItem(at: page) }
    return response
  }

  private func save(_ data: Data?) throws {
    if let data {
      try data.write(to: notes, options: .atomic)
    } else {
      try? FileManager.default.removeItem(at: notes)
    }
  }
}

/// Ends this process, as nothing but SIGKILL does, at one of the moments that it is told of.
final class Fuse: Sendable {
  private let length: Atomic<Int>

  /// - Parameter length: How many moments there are; 0 for never.
  init(_ length: Int) { self.length = Atomic(length) }

  func burn() {
    if length.wrappingSubtract(1, ordering: .relaxed).newValue == 0 { kill(getpid(), SIGKILL) }
  }
}
