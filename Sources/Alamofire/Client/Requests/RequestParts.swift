import Foundation
import FoundationNetworking

/// The parts of a new request.
struct RequestParts {
  let session: SessionCore
  let core: RequestCore
  let interceptor: (any RequestInterceptor)?
}

extension SessionCore {
  /// Makes the parts of a request.
  ///
  /// - Parameter runsUserCode: Whether the conversion runs the caller's code.
  func parts(
    of convertible: any URLRequestConvertible, runsUserCode: Bool, kind: any RequestKind,
    _ interceptor: (any RequestInterceptor)?, _ shouldAutomaticallyResume: Bool?
  ) -> RequestParts {
    var interests: RequestInterests = []
    if let interceptor { interests.formUnion(RequestInterests(of: interceptor)) }
    if isIntercepted, let shared = self.interceptor { interests.formUnion(RequestInterests(of: shared)) }
    let core = RequestCore(
      session: runs, convertible: convertible, convertsByUserCode: runsUserCode, kind: kind,
      interests: interests, shouldAutomaticallyResume: shouldAutomaticallyResume)
    return RequestParts(session: self, core: core, interceptor: interceptor)
  }
}
