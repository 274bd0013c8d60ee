import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

@testable import Alamofire

/// Parents that combine the progress of several requests. Foundation changes a parent with each of its children.
@Suite("Trees of progress", .timeLimit(.minutes(5))) struct ProgressTreeTests {
  private func count(_ received: Int, of length: Int) -> ByteCount {
    var count = ByteCount()
    (count.received, count.expectedToReceive) = (Int64(received), Int64(length))
    return count
  }

  @Test("Requests on several threads change one parent, and no change is lost") func threads() {
    for _ in 0..<10 {
      let parent = Progress(totalUnitCount: 8)
      var made = (0..<8).map { _ in ProgressReport() }
      for index in made.indices {
        parent.addChild(made[index].downloadProgress().applied(), withPendingUnitCount: 1)
      }
      let reports = made
      DispatchQueue.concurrentPerform(iterations: 8) { index in
        var report = reports[index]
        for received in 1...1000 { report.moved(count(received, of: 1000), nil).deliver() }
      }
      #expect(parent.completedUnitCount == 8 && parent.fractionCompleted == 1)
    }
  }

  @Test("The requests of two sessions complete their parent") func sessions() async throws {
    let server = try HTTPTestServer()
    let sessions = (0..<2).map { _ in Session.real(startRequestsImmediately: false) }
    let requests = (0..<400).map { sessions[$0 % 2].request(server.url("/bytes/1000")) }
    let parent = Progress(totalUnitCount: 400)
    for request in requests { parent.addChild(request.downloadProgress, withPendingUnitCount: 1) }
    for request in requests { request.resume() }
    for request in requests { #expect(await request.end().error == nil) }
    #expect(parent.completedUnitCount == 400 && parent.fractionCompleted == 1)
  }

  /// A child of the caller, with which Foundation compares another one that is complete.
  private final class Neighbour: Progress, @unchecked Sendable {
    // Unchecked, because the superclass is. Its own properties are constants.
    private let ownHash: Int
    private let onComparison: @Sendable () -> Void

    init(hash: Int, onComparison: @escaping @Sendable () -> Void) {
      ownHash = hash
      self.onComparison = onComparison
      super.init(parent: nil, userInfo: nil)
      totalUnitCount = 1
    }

    override var hash: Int { ownHash }

    override func isEqual(_ object: Any?) -> Bool {
      onComparison()
      return (object as? Neighbour) === self
    }
  }

  @Test("Code of the caller that runs during a change may ask for the progress") func reentrance() {
    var report = ProgressReport()
    let seen = report.downloadProgress()
    let child = seen.applied()
    let counts = Recorder<Int64>()
    let neighbour = Neighbour(hash: child.hash) { counts.add(seen.applied().completedUnitCount) }
    let parent = Progress(totalUnitCount: 2)
    // With the same hash, the first one is found first.
    parent.addChild(neighbour, withPendingUnitCount: 1)
    parent.addChild(child, withPendingUnitCount: 1)
    let before = counts.count
    report.moved(count(8, of: 8), nil).deliver()
    #expect(counts.count > before, "Foundation did not call the neighbour")
    #expect(child.completedUnitCount == 8 && parent.completedUnitCount == 1)
  }
}
