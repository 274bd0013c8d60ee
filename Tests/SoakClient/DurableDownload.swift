import Alamofire
import Synchronization

/// A download that survives the end of its process. It saves its resume data as soon as there is some, and a new
/// process continues from the saved data. It repeats failed attempts until the file is complete.
///
///     SoakClient download <url> <destination> <file for resume data> <crash point>
struct DurableDownload {
  let url: String
  let destination: URL
  let notes: URL
  let crashPoint: CrashPoint
  private let queue = DispatchQueue(label: "durable-download")

  init(_ words: [String]) throws {
    guard words.count == 5, let crashPoint = Int(words[4]) else {
      throw SoakClient.Failure(
        description: "usage: SoakClient download <url> <destination> <file for resume data> <crash point>")
    }
    url = words[1]
    destination = URL(fileURLWithPath: words[2])
    notes = URL(fileURLWithPath: words[3])
    self.crashPoint = CrashPoint(crashPoint)
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
      crashPoint.pass()
      // A download that was cancelled after its file was moved leaves the file there.
      guard let error = response.error, !FileManager.default.fileExists(atPath: destination.path) else {
        return
      }
      guard error.isExplicitlyCancelledError || error.isSessionTaskError || error.responseCode == 503 else {
        throw error
      }
      data = response.resumeData
      try save(data)
      crashPoint.pass()
    }
    throw SoakClient.Failure(description: "there is no file yet")
  }

  /// Requests the file once, from the resume data if there is some.
  ///
  /// - Parameter isCautious: Whether the download is cancelled as soon as there is progress to save. A request field
  ///   announces that to the server, which can then hold the rest back.
  private func attempt(
    _ session: Session, _ data: Data?, isCautious: Bool
  ) async -> AFDownloadResponse<URL> {
    let (destination, crashPoint) = (destination, crashPoint)
    // The body of an error response is not the file.
    let target: DownloadRequest.Destination = { temporary, response in
      crashPoint.pass()
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
      crashPoint.pass()
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

/// Kills this process by SIGKILL at one of the points where it is called.
final class CrashPoint: Sendable {
  private let length: Atomic<Int>

  /// Makes a crash point.
  ///
  /// - Parameter length: The number of the call that kills the process; 0 for none.
  init(_ length: Int) { self.length = Atomic(length) }

  func pass() {
    if length.wrappingSubtract(1, ordering: .relaxed).newValue == 0 { kill(getpid(), SIGKILL) }
  }
}
