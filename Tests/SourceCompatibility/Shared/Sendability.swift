import Alamofire

#if IMPORTS_FOUNDATION
  import Foundation
#endif
#if IMPORTS_FOUNDATION_NETWORKING
  import FoundationNetworking
#endif

// Code from before closures were `Sendable`. Its closures change captured variables and objects. It compiles without
// warnings in the Swift 5 mode. In the Swift 6 mode it has warnings, which are errors in this target, so
// `SendabilityDiagnosticsTests` compiles it there.
#if swift(<6) || ALLOWS_WARNINGS

  private let url = "http://localhost"

  private class Model {
    var text = ""
    var count = 0
  }

  private func handlers(_ model: Model) {
    var count = 0
    AF.request(url).response { _ in count += 1 }
    AF.request(url).responseData { model.count = $0.data?.count ?? 0 }
    AF.request(url).responseString { response in model.text = response.value ?? "" }
    AF.request(url).responseDecodable(of: [String].self) { model.count = $0.value?.count ?? 0 }
    AF.request(url).response(responseSerializer: StringResponseSerializer()) { model.text = $0.value ?? "" }
    AF.request(url).response(responseSerializer: Counting()) { model.count = $0.value ?? 0 }
    AF.download(url).response { model.text = $0.fileURL?.path ?? "" }
    AF.download(url).responseURL { model.text = $0.value?.path ?? "" }
    AF.download(url).responseData { model.count = $0.value?.count ?? 0 }
    AF.download(url).responseString { model.text = $0.value ?? "" }
    AF.download(url).response(responseSerializer: .string) { model.text = $0.value ?? "" }
    AF.streamRequest(url).responseStream { _ in model.count += 1 }
    AF.streamRequest(url).responseStreamString { model.text = $0.value ?? "" }
    AF.streamRequest(url).responseStream(using: StringStreamSerializer()) { model.text = $0.value ?? "" }
  }

  // Values that are not Sendable are errors in the Swift 6 mode, as they are with upstream.
  #if swift(<6)
    private class Item: Decodable {
      var name = ""
    }

    private func values(_ model: Model) {
      AF.request(url).responseDecodable(of: Item.self) { model.text = $0.value?.name ?? "" }
      AF.download(url).responseDecodable(of: Item.self) { model.text = $0.value?.name ?? "" }
      AF.streamRequest(url).responseStreamDecodable(of: Item.self) { model.text = $0.value?.name ?? "" }
    }
  #endif

  @available(*, deprecated) private func untypedHandlers(_ model: Model) {
    AF.request(url).responseJSON { model.text = "\($0.result)" }
    AF.download(url).responseJSON { model.text = "\($0.result)" }
  }

  private func requests(_ model: Model) {
    var heads = 0
    AF.request(url)
      .validate { _, _, _ in
        model.count += 1
        return .success(())
      }
      .uploadProgress { model.count = Int($0.completedUnitCount) }
      .downloadProgress(queue: .global()) { model.count = Int($0.completedUnitCount) }
      .cURLDescription { model.text = $0 }
      .cURLDescription(on: .main) { model.text = $0 }
      .onURLRequestCreation { model.text = $0.url?.path ?? "" }
      .onURLSessionTaskCreation { model.count = $0.taskIdentifier }
      .onHTTPResponse { heads = $0.statusCode }
      .onHTTPResponse { response, completion in
        heads = response.statusCode
        completion(.allow)
      }
    AF.request(url).onHTTPResponse { (_: HTTPURLResponse) async in model.count = heads }
    AF.download(url)
      .validate { _, _, file in
        model.text = file?.path ?? ""
        return .success(())
      }
      .cancel { model.count = $0?.count ?? 0 }
    AF.streamRequest(url)
      .validate { _, response in
        model.count = response.statusCode
        return .success(())
      }
      .onHTTPResponse { heads = $0.statusCode }
    AF.withAllRequests { model.count = $0.count }
    AF.cancelAllRequests { model.count = 0 }
  }

  private func interceptors(_ model: Model) {
    let adapter = Adapter { request, _, completion in
      model.count += 1
      completion(.success(request))
    }
    let retrier = Retrier { _, _, _, completion in
      model.count += 1
      completion(.doNotRetry)
    }
    let both = Interceptor(
      adaptHandler: { request, _, completion in
        model.count += 1
        completion(.success(request))
      }, retryHandler: { _, _, _, completion in completion(model.count > 1 ? .retry : .doNotRetry) })
    print(adapter, retrier, both)
    AF.request(url, interceptor: .adapter { request, _, _ in model.text = "\(request)" }).response { _ in }
    AF.request(url, interceptor: .retrier { _, _, _, done in done(model.count > 1 ? .retry : .doNotRetry) })
      .response { _ in }
    AF.request(
      url,
      interceptor: .interceptor(
        adapter: { request, _, _ in model.text = "\(request)" }, retrier: { _, _, _, _ in model.count = 1 })
    ).response { _ in }
    AF.request(url, interceptor: .deflateCompressor(shouldCompressBodyData: { $0.count > model.count }))
      .response { _ in }
    AF.request(url, interceptor: .offlineRetrier(isOfflineError: { _ in model.count > 0 })).response { _ in }
    AF.request(url, interceptor: Counter())
      .redirect(using: .modify { _, request, _ in model.count > 1 ? request : nil })
      .cacheResponse(using: .modify { _, response in model.count > 1 ? response : nil })
      .response { _ in }
    _ = Redirector(behavior: .modify { _, request, _ in model.count > 1 ? request : nil })
    _ = ResponseCacher(behavior: .modify { _, response in model.count > 1 ? response : nil })
    Counter().adapt(URLRequest(url: URL(fileURLWithPath: "/")), for: AF) { _ in model.count += 1 }
    NetworkReachabilityManager()?.startListening { model.text = "\($0)" }
  }

  private func encoders(_ model: Model) {
    _ = URLEncoding(arrayEncoding: .custom { key, index in "\(key)\(index)\(model.count)" })
    _ = URLEncodedFormEncoder(
      arrayEncoding: .custom { key, _ in key + model.text }, dataEncoding: .custom { _ in model.text },
      dateEncoding: .custom { _ in model.text }, keyEncoding: .custom { $0 + model.text },
      keyPathEncoding: .init { $0 + model.text }, nilEncoding: .init { model.text })
  }

  // Classes with variables, which are not Sendable.

  private final class Counter: RequestInterceptor {
    var count = 0

    func adapt(
      _ urlRequest: URLRequest, for session: Session,
      completion: @escaping (Result<URLRequest, Error>) -> Void
    ) {
      count += 1
      completion(.success(urlRequest))
    }

    func retry(
      _ request: Request, for session: Session, dueTo error: Error,
      completion: @escaping (RetryResult) -> Void
    ) {
      completion(.doNotRetry)
    }
  }

  private final class Counting: DataResponseSerializerProtocol {
    var count = 0

    func serialize(request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: Error?) throws -> Int
    {
      count += 1
      return count
    }
  }

  private final class Route: URLRequestConvertible, URLConvertible {
    var path = "/"

    func asURL() throws -> URL { URL(fileURLWithPath: path) }
    func asURLRequest() throws -> URLRequest { URLRequest(url: try asURL()) }
  }

  private final class Monitor: EventMonitor {
    var finished = 0

    func requestDidFinish(_ request: Request) { finished += 1 }
  }

  private final class Following: RedirectHandler, CachedResponseHandler {
    var count = 0

    func task(
      _ task: URLSessionTask, willBeRedirectedTo request: URLRequest, for response: HTTPURLResponse,
      completion: @escaping (URLRequest?) -> Void
    ) {
      count += 1
      completion(request)
    }

    func dataTask(
      _ task: URLSessionDataTask, willCacheResponse response: CachedURLResponse,
      completion: @escaping (CachedURLResponse?) -> Void
    ) {
      completion(response)
    }
  }

  private final class Signing: ParameterEncoding {
    var count = 0

    func encode(_ urlRequest: URLRequestConvertible, with parameters: Parameters?) throws -> URLRequest {
      count += 1
      return try urlRequest.asURLRequest()
    }
  }

  private final class Token: AuthenticationCredential {
    var requiresRefresh = false
  }

  private final class Login: Authenticator {
    var refreshes = 0

    func apply(_ credential: Token, to urlRequest: inout URLRequest) {}

    func refresh(
      _ credential: Token, for session: Session, completion: @escaping (Result<Token, Error>) -> Void
    ) {
      refreshes += 1
      completion(.success(credential))
    }

    func didRequest(
      _ urlRequest: URLRequest, with response: HTTPURLResponse, failDueToAuthenticationError error: Error
    ) -> Bool { false }

    func isRequest(_ urlRequest: URLRequest, authenticatedWith credential: Token) -> Bool { true }
  }

  private final class Prefix: DataPreprocessor, DataDecoder, EmptyResponse {
    var count = 0

    static func emptyValue() -> Prefix { Prefix() }
    func preprocess(_ data: Data) throws -> Data { data.dropFirst(count) }
    func decode<D: Decodable>(_ type: D.Type, from data: Data) throws -> D {
      try JSONDecoder().decode(type, from: data)
    }
  }

  private final class Lines: DataStreamSerializer {
    var count = 0

    func serialize(_ data: Data) throws -> String { String(decoding: data, as: UTF8.self) }
  }

  #if ALLOWS_WARNINGS
    /// A controller on the main actor, which is a warning in both modes.
    @MainActor private final class Controller {
      private var text = ""

      func load() {
        AF.request(url)
          .validate { _, _, _ in
            self.text = "validated"
            return .success(())
          }
          .downloadProgress { self.text = "\($0)" }
          .responseData { [weak self] _ in
            self?.text = "loaded"
            self?.load()
          }
        AF.download(url).responseURL { self.text = $0.value?.path ?? "" }
        AF.streamRequest(url).responseStreamString { self.text = $0.value ?? "" }
      }
    }
  #endif
#endif
