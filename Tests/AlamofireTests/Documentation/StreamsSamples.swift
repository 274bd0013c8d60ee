import Alamofire

// Samples of Streams.md; see `SampleTests`.

private struct Item: Decodable, Sendable {
  var id: Int
}

private let url = "https://example.com/items"

private func show(_ value: Any) {}

private func handler(queue: DispatchQueue) {
  AF.streamRequest(url)
    .validate()
    .responseStreamDecodable(of: Item.self, on: queue) { stream in
      switch stream.event {
      case .stream(.success(let item)): print(item.id)
      case .stream(.failure(let error)): print("not an item: \(error.localizedDescription)")
      case .complete(let completion): print(completion.error?.localizedDescription ?? "the end")
      }
    }
}

private func loop() async {
  let task = AF.streamRequest(url).streamTask()
  for await stream in task.streamingDecodables(Item.self) {
    switch stream.event {
    case .stream(let result): print(result)
    case .complete(let completion): print(completion.error?.localizedDescription ?? "the end")
    }
  }
}

private struct ChunkCounter: DataStreamSerializer {
  func serialize(_ data: Data) throws -> Int { data.count }
}

private func counter(queue: DispatchQueue) {
  AF.streamRequest(url).responseStream(using: ChunkCounter(), on: queue) { stream in
    if let count = stream.value { print(count) }
  }
}

private func inputStream() throws {
  guard let stream = AF.streamRequest(url).asInputStream() else { return }
  stream.open()
  var buffer = [UInt8](repeating: 0, count: 4096)
  while case let count = stream.read(&buffer, maxLength: buffer.count), count > 0 {
    print(count)
  }
  stream.close()
}

private func chunks(queue: DispatchQueue) {
  AF.request("https://example.com/log")
    .validate()
    .responseChunks(on: queue) { chunk in print("\(chunk.count) more bytes") }
    .response(queue: queue) { response in
      print(response.error?.localizedDescription ?? "all of it is there")
    }
}
