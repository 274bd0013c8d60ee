import Alamofire

// Samples of PerformanceAdvice.md; see `SampleTests`.

private struct Item: Decodable, Sendable {
  var id: Int
}

private func show(_ value: Any) {}

private func sharing(folder: URL) {
  let configuration = URLSessionConfiguration.af.default
  configuration.urlCache = HTTPCache(
    memoryCapacity: 32_000_000, diskCapacity: 500_000_000, directory: folder)

  var options = TransportOptions()
  options.sharesIdenticalRequests = true
  let session = Session(configuration: configuration, transportOptions: options)
  show(session)
}

private func many(urls: [String]) async {
  var options = TransportOptions()
  options.requestLimits.perHost = 16
  let session = Session(transportOptions: options)

  let count = await withTaskGroup(of: Bool.self) { group in
    for url in urls {
      group.addTask {
        await session.request(url).validate().serializingDecodable(Item.self).response.error == nil
      }
    }
    return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
  }
  show(count)
}
