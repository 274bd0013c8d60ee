import Alamofire

#if IMPORTS_FOUNDATION
  import Foundation
#endif
#if IMPORTS_FOUNDATION_NETWORKING
  import FoundationNetworking
#endif

// Generic code over serializers and responses. It relies on the values being `Sendable` without saying so.

private func value<Serializer: ResponseSerializer>(
  of request: DataRequest, by serializer: Serializer
) async throws -> Serializer.SerializedObject {
  try await request.serializingResponse(using: serializer).value
}

private func response<Serializer: DataResponseSerializerProtocol>(
  of request: DataRequest, by serializer: Serializer
) async -> DataResponse<Serializer.SerializedObject, AFError> {
  await request.serializingResponse(using: serializer).response
}

private func file<Serializer: DownloadResponseSerializerProtocol>(
  of request: DownloadRequest, by serializer: Serializer
) async -> DownloadResponse<Serializer.SerializedObject, AFError> {
  await request.serializingDownload(using: serializer).response
}

private func task<Serializer: ResponseSerializer>(
  _ request: DataRequest, _ serializer: Serializer
) -> Task<Serializer.SerializedObject, any Error> {
  Task { try await request.serializingResponse(using: serializer).value }
}

private func handler<Serializer: ResponseSerializer>(
  _ request: DataRequest, _ serializer: Serializer,
  _ completion: @escaping @Sendable (Serializer.SerializedObject?) -> Void
) {
  request.response(responseSerializer: serializer) { response in completion(response.value) }
}

private func download<Serializer: ResponseSerializer>(
  _ request: DownloadRequest, _ serializer: Serializer,
  _ completion: @escaping @Sendable (AFResult<Serializer.SerializedObject>) -> Void
) {
  request.response(responseSerializer: serializer) { completion($0.result) }
}

private func detached<Value>(_ response: DataResponse<Value, AFError>) -> Task<Value?, Never> {
  Task.detached { response.value }
}

private func detached<Value>(_ response: DownloadResponse<Value, AFError>) {
  Task.detached { print(response.fileURL as Any, response.value as Any) }
}

private func detached<Value: Sendable>(
  _ response: AFDataResponse<Value>, by use: @escaping @Sendable (Value) -> Void
) {
  let value = response.value
  DispatchQueue.global().async { if let value = value { use(value) } }
}

private func detached<Value, Failure>(_ stream: DataStreamRequest.Stream<Value, Failure>) {
  Task.detached { print(stream.value as Any, stream.completion as Any) }
}

private func detached<Value, Failure>(_ event: DataStreamRequest.Event<Value, Failure>) {
  Task.detached { print(event) }
}

private func requiresSendable<Value: Sendable>(_ value: Value) {}

extension DataResponse {
  fileprivate func check() { requiresSendable((self, value)) }
}

extension DownloadResponse {
  fileprivate func check() { requiresSendable((self, value)) }
}

extension ResponseSerializer {
  fileprivate func check(_ object: SerializedObject) { requiresSendable(object) }
}

/// A client that is generic over its serializer, as upstream's users write them.
private actor Client<Serializer: ResponseSerializer> {
  private let serializer: Serializer
  private var cached: [String: Serializer.SerializedObject] = [:]

  init(serializer: Serializer) {
    self.serializer = serializer
  }

  func load(_ url: String) async throws -> Serializer.SerializedObject {
    if let known = cached[url] { return known }
    let value = try await AF.request(url).serializingResponse(using: serializer).value
    cached[url] = value
    return value
  }
}

@MainActor private final class ViewModel<Serializer: ResponseSerializer> {
  private(set) var value: Serializer.SerializedObject?
  private let serializer: Serializer

  init(serializer: Serializer) {
    self.serializer = serializer
  }

  func load() async throws {
    value = try await AF.request("http://localhost").serializingResponse(using: serializer).value
  }

  func loadLater() {
    AF.request("http://localhost").response(responseSerializer: serializer) { response in
      Task { @MainActor in self.value = response.value }
    }
  }
}

private struct Endpoint<Output: Decodable & Sendable>: Sendable {
  let path: String

  func send(completion: @escaping @Sendable (AFDataResponse<Output>) -> Void) {
    AF.request("http://localhost\(path)").validate().responseDecodable(of: Output.self) { completion($0) }
  }

  func send() async -> AFDataResponse<Output> {
    await withCheckedContinuation { continuation in send { continuation.resume(returning: $0) } }
  }
}

/// A monitor with a generic method that does not require `Sendable` values.
private final class Parsed: EventMonitor {
  func request<Value>(_ request: DataRequest, didParseResponse response: DataResponse<Value, AFError>) {
    Task.detached { print(response) }
  }

  func request<Value>(_ request: DownloadRequest, didParseResponse response: DownloadResponse<Value, AFError>)
  {
    Task.detached { print(response) }
  }
}

private func uses(_ request: DataRequest, _ download: DownloadRequest) async throws {
  _ = try await value(of: request, by: StringResponseSerializer())
  _ = await response(of: request, by: DataResponseSerializer())
  _ = await file(of: download, by: URLResponseSerializer())
  _ = try await task(request, StringResponseSerializer()).value
  _ = try await Client(serializer: DecodableResponseSerializer<[String]>()).load("http://localhost")
  try await ViewModel(serializer: StringResponseSerializer()).load()
  _ = await Endpoint<[String]>(path: "/").send()
  let response = await request.serializingString().response
  _ = await detached(response.map(\.count)).value
  request.eventMonitor(Parsed())
}
