import Alamofire

// Samples of the comments on streams; see `SampleTests`.

private struct User: Codable, Sendable {
  var name: String
}

private struct Item: Decodable, Sendable {
  var id: Int
}

/// Named as in the samples.
private let url = "https://example.com/stream"

struct ByteCounter: DataStreamSerializer {
  func serialize(_ data: Data) throws -> Int { data.count }
}

private func handlers() {
  AF.streamRequest("https://httpbin.org/stream/100")
    .validate()
    .responseStreamDecodable(of: Item.self) { stream in
      switch stream.event {
      case .stream(.success(let item)): print(item)
      case .stream(.failure(let error)): print("not an item: \(error)")
      case .complete(let completion): print(completion.error ?? "the end")
      }
    }
}

private func loops() async {
  for await stream in AF.streamRequest(url).streamTask().streamingData() {
    guard let data = stream.value else { continue }
    print(data.count)
  }
  let task = AF.streamRequest("https://httpbin.org/stream/100").streamTask()
  for await stream in task.streamingDecodables(Item.self) {
    switch stream.event {
    case .stream(let result): print(result)
    case .complete(let completion): print(completion.error ?? "the end")
    }
  }
}

private func passthrough() -> PassthroughStreamSerializer {
  let serializer = PassthroughStreamSerializer()
  return serializer
}

private func text() -> StringStreamSerializer {
  let serializer = StringStreamSerializer()
  return serializer
}

private func values() -> DecodableStreamSerializer<User> {
  let serializer = DecodableStreamSerializer<User>(decoder: JSONDecoder())
  return serializer
}

private func chunks(on queue: DispatchQueue) {
  AF.request("https://example.com/log")
    .validate()
    .responseChunks(on: queue) { chunk in print("\(chunk.count) more bytes") }
    .response { response in print(response.error ?? "all of it is there") }
}

private func sequences(file: FileHandle) async throws {
  for try await data in AF.streamRequest(url).validate().chunks() {
    try file.write(contentsOf: data)
  }
  for try await item in AF.streamRequest("https://httpbin.org/stream/100").decodables(of: Item.self) {
    print(item)
  }
}
