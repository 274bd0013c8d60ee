import Alamofire

/// A download in segments, which continues the download of an ended process.
///
///     SoakClient segments <url> <destination> <number of segments>
struct SegmentedDownloadRun {
  struct Report: Encodable {
    let bytes: Int64
    let seconds: Double
    let restarts: Int
  }

  let url: String
  let destination: URL
  let segments: Int

  init(_ words: [String]) throws {
    guard words.count == 4, let segments = Int(words[3]), segments > 0 else {
      throw SoakClient.Failure(
        description: "usage: SoakClient segments <url> <destination> <number of segments>")
    }
    url = words[1]
    destination = URL(fileURLWithPath: words[2])
    self.segments = segments
  }

  func run() async throws -> Report {
    let session = Session()
    defer { withExtendedLifetime(session) {} }
    let start = ContinuousClock.now
    let response = await session.segmentedDownload(
      url, segments: segments, minimumSegmentSize: 1 << 16, to: destination
    ).response
    _ = try response.result.get()
    let time = (ContinuousClock.now - start).components
    return Report(
      bytes: response.progress.completedBytes,
      seconds: Double(time.seconds) + Double(time.attoseconds) / 1e18,
      restarts: response.progress.restartCount)
  }
}
