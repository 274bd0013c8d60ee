import Alamofire

#if IMPORTS_FOUNDATION
  import Foundation
#endif
#if IMPORTS_FOUNDATION_NETWORKING
  import FoundationNetworking
#endif

// The API for `async` functions.

private let url = "http://localhost"

private struct User: Codable, Sendable {
  var name: String
}

private func data() async throws {
  let user = try await AF.request(url).validate().serializingDecodable(User.self).value
  let users: [User] = try await AF.request(url).serializingDecodable().value
  let text = try await AF.request(url).serializingString().value
  let bytes = try await AF.request(url).serializingData().value
  print(user, users, text, bytes)

  let task: DataTask<User> = AF.request(url).serializingDecodable(User.self)
  let response: DataResponse<User, AFError> = await task.response
  let result: Result<User, AFError> = await task.result
  task.suspend()
  task.resume()
  task.cancel()
  switch result {
  case .success(let user): print(user, response.metrics as Any)
  case .failure(let error): print(error.isExplicitlyCancelledError)
  }
}

private func allArguments(_ request: DataRequest) async {
  _ = request.serializingData(
    automaticallyCancelling: false, dataPreprocessor: .passthrough, emptyResponseCodes: [204],
    emptyRequestMethods: [.head])
  _ = request.serializingDecodable(
    User.self, automaticallyCancelling: true, dataPreprocessor: .googleXSSI, decoder: JSONDecoder(),
    emptyResponseCodes: [], emptyRequestMethods: [])
  _ = request.serializingString(
    automaticallyCancelling: true, dataPreprocessor: .passthrough, encoding: .utf8, emptyResponseCodes: [],
    emptyRequestMethods: [])
  _ = await request.serializingResponse(using: .string).result
  _ = await request.serializingResponse(using: StringResponseSerializer(), automaticallyCancelling: false)
    .response
  _ = request.serializingResponse(using: DecodableResponseSerializer<User>())
}

private func downloads(_ request: DownloadRequest) async throws {
  let file: URL = try await AF.download(url).serializingDownloadedFileURL().value
  let task: DownloadTask<Data> = request.serializingData()
  let response: AFDownloadResponse<Data> = await task.response
  let result: Result<Data, AFError> = await task.result
  task.suspend()
  task.resume()
  task.cancel()
  print(file, response, result)
  _ = request.serializingData(
    automaticallyCancelling: false, dataPreprocessor: .passthrough, emptyResponseCodes: [],
    emptyRequestMethods: [])
  _ = try await request.serializingDecodable(User.self).value
  _ = request.serializingDecodable(
    User.self, automaticallyCancelling: false, dataPreprocessor: .passthrough, decoder: JSONDecoder(),
    emptyResponseCodes: [], emptyRequestMethods: [])
  _ = request.serializingDownloadedFileURL(automaticallyCancelling: false)
  _ = try await request.serializingString().value
  _ = request.serializingString(
    automaticallyCancelling: false, dataPreprocessor: .passthrough, encoding: .utf8, emptyResponseCodes: [],
    emptyRequestMethods: [])
  _ = request.serializingDownload(using: .url)
  _ = request.serializingDownload(using: URLResponseSerializer(), automaticallyCancelling: false)
  _ = request.serializingDownload(using: .string, automaticallyCancelling: true)
}

private func together() async throws -> [String] {
  async let one = AF.request(url).serializingString().value
  async let two = AF.upload(Data(), to: url).serializingString().value
  let both = try await [one, two]
  return try await withThrowingTaskGroup(of: String.self) { group in
    for path in both { group.addTask { try await AF.request(path).serializingString().value } }
    return try await group.reduce(into: []) { $0.append($1) }
  }
}

/// A view model that sends requests.
@MainActor private final class ViewModel {
  private(set) var users: [User] = []

  func load() {
    AF.request(url).responseDecodable(of: [User].self) { response in
      MainActor.assumeIsolated { self.users = response.value ?? [] }
    }
  }

  func reload() async {
    users = (try? await AF.request(url).serializingDecodable([User].self).value) ?? []
  }
}

private func sequences(of request: DataRequest) async {
  for await progress in request.uploadProgress() { print(progress.fractionCompleted) }
  for await progress in request.downloadProgress(bufferingPolicy: .bufferingNewest(1)) { print(progress) }
  for await urlRequest in request.urlRequests() { print(urlRequest) }
  for await task in request.urlSessionTasks(bufferingPolicy: .unbounded) { print(task) }
  for await description in request.cURLDescriptions() { print(description) }
  for await response in request.httpResponses() where response.statusCode == 200 { break }
  let policy: StreamOf<URLRequest>.BufferingPolicy = .bufferingOldest(1)
  let requests: StreamOf<URLRequest> = request.urlRequests(bufferingPolicy: policy)
  var iterator = requests.makeAsyncIterator()
  print(await iterator.next() as Any)
}

private func heads(of request: DataRequest) {
  request.onHTTPResponse { response -> Request.ResponseDisposition in
    await Task.yield()
    return response.statusCode == 200 ? .allow : .cancel
  }
  request.onHTTPResponse { (response: HTTPURLResponse) async -> Void in
    await Task.yield()
    print(response)
  }
}
