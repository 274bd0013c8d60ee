import Alamofire

#if IMPORTS_FOUNDATION
  import Foundation
#endif
#if IMPORTS_FOUNDATION_NETWORKING
  import FoundationNetworking
#endif

// Streamed responses.

private let url = "http://localhost"

private struct User: Codable, Sendable {
  var name: String
}

private func making(urlRequest: URLRequest) {
  AF.streamRequest(url).responseStream { _ in }
  AF.streamRequest(
    url, method: .get, headers: ["A": "b"], automaticallyCancelOnStreamError: true, interceptor: nil,
    shouldAutomaticallyResume: nil, requestModifier: { $0.timeoutInterval = 1 }
  ).responseStream { _ in }
  AF.streamRequest(url, method: .post, parameters: ["a": "b"]).responseStream { _ in }
  AF.streamRequest(
    url, method: .post, parameters: ["a": "b"], encoder: JSONParameterEncoder.default, headers: nil,
    automaticallyCancelOnStreamError: false, interceptor: .retryPolicy, shouldAutomaticallyResume: true,
    requestModifier: nil
  ).responseStream { _ in }
  AF.streamRequest(urlRequest).responseStream { _ in }
  AF.streamRequest(
    urlRequest, automaticallyCancelOnStreamError: true, interceptor: nil, shouldAutomaticallyResume: nil
  ).responseStream { _ in }
}

private func handlers(_ request: DataStreamRequest) {
  request.responseStream { stream in
    switch stream.event {
    case .stream(let result):
      switch result {
      case .success(let data): print(data.count)
      }
    case .complete(let completion):
      print(completion)
    }
  }
  request.responseStream(on: .global()) { stream in
    guard let data: Data = stream.value else { return }
    print(data)
    stream.cancel()
  }
  request.responseStream { stream in
    if stream.value == nil { throw URLError(.cancelled) }
  }
  request.responseStreamString { stream in
    switch stream.event {
    case .stream(.success(let string)): print(string)
    case .complete(let completion): print(completion.error as Any)
    }
  }
  request.responseStreamString(on: .global()) { print($0.value as Any) }
  request.responseStreamDecodable(of: User.self) { stream in
    switch stream.event {
    case .stream(let result):
      switch result {
      case .success(let user): print(user)
      case .failure(let error): print(error)
      }
    case .complete(let completion): print(completion)
    }
  }
  request.responseStreamDecodable { (stream: DataStreamRequest.Stream<User, AFError>) in print(stream) }
  request.responseStreamDecodable(
    of: User.self, on: .global(), using: JSONDecoder(), preprocessor: PassthroughPreprocessor()
  ) { print($0.error as Any) }
  request.responseStream(using: Lines()) { print($0.value as Any) }
  request.responseStream(using: Lines(), on: .global()) { _ in }
  request.responseStream(using: .string) { print($0.value as Any) }
  request.responseStream(using: .passthrough) { print($0.value as Any) }
  request.responseStream(using: .decodable(of: User.self)) { print($0.value as Any) }
  request.responseStream(
    using: .decodable(of: User.self, decoder: JSONDecoder(), dataPreprocessor: .passthrough)
  ) { print($0.result as Any) }
}

private struct Lines: DataStreamSerializer {
  func serialize(_ data: Data) throws -> [Substring] {
    String(decoding: data, as: UTF8.self).split(separator: "\n")
  }
}

private func parts(_ stream: DataStreamRequest.Stream<String, AFError>) {
  let result: Result<String, AFError>? = stream.result
  let value: String? = stream.value
  let error: AFError? = stream.error
  let completion: DataStreamRequest.Completion? = stream.completion
  let token: DataStreamRequest.CancellationToken = stream.token
  let event: DataStreamRequest.Event<String, AFError> = stream.event
  let metrics: URLSessionTaskMetrics? = completion?.metrics
  print(result as Any, value as Any, error as Any, event, metrics as Any)
  print(completion?.request as Any, completion?.response as Any, completion?.error as Any)
  token.cancel()
}

private func settings(_ request: DataStreamRequest) {
  let handler: DataStreamRequest.Handler<Data, Never> = { _ in }
  request
    .validate()
    .validate(statusCode: 200..<300)
    .validate(contentType: ["text/plain"])
    .validate { _, response in
      response.statusCode == 200 ? .success(()) : .failure(URLError(.badServerResponse))
    }
    .onHTTPResponse { _, completion in completion(.allow) }
    .onHTTPResponse(on: .global()) { _, completion in completion(.cancel) }
    .onHTTPResponse { response in print(response) }
    .responseStream(stream: handler)
  let rule: DataStreamRequest.Validation = { _, _ in .success(()) }
  request.validate(rule)
  print(request.convertible, request.automaticallyCancelOnStreamError)
}

private func inputStream(_ request: DataStreamRequest) {
  let stream: InputStream? = request.asInputStream()
  let other: InputStream? = request.asInputStream(bufferSize: 4_096)
  stream?.open()
  other?.close()
}

private func serializers() throws {
  let user = try DecodableStreamSerializer<User>().serialize(Data())
  let other = DecodableStreamSerializer<User>(
    decoder: JSONDecoder(), dataPreprocessor: PassthroughPreprocessor())
  let data: Data = try PassthroughStreamSerializer().serialize(Data())
  let text: String = try StringStreamSerializer().serialize(Data())
  print(user, other.decoder, other.dataPreprocessor, data, text)
}

private func tasks(_ request: DataStreamRequest) async {
  let task: DataStreamTask = request.streamTask()
  for await stream in task.streamingData() { print(stream.value as Any) }
  for await stream in task.streamingData(
    automaticallyCancelling: false, bufferingPolicy: .bufferingNewest(1))
  {
    print(stream)
  }
  for await stream in task.streamingStrings() { print(stream.value as Any, stream.completion as Any) }
  for await stream in task.streamingStrings(automaticallyCancelling: true, bufferingPolicy: .unbounded) {
    print(stream)
  }
  for await stream in task.streamingDecodables(User.self) {
    if case .complete(let completion) = stream.event { print(completion) }
  }
  for await stream in task.streamingDecodables(
    User.self, automaticallyCancelling: true, bufferingPolicy: .unbounded)
  {
    print(stream.error as Any)
  }
  let streams: StreamOf<DataStreamRequest.Stream<[Substring], AFError>> =
    task.streamingResponses(serializedUsing: Lines())
  for await stream in streams { print(stream) }
  for await stream in task.streamingResponses(
    serializedUsing: .string, automaticallyCancelling: false, bufferingPolicy: .unbounded)
  {
    print(stream)
  }
  for await response in request.httpResponses() { print(response) }
  for await response in request.httpResponses(bufferingPolicy: .unbounded) { print(response) }
  request.onHTTPResponse { response -> Request.ResponseDisposition in
    await Task.yield()
    return response.statusCode == 200 ? .allow : .cancel
  }
  task.suspend()
  task.resume()
  task.cancel()
}

private final class StreamLogger: EventMonitor {
  func request(
    _ request: DataStreamRequest, didValidateRequest urlRequest: URLRequest?, response: HTTPURLResponse,
    withResult result: Request.ValidationResult
  ) {}
  func request<Value: Sendable>(_ request: DataStreamRequest, didParseStream result: Result<Value, AFError>) {
  }
}

private func monitors(_ monitor: ClosureEventMonitor) {
  monitor.requestDidValidateRequestResponseWithResult = { _, _, _, _ in }
  _ = StreamLogger()
}

/// A subclass of the session that observes its streams.
private final class Observed: Session, @unchecked Sendable {
  override func streamRequest(
    _ convertible: URLRequestConvertible, automaticallyCancelOnStreamError: Bool = false,
    interceptor: RequestInterceptor? = nil, shouldAutomaticallyResume: Bool? = nil
  ) -> DataStreamRequest {
    super.streamRequest(
      convertible, automaticallyCancelOnStreamError: automaticallyCancelOnStreamError,
      interceptor: interceptor, shouldAutomaticallyResume: shouldAutomaticallyResume)
  }
}
