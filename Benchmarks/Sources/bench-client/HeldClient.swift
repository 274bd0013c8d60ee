import Alamofire
import Foundation
import Scorecard

/// Sends very many requests at once with the public API of this package, and measures what they and their connections
/// take.
struct HeldClient {
  private let session: Session
  private let url: URL
  private let warmup: URL
  private let requests: Int

  init(_ setting: ClientSetting, warmup: URL, requests: Int) {
    session = setting.session()
    url = setting.url
    self.warmup = warmup
    self.requests = requests
  }

  func measure() async throws -> HeldFigures {
    for _ in 0..<200 { try await send(warmup) }
    Memory.trim()
    let idle = Memory.megabytes("VmRSS")
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<requests { group.addTask { try await send(url) } }
      try await group.waitForAll()
    }
    let peak = Memory.peakMegabytes()
    Memory.trim()
    let held = Memory.megabytes("VmRSS")
    return withExtendedLifetime(session) {
      HeldFigures(idleMegabytes: idle, peakMegabytes: peak, heldMegabytes: held)
    }
  }

  private func send(_ url: URL) async throws {
    if try await session.request(url).serializingData().value.isEmpty { throw UnexpectedResponse() }
  }
}
