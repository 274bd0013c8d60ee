import Alamofire

/// Stores and replaces responses in a loop, until a timer kills the process.
///
///     SoakClient cache <folder> <seed>
struct CacheWriting {
  let folder: URL
  let seed: Int

  init(_ words: [String]) throws {
    guard words.count == 3, let seed = Int(words[2]) else {
      throw SoakClient.Failure(description: "usage: SoakClient cache <folder> <seed>")
    }
    folder = URL(fileURLWithPath: words[1])
    self.seed = seed
  }

  func run() throws {
    let cache = HTTPCache(memoryCapacity: 100_000, diskCapacity: 1_000_000_000, directory: folder)
    // The timer can fire at any moment of the writes, which begin at once.
    let moment = DispatchTime.now() + .microseconds(2_000 + seed * 7_919 % 40_000)
    DispatchQueue.global().asyncAfter(deadline: moment) { kill(getpid(), SIGKILL) }
    for number in 0... {
      let url =
        number % 2 == 0 ? "http://a.test/old/\(number / 2 % 50)" : "http://a.test/new/\(seed)/\(number)"
      guard let request = URL(string: url).map({ URLRequest(url: $0) }),
        let response = HTTPURLResponse(
          url: request.url ?? folder, statusCode: 200, httpVersion: nil,
          headerFields: ["Cache-Control": "max-age=600", "X-Version": "\(seed).\(number)"])
      else { throw SoakClient.Failure(description: "\(url) is no URL") }
      // A body is one repeated letter, so that a mix of two bodies would be detected.
      let letter = UInt8(0x61 + (seed + number) % 26)
      cache.storeCachedResponse(
        CachedURLResponse(response: response, data: Data(repeating: letter, count: 20_000 + number % 1_000)),
        for: request)
    }
  }
}
