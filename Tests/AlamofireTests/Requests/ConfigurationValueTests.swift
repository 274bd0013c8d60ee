import Foundation
import HTTPWire
import Testing

@testable import Alamofire

/// The options of the callers, as the rules below them take them.
@Suite("Values of configurations") struct ConfigurationValueTests {
  @Test("A resumable upload has the scheme and the limits of its caller") func resumableUploads() throws {
    var upload = ResumableUpload(.tus)
    upload.maximumFailureCount = 3
    upload.initialDelay = 0.25
    upload.maximumDelay = 7
    upload.maximumPartSize = 99
    upload.createsWithContent = false
    upload.interopVersion = 8
    upload.metadata = ["name": "a"]
    var expected = UploadResumption.Policy()
    expected.dialect = .tus
    expected.failureLimit = 3
    expected.initialDelay = .milliseconds(250)
    expected.maximumDelay = .seconds(7)
    expected.largestPart = 99
    expected.createsWithContent = false
    expected.interopVersion = 8
    expected.metadata = "name YQ=="
    #expect(try upload.policy.get() == expected)
    #expect(try ResumableUpload.draft.policy.get().dialect == .draft)
    let automatic = try ResumableUpload.automatic.policy.get()
    #expect(automatic == UploadResumption.Policy(), "the defaults are those of the rules")
  }

  @Test("Limits of a resumable upload that make no sense are replaced") func limitsOfUploads() throws {
    var upload = ResumableUpload()
    upload.maximumFailureCount = -1
    upload.maximumPartSize = 0
    upload.initialDelay = -1
    let policy = try upload.policy.get()
    #expect(policy.failureLimit == 0 && policy.largestPart == 1 && policy.initialDelay == .zero)
    upload.metadata = ["a key": "b"]
    #expect(throws: ResumableUploadError.self) { try upload.policy.get() }
  }

  @Test("Threads that change the options of a request at the same time do not undo each other's changes")
  func concurrentOptions() async {
    let request = Session.retained(fake: FakeTransport(), startRequestsImmediately: false)
      .request("http://a.test/")
    let (begun, gate) = (Latch(), DispatchSemaphore(value: 0))
    let limits = Recorder<Int>()
    async let first: Void = withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        request.transportOptions { options in
          limits.add(options.redirectLimit)
          begun.open()
          if limits.count == 1 { _ = gate.wait(timeout: .now() + 60) }
          options.bodySizeLimit = 77
        }
        continuation.resume()
      }
    }
    await begun.wait()
    request.transportOptions { $0.redirectLimit = 3 }
    gate.signal()
    await first
    let options = request.core.profile.options
    #expect(options.bodySizeLimit == 77 && options.redirectLimit == 3)
    #expect(limits.count == 2 && limits.values.last == 3, "the closure is called again with the new options")
  }

  @Test("A WebSocket connection has the limits of its caller") func webSockets() {
    var configuration = WebSocketRequest.Configuration(
      maximumMessageSize: 5, pingInterval: 0.5, compressesMessages: true)
    configuration.maximumUnsentSize = 7
    configuration.closeTimeout = .seconds(3)
    let options = configuration.channelOptions
    #expect(options.maximumMessageSize == 5 && options.unsentLimit == 7 && options.compresses)
    #expect(options.pingInterval == .milliseconds(500) && options.closeTimeout == .seconds(3))
    configuration.maximumMessageSize = -1
    configuration.maximumUnsentSize = 0
    for interval in [0, -1, TimeInterval.nan] {
      configuration.pingInterval = interval
      #expect(configuration.channelOptions.pingInterval == nil, "\(interval)")
    }
    #expect(configuration.channelOptions.maximumMessageSize == 0)
    #expect(configuration.channelOptions.unsentLimit == 1)
    let defaults = WebSocketRequest.Configuration.default
    #expect(defaults.maximumMessageSize == 1 << 20 && defaults.maximumUnsentSize == 1 << 24)
    #expect(defaults.pingInterval == nil && !defaults.compressesMessages && defaults.protocol == nil)
    #expect(WebSocketRequest.Configuration.protocol("chat").protocol == "chat")
    #expect(WebSocketRequest.Configuration.maximumMessageSize(9).maximumMessageSize == 9)
    #expect(WebSocketRequest.Configuration.pingInterval(4).pingInterval == 4)
  }

  @Test("An event stream has the limits of its caller") func eventStreams() {
    var configuration = EventSourceRequest.Configuration()
    configuration.initialDelay = 0.5
    configuration.maximumDelay = 9
    configuration.maximumEventSize = 100
    #expect(configuration.policy.initialDelay == .milliseconds(500))
    #expect(configuration.policy.maximumDelay == .seconds(9))
    #expect(configuration.limits.event == 100 && configuration.limits.line == 164)
    configuration.maximumEventSize = 0
    #expect(configuration.limits.event == 1)
    configuration.maximumEventSize = .max
    #expect(configuration.limits.line == .max)
  }

  @Test("The progress of a download in segments has a fraction and a remaining time if it can")
  func segments() {
    var progress = SegmentedDownload.Progress()
    #expect(progress.fractionCompleted == 0 && progress.remainingTime == nil)
    (progress.completedBytes, progress.totalBytes) = (25, 100)
    #expect(progress.fractionCompleted == 0.25 && progress.remainingTime == nil)
    progress.bytesPerSecond = 0
    #expect(progress.remainingTime == nil)
    progress.bytesPerSecond = 25
    #expect(progress.remainingTime == .seconds(3))
    progress.totalBytes = 0
    #expect(progress.fractionCompleted == 0)
  }
}
