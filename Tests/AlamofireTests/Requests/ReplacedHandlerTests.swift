import Alamofire
import Foundation
import FoundationNetworking
import Testing

@Suite("Replaced handlers", .timeLimit(.minutes(5)))
struct ReplacedHandlerTests {
  /// Calls a closure when it is released.
  private final class Parting: Sendable {
    private let call: @Sendable () -> Void

    init(_ call: @escaping @Sendable () -> Void) { self.call = call }

    deinit { call() }

    /// Does nothing. A closure that calls it retains the object.
    func hold() {}
  }

  /// Whether the object that a handler retains is released when `set` replaces the handler. The release replaces the
  /// handler once more; a lock that is taken twice ends the process.
  private static func isReleased(by set: @escaping @Sendable (Parting?) -> Void) -> Bool {
    let releases = Recorder<Bool>()
    set(
      Parting {
        set(nil)
        releases.add(true)
      })
    set(nil)
    return releases.count == 1
  }

  @Test("A handler that is replaced may use the request when it is released") func replaced() async {
    await #expect(processExitsWith: .success) {
      typealias Tests = ReplacedHandlerTests
      let session = Session(configuration: .isolated, startRequestsImmediately: false)
      let request = session.upload(Data(), to: "http://a.test/")
      #expect(
        Tests.isReleased { parting in
          request.redirect(
            using: .modify { _, request, _ in
              parting?.hold()
              return request
            })
        })
      #expect(
        Tests.isReleased { parting in
          request.cacheResponse(
            using: .modify { _, response in
              parting?.hold()
              return response
            })
        })
      #expect(Tests.isReleased { parting in request.uploadProgress { _ in parting?.hold() } })
      #expect(Tests.isReleased { parting in request.downloadProgress { _ in parting?.hold() } })
      #expect(Tests.isReleased { parting in request.onHTTPResponse { _ in parting?.hold() } })
      #expect(
        Tests.isReleased { parting in
          request.trailers {
            parting?.hold()
            return [:]
          }
        })
    }
  }
}
