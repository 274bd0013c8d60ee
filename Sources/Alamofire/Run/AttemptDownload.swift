import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

// The file of a download goes to its destination.
extension Attempt {
  func moveDownload() throws(AFError) -> Outcome<Attempt> {
    guard let plan = core.download, let exchange = hops.exchange, let source = plan.takeFile() else {
      return .done
    }
    guard core.observers.contains(.task) else { return try move(source, by: plan, exchange) }
    return .task { [core, request] in
      await core.tellDownloaded(to: source, of: request)
    } then: { (attempt, _) throws(AFError) in
      try attempt.move(source, by: plan, exchange)
    }
  }

  private func move(_ source: URL, by plan: DownloadPlan, _ exchange: Exchange) throws(AFError) -> Outcome<
    Attempt
  > {
    if let transfer = core.transfer { return move(source, of: transfer, plan, exchange) }
    guard let destination = plan.destination, let response = exchange.responseForDestination else {
      if core.notifiesMonitors { core.tellDestination(source, of: request) }
      return try fileMoved(.success(source))
    }
    return .task { [core, request] () -> Result<URL, AFError> in
      let (target, options) = core.isCancelled ? (source, []) : destination(source, response)
      guard !core.isCancelled else {
        try? FileManager.default.removeItem(at: source)
        return .failure(.explicitlyCancelled)
      }
      if core.notifiesMonitors { core.tellDestination(target, of: request) }
      return DownloadPlan.move(source, to: target, options)
    } then: { (attempt, result) throws(AFError) in
      try attempt.fileMoved(result)
    }
  }

  /// Keeps the place of the file of a download.
  func fileMoved(_ result: Result<URL, AFError>) throws(AFError) -> Outcome<Attempt> {
    if case .success(let url) = result { core.state.withLock { $0.extras.fileURL = url } }
    if core.notifiesMonitors { core.tellStored(result, of: request) }
    _ = try result.get()
    return .done
  }
}
