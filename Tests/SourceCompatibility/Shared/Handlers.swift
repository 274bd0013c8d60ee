import Alamofire

#if IMPORTS_FOUNDATION
  import Foundation
#endif
#if IMPORTS_FOUNDATION_NETWORKING
  import FoundationNetworking
#endif

// Redirects and cached responses.

private let url = "http://localhost"

private func redirects() {
  _ = [Redirector(behavior: .follow), Redirector(behavior: .doNotFollow), .follow, .doNotFollow]
  _ = Redirector(behavior: .modify { task, request, response in request })
  _ = Redirector(
    behavior: .modify({
      (task: URLSessionTask, request: URLRequest, response: HTTPURLResponse) -> URLRequest? in
      task.taskIdentifier > 0 && response.statusCode == 302 ? request : nil
    }))
  AF.request(url).redirect(using: .follow).response { _ in }
  AF.request(url).redirect(using: .doNotFollow).response { _ in }
  AF.request(url).redirect(using: .modify { _, request, _ in request }).response { _ in }
  AF.request(url).redirect(using: .modify(using: { _, _, _ in nil })).response { _ in }
  AF.request(url).redirect(using: Redirector.doNotFollow).response { _ in }
  AF.request(url).redirect(using: OnlyOnce()).response { _ in }
}

private struct OnlyOnce: RedirectHandler {
  func task(
    _ task: URLSessionTask, willBeRedirectedTo request: URLRequest, for response: HTTPURLResponse,
    completion: @escaping (URLRequest?) -> Void
  ) {
    completion(task.originalRequest?.url == request.url ? nil : request)
  }
}

private func caching() {
  _ = [ResponseCacher(behavior: .cache), ResponseCacher(behavior: .doNotCache), .cache, .doNotCache]
  _ = ResponseCacher(behavior: .modify { task, cached in cached })
  AF.request(url).cacheResponse(using: .cache).response { _ in }
  AF.request(url).cacheResponse(using: .doNotCache).response { _ in }
  AF.request(url).cacheResponse(using: .modify { _, cached in cached }).response { _ in }
  AF.request(url).cacheResponse(using: .modify(using: { _, _ in nil })).response { _ in }
  AF.request(url).cacheResponse(using: ResponseCacher.cache).response { _ in }
  AF.request(url).cacheResponse(using: Marking()).response { _ in }
}

private struct Marking: CachedResponseHandler {
  func dataTask(
    _ task: URLSessionDataTask, willCacheResponse response: CachedURLResponse,
    completion: @escaping (CachedURLResponse?) -> Void
  ) {
    completion(
      CachedURLResponse(
        response: response.response, data: response.data, userInfo: ["date": Date()],
        storagePolicy: .allowedInMemoryOnly))
  }
}

private func behaviors(_ redirector: Redirector, _ cacher: ResponseCacher) {
  switch redirector.behavior {
  case .follow, .doNotFollow: break
  case .modify(let change): _ = change
  }
  switch cacher.behavior {
  case .cache, .doNotCache: break
  case .modify(let change): _ = change
  }
}
