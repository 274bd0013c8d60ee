import Dispatch
import Glibc

/// Returns the label of the current queue, which Swift's overlay cannot return.
package func queueLabel() -> String {
  typealias Label = @convention(c) (OpaquePointer?) -> UnsafePointer<CChar>?
  guard let symbol = dlsym(nil, "dispatch_queue_get_label") else { return "" }
  return unsafeBitCast(symbol, to: Label.self)(nil).map { String(cString: $0) } ?? ""
}
