import Alamofire

// The samples of the comments about caching: they compile, or the tests do not.

private func cacheSample() {
  let folder = FileManager.default.temporaryDirectory.appendingPathComponent("maps-cache")
  let configuration = URLSessionConfiguration.af.default
  configuration.urlCache = HTTPCache(
    memoryCapacity: 16_000_000, diskCapacity: 200_000_000, directory: folder)  // bytes
  let session = Session(configuration: configuration)
  _ = session
}
