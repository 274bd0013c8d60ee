import Alamofire
import Foundation
import Synchronization

/// A monitor that finds requests of which the beginning is told after the end.
final class OrderSpy: EventMonitor {
  private enum Told { case beginning, end, endBeforeBeginning }

  let queue = DispatchQueue(label: "order spy")
  private let told = Mutex<[UUID: Told]>([:])

  /// The number of requests whose events came in a wrong order, including pending events.
  var endsBeforeBeginnings: Int {
    queue.sync {}
    return told.withLock { told in told.values.count { $0 == .endBeforeBeginning } }
  }

  func requestDidResume(_ request: Request) {
    let id = request.id
    told.withLock { told in
      if told[id] == nil { told[id] = .beginning }
      if told[id] == .end { told[id] = .endBeforeBeginning }
    }
  }

  func requestDidFinish(_ request: Request) {
    let id = request.id
    told.withLock { told in
      if told[id] == nil { told[id] = .end }
    }
  }
}
