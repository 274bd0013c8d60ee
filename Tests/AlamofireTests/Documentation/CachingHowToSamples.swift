import Alamofire

// Samples of CachingHowTo.md; see `SampleTests`.

private func show(_ value: Any) {}

private func choosing(folder: URL) {
  let configuration = URLSessionConfiguration.af.default
  configuration.urlCache = HTTPCache(
    memoryCapacity: 16_000_000, diskCapacity: 200_000_000, directory: folder)  // bytes
  let session = Session(configuration: configuration)
  show(session)
}

private func policies() {
  let fresh = AF.request("https://example.com/prices") {
    $0.cachePolicy = .reloadIgnoringLocalCacheData
  }
  let offline = AF.request("https://example.com/prices") {
    $0.cachePolicy = .returnCacheDataDontLoad
  }
  show((fresh, offline))
}

private func looking(session: Session, urlRequest: URLRequest) async {
  let response = await session.request(urlRequest).serializingData().response
  let fetchType = response.metrics?.transactionMetrics.last?.resourceFetchType
  print(fetchType == .localCache ? "from the cache" : "from the server")

  let stored = session.sessionConfiguration.urlCache?.cachedResponse(for: urlRequest)
  print(stored?.data.count ?? 0)
  session.sessionConfiguration.urlCache?.removeCachedResponse(for: urlRequest)
}

private func sharing() {
  var options = TransportOptions()
  options.sharesIdenticalRequests = true
  let session = Session(transportOptions: options)
  show(session)
}
