import Alamofire
import Foundation
import Scorecard

/// One large body, moved by this package as its users would move it.
struct BodyClient {
  /// Where the body comes from or goes to.
  var url: URL
  /// Answers a small GET; what is measured begins after it.
  var warmup: URL
  var file: URL
  var bytes: Int

  func move(_ row: BodyRow) async throws -> BodyFigures {
    let session = Session()
    defer { withExtendedLifetime(session) {} }
    _ = try await session.request(warmup).validate().serializingData().value
    let idle = Memory.megabytes("VmRSS")
    let processor = Clock.processor()
    let start = Clock.monotonic()
    let moved =
      switch row {
      case .uploadFile: try await upload(session)
      case .downloadFile: try await download(session)
      }
    let seconds = Double(Clock.monotonic() - start) / 1e9
    let cpuSeconds = Double(Clock.processor() - processor) / 1e9
    guard moved == bytes else { throw UnexpectedResponse() }
    return BodyFigures(
      bytes: moved, seconds: seconds, cpuSeconds: cpuSeconds, idleMegabytes: idle,
      peakMegabytes: Memory.megabytes("VmHWM"))
  }

  /// Returns what the server says it has read.
  private func upload(_ session: Session) async throws -> Int {
    let answer = try await session.upload(file, to: url).validate().serializingString().value
    return Int(answer.trimmingCharacters(in: .whitespacesAndNewlines)) ?? -1
  }

  /// Returns the length of the file.
  private func download(_ session: Session) async throws -> Int {
    let target = file
    let stored = try await session.download(url, to: { _, _ in (target, [.removePreviousFile]) })
      .validate().serializingDownloadedFileURL().value
    return try FileManager.default.attributesOfItem(atPath: stored.path)[.size] as? Int ?? -1
  }
}
