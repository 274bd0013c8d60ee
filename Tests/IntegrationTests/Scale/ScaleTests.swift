import Foundation
import Testing

@Suite(.needsNginx, .timeLimit(.minutes(SoakRun.minutes))) struct ScaleTests {
  private struct Requests: Decodable {
    let before: SoakFigures
    let after: SoakFigures
    let failures: Int
    let firstFailure: String?
    let seconds: Double
  }

  /// The number of requests of `Scripts/soak`.
  private static let soakCount = ProcessInfo.processInfo.environment["ALAMOFIRE_SOAK_REQUESTS"].flatMap {
    Int($0)
  }

  @Test(
    "A large number of requests leaks no memory, thread or descriptor",
    arguments: [NginxServer.Entrance.http, .h2])
  func requests(entrance: NginxServer.Entrance) async throws {
    let server = try await NginxServer.shared
    let count = Self.soakCount ?? 100_000
    let report = try await SoakRun.run(
      Requests.self, ["requests", server.url(entrance, "/item?soak"), server.authority, "\(count)", "64"])
    if Self.soakCount != nil {
      print(
        "\(entrance): \(count) requests in \(Int(report.seconds)) s, \(report.failures) failed;",
        "before: \(report.before), after: \(report.after)")
    }
    #expect(report.failures == 0, "\(report.firstFailure ?? "")")
    #if !ADDRESS_SANITIZER  // It delays the reuse of freed memory.
      #expect(report.after.memory - report.before.memory < 6 * 1024)
    #endif
    #expect(report.after.descriptors <= report.before.descriptors + 6)
    #expect(report.after.threads <= report.before.threads + 1)
  }

  private struct Sessions: Decodable {
    let busy: SoakFigures
    let idle: SoakFigures
    let released: SoakFigures
    let seconds: Double
    let failures: Int
    let firstFailure: String?
  }

  @Test("A thousand sessions release their threads") func sessions() async throws {
    let server = try await NginxServer.shared
    let report = try await SoakRun.run(
      Sessions.self, ["sessions", server.url(.http, "/item?sessions"), server.authority, "1000"])
    #expect(report.failures == 0, "\(report.firstFailure ?? "")")
    #expect(report.idle.threads <= 16)
    #expect(report.seconds < 10)
    #expect(report.released.threads <= 16)
    #expect(report.released.descriptors < 64)
  }

  private struct Early: Decodable {
    let status: Int?
    let code: Int?
    let message: String?
    let seconds: Double
    let secondsAfter: Double
    let processorTimeAfter: Double
    let goesOn: Bool
  }

  @Test(
    "An upload that is answered early ends and leaves the processor idle",
    arguments: ["/refused", "/unread"], [10_000, 60_000, 70_000, 5_000_000])
  func earlyAnswer(path: String, bytes: Int) async throws {
    let server = try await NginxServer.shared
    // nginx sends 64 KiB of this at once, and the rest a second later.
    try server.serve(Data(count: 70_000), as: "second")
    let report = try await SoakRun.run(
      Early.self,
      ["early", server.url(.h2, path), server.authority, "\(bytes)", server.url(.http, "/slow/second")])
    if let status = report.status {
      #expect(status == (path == "/refused" ? 413 : 200))
    } else {
      #expect(report.code == URLError.Code.networkConnectionLost.rawValue)
      #expect(report.message?.contains("127.0.0.1") == true)
    }
    #expect(report.seconds < 10)
    #expect(report.secondsAfter > 0.3)
    #expect(report.processorTimeAfter < 100)
    #expect(report.goesOn)
  }
}
