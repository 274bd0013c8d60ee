import Alamofire

// Samples of the comments on caching; see `SampleTests`.

private func cacheSample() {
  let folder = FileManager.default.temporaryDirectory.appendingPathComponent("maps-cache")
  let configuration = URLSessionConfiguration.af.default
  configuration.urlCache = HTTPCache(
    memoryCapacity: 16_000_000, diskCapacity: 200_000_000, directory: folder)  // bytes
  let session = Session(configuration: configuration)
  _ = session
}
