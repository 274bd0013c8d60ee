import Alamofire
import Foundation
import Scorecard
import Synchronization

/// Moves one large body with the public API of this package.
struct BodyClient {
  /// The source or the target of the body.
  var url: URL
  /// A URL that answers a small GET. The measurement begins after it.
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
      case .streamDiscard: try await stream(session)
      }
    let seconds = Double(Clock.monotonic() - start) / 1e9
    let cpuSeconds = Double(Clock.processor() - processor) / 1e9
    guard moved == bytes else { throw UnexpectedResponse() }
    return BodyFigures(
      bytes: moved, seconds: seconds, cpuSeconds: cpuSeconds, idleMegabytes: idle,
      peakMegabytes: Memory.megabytes("VmHWM"))
  }

  /// Returns the number of bytes that the server read, from its answer.
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

  /// Returns the number of bytes that were handed over.
  private func stream(_ session: Session) async throws -> Int {
    let queue = DispatchQueue(label: "bench.stream")
    let counter = Counter()
    let error: AFError? = await withCheckedContinuation { ended in
      session.streamRequest(url).validate().responseStream(on: queue) { stream in
        switch stream.event {
        case .stream(.success(let chunk)): counter.add(chunk.count)
        case .complete(let completion): ended.resume(returning: completion.error)
        }
      }
    }
    if let error { throw error }
    return counter.count
  }
}

/// Counts bytes on any thread.
private final class Counter: Sendable {
  private let value = Atomic<Int>(0)

  var count: Int { value.load(ordering: .relaxed) }

  func add(_ count: Int) { value.wrappingAdd(count, ordering: .relaxed) }
}
