import Alamofire
import HTTPTestServer

/// Shows the library with local servers. No request leaves this machine.
@main struct Tour {
  static let steps: [Step] = [
    getJSON, parameters, postJSON, validation, redirects, basicAuthentication, compression, concurrency,
    progress, downloads, segmentedDownloads, backgroundTransfers, uploads, resumableUploads, streams,
    eventSources, webSockets, retries, cancellation, timeouts, limits, trust, pinning, storage, images,
    metrics, monitors, curlDescription, failures,
  ]

  static func main() async {
    // Without this, a proxy of the environment would get the requests to this machine as well.
    setenv("no_proxy", "*", 1)
    do {
      let stage = try Stage()
      stage.write("Alamofire for Linux \(AFInfo.version): a tour of \(steps.count) steps")
      for (index, step) in steps.enumerated() {
        stage.begin(step, number: index + 1)
        try await step.run(stage)
      }
      stage.write("\nThat was the tour. Each step is a file in Examples/Sources/tour/Steps to copy from.")
    } catch {
      try? FileHandle.standardError.write(
        contentsOf: Data("The tour ended early: \(error.localizedDescription)\n".utf8))
      exit(1)
    }
  }
}
