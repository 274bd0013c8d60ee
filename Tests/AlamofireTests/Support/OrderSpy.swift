import Alamofire
import Foundation
import Synchronization

/// A monitor that detects requests whose end is reported before their beginning.
final class OrderSpy: EventMonitor {
  private enum Told { case beginning, end, endBeforeBeginning }

  let queue = DispatchQueue(label: "order spy")
  private let reported = Mutex<[UUID: Told]>([:])

  /// The number of requests with events in the wrong order, after all dispatched events are delivered.
  var endsBeforeBeginnings: Int {
    queue.sync {}
    return reported.withLock { reported in reported.values.count { $0 == .endBeforeBeginning } }
  }

  func requestDidResume(_ request: Request) {
    let id = request.id
    reported.withLock { reported in
      if reported[id] == nil { reported[id] = .beginning }
      if reported[id] == .end { reported[id] = .endBeforeBeginning }
    }
  }

  func requestDidFinish(_ request: Request) {
    let id = request.id
    reported.withLock { reported in
      if reported[id] == nil { reported[id] = .end }
    }
  }
}
