import Alamofire
import Foundation
import FoundationNetworking
import Synchronization

/// An interceptor that counts its calls and answers with closures.
final class SpyInterceptor: RequestInterceptor {
  typealias Adapt = @Sendable (_ request: URLRequest, _ count: Int) -> Result<URLRequest, any Error>
  typealias Retry = @Sendable (_ request: Request, _ error: any Error, _ count: Int) -> RetryResult

  let name: String
  let recorder: Recorder<String>
  private let adaptCounter = Mutex(0)
  private let retryCounter = Mutex(0)
  private let onAdapt: Adapt
  private let onRetry: Retry
  let errors = Recorder<any Error>()

  init(
    _ name: String = "spy", recorder: Recorder<String> = Recorder(),
    adapt: @escaping Adapt = { request, _ in .success(request) },
    retry: @escaping Retry = { _, _, _ in .doNotRetry }
  ) {
    self.name = name
    self.recorder = recorder
    onAdapt = adapt
    onRetry = retry
  }

  /// Retries a number of times.
  convenience init(_ name: String = "spy", recorder: Recorder<String> = Recorder(), retries: Int) {
    self.init(name, recorder: recorder, retry: { _, _, count in count <= retries ? .retry : .doNotRetry })
  }

  var adaptCount: Int { adaptCounter.withLock { $0 } }
  var retryCount: Int { retryCounter.withLock { $0 } }

  func adapt(
    _ urlRequest: URLRequest, for session: Session,
    completion: @escaping @Sendable (Result<URLRequest, any Error>) -> Void
  ) {
    let count = adaptCounter.withLock { count in
      count += 1
      return count
    }
    recorder.add("\(name) adapts")
    completion(onAdapt(urlRequest, count))
  }

  func retry(
    _ request: Request, for session: Session, dueTo error: any Error,
    completion: @escaping @Sendable (RetryResult) -> Void
  ) {
    let count = retryCounter.withLock { count in
      count += 1
      return count
    }
    recorder.add("\(name) retries")
    errors.add(error)
    completion(onRetry(request, error, count))
  }
}

struct TestError: Error, Equatable {
  var text = "test"
}
