import Alamofire

#if IMPORTS_FOUNDATION
  import Foundation
#endif
#if IMPORTS_FOUNDATION_NETWORKING
  import FoundationNetworking
#endif

// Subclasses of each open class, with upstream's initializers and overrides, and functions that are passed on.

private let url = "http://localhost"

private class Policy: RetryPolicy, @unchecked Sendable {
  override init(
    retryLimit: UInt = RetryPolicy.defaultRetryLimit,
    exponentialBackoffBase: UInt = RetryPolicy.defaultExponentialBackoffBase,
    exponentialBackoffScale: Double = RetryPolicy.defaultExponentialBackoffScale,
    retryableHTTPMethods: Set<HTTPMethod> = RetryPolicy.defaultRetryableHTTPMethods,
    retryableHTTPStatusCodes: Set<Int> = RetryPolicy.defaultRetryableHTTPStatusCodes,
    retryableURLErrorCodes: Set<URLError.Code> = RetryPolicy.defaultRetryableURLErrorCodes
  ) {
    super.init(
      retryLimit: retryLimit, exponentialBackoffBase: exponentialBackoffBase,
      exponentialBackoffScale: exponentialBackoffScale, retryableHTTPMethods: retryableHTTPMethods,
      retryableHTTPStatusCodes: retryableHTTPStatusCodes, retryableURLErrorCodes: retryableURLErrorCodes)
  }
}

private final class PatientPolicy: RetryPolicy, @unchecked Sendable {
  let name: String

  init(name: String) {
    self.name = name
    super.init(retryLimit: 5, maximumRetryAfter: 60, jitter: .full)
  }
}

private class LostPolicy: ConnectionLostRetryPolicy, @unchecked Sendable {
  override init(
    retryLimit: UInt = RetryPolicy.defaultRetryLimit,
    exponentialBackoffBase: UInt = RetryPolicy.defaultExponentialBackoffBase,
    exponentialBackoffScale: Double = RetryPolicy.defaultExponentialBackoffScale,
    retryableHTTPMethods: Set<HTTPMethod> = RetryPolicy.defaultRetryableHTTPMethods
  ) {
    super.init(
      retryLimit: retryLimit, exponentialBackoffBase: exponentialBackoffBase,
      exponentialBackoffScale: exponentialBackoffScale, retryableHTTPMethods: retryableHTTPMethods)
  }
}

private final class RestlessPolicy: ConnectionLostRetryPolicy, @unchecked Sendable {
  init() { super.init(retryLimit: 1, jitter: .full) }
}

private final class Form: MultipartFormData {
  let name: String

  init(name: String) {
    self.name = name
    super.init(fileManager: .default, boundary: nil)
  }

  override var contentType: String {
    get { super.contentType }
    set { super.contentType = newValue }
  }
}

private final class JSON: JSONParameterEncoder, @unchecked Sendable {
  override init(encoder: JSONEncoder = JSONEncoder()) { super.init(encoder: encoder) }

  override func encode<Parameters>(_ parameters: Parameters?, into request: URLRequest) throws -> URLRequest
  where Parameters: Encodable {
    try super.encode(parameters, into: request)
  }
}

private final class URLForm: URLEncodedFormParameterEncoder, @unchecked Sendable {
  override init(
    encoder: URLEncodedFormEncoder = URLEncodedFormEncoder(), destination: Destination = .methodDependent
  ) {
    super.init(encoder: encoder, destination: destination)
  }

  override func encode<Parameters>(_ parameters: Parameters?, into request: URLRequest) throws -> URLRequest
  where Parameters: Encodable {
    try super.encode(parameters, into: request)
  }
}

private final class Adapting: Adapter, @unchecked Sendable {
  override init(_ adaptHandler: @escaping AdaptHandler) { super.init(adaptHandler) }

  override func adapt(
    _ urlRequest: URLRequest, using state: RequestAdapterState,
    completion: @escaping @Sendable (Result<URLRequest, any Error>) -> Void
  ) {
    super.adapt(urlRequest, using: state, completion: completion)
  }
}

private final class Retrying: Retrier, @unchecked Sendable {
  override init(_ retryHandler: @escaping RetryHandler) { super.init(retryHandler) }
}

private final class Both: Interceptor, @unchecked Sendable {
  override init(adaptHandler: @escaping AdaptHandler, retryHandler: @escaping RetryHandler) {
    super.init(adaptHandler: adaptHandler, retryHandler: retryHandler)
  }

  override init(adapter: any RequestAdapter, retrier: any RequestRetrier) {
    super.init(adapter: adapter, retrier: retrier)
  }

  override init(
    adapters: [any RequestAdapter] = [], retriers: [any RequestRetrier] = [],
    interceptors: [any RequestInterceptor] = []
  ) {
    super.init(adapters: adapters, retriers: retriers, interceptors: interceptors)
  }
}

private final class Trusting: ServerTrustManager, @unchecked Sendable {
  override init(allHostsMustBeEvaluated: Bool = true, evaluators: [String: any ServerTrustEvaluating]) {
    super.init(allHostsMustBeEvaluated: allHostsMustBeEvaluated, evaluators: evaluators)
  }

  override func serverTrustEvaluator(forHost host: String) throws -> (any ServerTrustEvaluating)? {
    try super.serverTrustEvaluator(forHost: host)
  }
}

private final class Monitor: ClosureEventMonitor, @unchecked Sendable {
  override init(queue: DispatchQueue = .main) { super.init(queue: queue) }

  override func request(_ request: DataRequest, didParseResponse response: DataResponse<Data?, AFError>) {
    super.request(request, didParseResponse: response)
  }

  override func requestDidFinish(_ request: Request) { super.requestDidFinish(request) }
}

// Like upstream's, the manager has no designated initializer that a subclass could call.
private final class Reachability: NetworkReachabilityManager, @unchecked Sendable {
  override func startListening(
    onQueue queue: DispatchQueue = .main, onUpdatePerforming listener: @escaping Listener
  ) -> Bool {
    super.startListening(onQueue: queue, onUpdatePerforming: listener)
  }

  override func stopListening() { super.stopListening() }
  override var isReachable: Bool { super.isReachable }
  override var isReachableOnCellular: Bool { super.isReachableOnCellular }
  override var isReachableOnEthernetOrWiFi: Bool { super.isReachableOnEthernetOrWiFi }
  override var status: NetworkReachabilityStatus { super.status }
}

private final class Delegate: SessionDelegate, @unchecked Sendable {
  override init(fileManager: FileManager = .default) { super.init(fileManager: fileManager) }
}

private func subclasses() {
  _ = [Policy(), Policy(retryLimit: 1), PatientPolicy(name: "a"), LostPolicy(), RestlessPolicy()]
  _ = [RetryPolicy(jitter: .full), RetryPolicy(retryLimit: 1, maximumRetryAfter: 5)]
  _ = ConnectionLostRetryPolicy(jitter: .full)
  AF.request(url, interceptor: .retryPolicy(jitter: .full)).response { _ in }
  AF.request(url, interceptor: .connectionLostRetryPolicy(jitter: .full)).response { _ in }
  _ = (Form(name: "a"), JSON(), URLForm(), Adapting { _, _, _ in }, Retrying { _, _, _, _ in }, Both())
  _ = (Trusting(evaluators: [:]), Monitor(), Delegate())
}

/// A type of `Encodable` that is not `Sendable`.
private final class Draft: Encodable {
  var text = ""
}

private func encoders(_ request: URLRequest) throws {
  _ = try JSONParameterEncoder.default.encode(Draft(), into: request)
  _ = try URLEncodedFormParameterEncoder.default.encode(Draft(), into: request)
  let text: String = try URLEncodedFormEncoder().encode(Draft())
  let data: Data = try URLEncodedFormEncoder(alphabetizeArrayItems: false).encode(Draft())
  _ = (text, data, URLEncodedFormEncoder(absentEncoding: .dropKey))
}

/// Functions and initializers as values, with the types that upstream gives them.
private func unapplied(_ session: Session) {
  typealias Request =
    (
      any URLConvertible, HTTPMethod, Parameters?, any ParameterEncoding, HTTPHeaders?,
      (any RequestInterceptor)?, Bool?, Session.RequestModifier?
    ) -> DataRequest
  let request: Request = session.request
  let perform: (any URLRequestConvertible, (any RequestInterceptor)?, Bool?) -> DataRequest = session.request
  typealias StreamUpload =
    (
      InputStream, any URLConvertible, HTTPMethod, HTTPHeaders?, (any RequestInterceptor)?, FileManager,
      Session.RequestModifier?
    ) -> UploadRequest
  let stream: StreamUpload = session.upload
  typealias FormUpload =
    (
      (MultipartFormData) -> Void, any URLRequestConvertible, UInt64, (any RequestInterceptor)?, FileManager
    ) -> UploadRequest
  let form: FormUpload = session.upload(multipartFormData:with:usingThreshold:interceptor:fileManager:)
  typealias MakePolicy =
    (UInt, UInt, Double, Set<HTTPMethod>, Set<Int>, Set<URLError.Code>) -> RetryPolicy
  let policy: MakePolicy = RetryPolicy.init
  let lost: (UInt, UInt, Double, Set<HTTPMethod>) -> ConnectionLostRetryPolicy = ConnectionLostRetryPolicy
    .init
  typealias MakeEncoder =
    (
      Bool, URLEncodedFormEncoder.ArrayEncoding, URLEncodedFormEncoder.BoolEncoding,
      URLEncodedFormEncoder.DataEncoding, URLEncodedFormEncoder.DateEncoding,
      URLEncodedFormEncoder.KeyEncoding,
      URLEncodedFormEncoder.KeyPathEncoding, URLEncodedFormEncoder.NilEncoding,
      URLEncodedFormEncoder.SpaceEncoding, CharacterSet
    ) -> URLEncodedFormEncoder
  let encoder: MakeEncoder = URLEncodedFormEncoder.init
  typealias MakeSession =
    (
      URLSessionConfiguration, SessionDelegate, DispatchQueue, Bool, Session.RequestSetup, DispatchQueue?,
      DispatchQueue?, (any RequestInterceptor)?, ServerTrustManager?, (any RedirectHandler)?,
      (any CachedResponseHandler)?, [any EventMonitor]
    ) -> Session
  let made: MakeSession = Session.init
  _ = (request, perform, stream, form, policy, lost, encoder, made)
}
