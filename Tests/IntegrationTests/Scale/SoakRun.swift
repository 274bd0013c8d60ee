import Foundation

/// One run of SoakClient, in a separate process, so that other tests do not affect its measurements.
enum SoakRun {
  /// SwiftPM builds it beside the tests.
  private static let program = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
    .deletingLastPathComponent().appendingPathComponent("SoakClient").path

  /// The limit of a test, which `ALAMOFIRE_SOAK_MINUTES` can set.
  static let minutes =
    ProcessInfo.processInfo.environment["ALAMOFIRE_SOAK_MINUTES"].flatMap { Int($0) } ?? 10

  static func run<Report: Decodable>(
    _ type: Report.Type, _ words: [String], environment: [String: String] = [:]
  ) async throws -> Report {
    let run = try await CommandRun([program] + words, environment: environment)
    guard run.status == 0 else {
      throw ServerFailure(description: "SoakClient ended with \(run.status): \(run.errors)")
    }
    return try JSONDecoder().decode(type, from: run.output)
  }
}

/// The JSON of SoakClient.
struct SoakFigures: Decodable, CustomStringConvertible {
  /// Resident memory in KiB.
  let memory: Int
  let threads: Int
  let descriptors: Int

  var description: String { "\(memory) KiB, \(threads) threads, \(descriptors) descriptors" }
}
